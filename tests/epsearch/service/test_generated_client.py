"""A client that a tool generates from the description of the API takes a study from its submission to its table."""

import json
import shutil
import subprocess

import pytest

from epsearch.service.access import tokens
from tests.support import generated_client
from tests.support.limits import HANGS
from tests.support.service import Process

pytestmark = [pytest.mark.install, pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed")]
TOOL = "openapi-python-client==0.29.1"  # in an environment of its own, as it needs another typer


def test_a_generated_client_drives_a_study(tmp_path):
    file, folder = tmp_path / "tokens.txt", tmp_path / "client"
    secret = tokens.make("ann", "write", file)
    folder.mkdir()
    service = Process(tmp_path / "service", "--tokens", str(file))
    try:
        command = ["uv", "run", "--quiet", "--no-project", "--isolated", "--with", TOOL, "python"]
        own = [generated_client.__file__, service.url, secret, str(folder)]
        ended = subprocess.run([*command, *own], capture_output=True, text=True, timeout=10 * HANGS, cwd=folder)
        assert ended.returncode == 0, ended.stderr
        rows = json.loads(ended.stdout)
        assert {row["phase"] for row in rows} == {"cv", "eval"} and all(0 <= row["A_T"] <= 100 for row in rows)
    finally:
        service.end()
