"""Plans of studies that are not submitted yet, by a process of their own: a probe takes the machine for seconds."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from epsearch.failures.errors import Unavailable, UsageError
from epsearch.study.description import Study
from epsearch.study.kinds import Search

SECONDS = 300.0  # that a plan may take
_ONE_AT_A_TIME = threading.Lock()  # a second one would measure the first


def plan(study: Study, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """What `epsearch plan --json` says of a study. Raises UsageError, and Unavailable where it takes too long."""
    with tempfile.TemporaryDirectory(prefix="epsearch-") as folder, _ONE_AT_A_TIME:
        options = {name: value for name, value in study.shown().items() if value is not None}
        file = Path(folder) / "study.yaml"
        file.write_text(yaml.safe_dump(options, allow_unicode=True), encoding="utf-8")
        of_kind = [] if study.kind == Search.kind else [study.kind]
        command = [sys.executable, "-m", "epsearch", "plan", *of_kind, "--config", str(file), "--json"]
        try:
            answer = subprocess.run(
                command, capture_output=True, text=True, timeout=SECONDS, check=False, env=dict(environment)
            )
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"the plan was not made within {SECONDS:.0f} s") from error
    if answer.returncode == 0:
        return dict(json.loads(answer.stdout))
    lines = [line for line in answer.stderr.splitlines() if line.startswith("epsearch: ")] or ["epsearch: no plan"]
    words = lines[-1].removeprefix("epsearch: ")
    if answer.returncode == 2:
        raise UsageError(words)
    raise Unavailable(words)
