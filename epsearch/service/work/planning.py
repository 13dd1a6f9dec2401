"""Plans of studies before they are submitted, made by processes: a probe takes the machine for seconds."""

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from anyio import CapacityLimiter

from epsearch.failures.errors import Unavailable, UsageError
from epsearch.operating_system import kill_group, new_group
from epsearch.service.access.limits import Quota, in_thread
from epsearch.study.description import Study
from epsearch.study.kinds import Search

SECONDS = 300.0  # that a plan may take
MOST_OF_ONE = 3  # plans of one token under way, those that wait included
MOST = 12  # plans of all tokens
USUAL_SECONDS = 5.0  # of a plan, until the first is made


class Planner:
    """Makes plans one after another, as a second one would measure the first."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._quota, self._one_at_a_time = Quota("plans", MOST_OF_ONE, MOST), CapacityLimiter(1)
        self._lock, self._over = threading.Lock(), False
        self._process: subprocess.Popen[str] | None = None
        self._seconds = USUAL_SECONDS

    async def plan(self, build: Callable[[], Study], token: str) -> tuple[Study, dict[str, Any]]:
        """Returns a study, and the JSON of `epsearch plan` for it.

        build: makes the study, called in a thread; token: name of the client's token. Raises UsageError; TooMany if the
        token has MOST_OF_ONE under way; Unavailable if there are MOST, on a timeout, and at the end of the service.
        """
        with self._quota.acquire(token, self._seconds * (1 + self._quota.total)):
            study = await in_thread(build)()
            return study, await in_thread(self._make, self._one_at_a_time)(study)

    def stop(self) -> None:
        """Kills the plan under way, and makes no other."""
        with self._lock:
            self._over = True
            if self._process is not None:
                kill_group(self._process.pid)

    def _make(self, study: Study) -> dict[str, Any]:
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="epsearch-") as folder:
            options = {name: value for name, value in study.to_dict().items() if value is not None}
            file = Path(folder) / "study.yaml"
            file.write_text(yaml.safe_dump(options, allow_unicode=True), encoding="utf-8")
            kind = [] if study.kind == Search.kind else [study.kind]
            command = [sys.executable, "-m", "epsearch", "plan", *kind, "--config", str(file), "--json"]
            with self._lock:
                if self._over:
                    raise Unavailable("the service ends")
                self._process = process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    env=self._environment,
                    **new_group(),
                )
            try:
                out, err = process.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired as error:
                kill_group(process.pid)  # its children would keep its output open
                process.communicate()
                raise Unavailable(f"the plan was not made within {SECONDS:.0f} s") from error
            finally:
                self._process = None
        if process.returncode == 0:
            self._seconds = time.monotonic() - begun
            return dict(json.loads(out))
        lines = [line for line in err.splitlines() if line.startswith("epsearch: ")] or ["epsearch: no plan"]
        message = lines[-1].removeprefix("epsearch: ")
        if process.returncode == 2:
            raise UsageError(message)
        raise Unavailable(message)
