"""The package in an environment of its own, as people install it, and its program run there."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.support.limits import HANGS

ROOT = Path(__file__).parents[2]


def installed(folder, extra=""):
    """The programs of an environment that has the wheel, and what it needs in the versions that are tested."""
    uv = os.environ.get("UV") or shutil.which("uv")

    def run(*arguments):
        # In a session of its own: in the background of a terminal uv, which looks for one, would be stopped.
        subprocess.run([uv, *arguments], cwd=ROOT, check=True, timeout=HANGS, start_new_session=True)

    tested = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["uv"]
    (folder / "tested.txt").write_text("\n".join(tested["constraint-dependencies"]), encoding="utf-8")
    run("build", "--wheel", "--out-dir", folder, ROOT)
    run("venv", "--python", sys.executable, folder / "env")
    (wheel,) = folder.glob("*.whl")
    wanted = f"{wheel}[{extra}]" if extra else wheel
    run("pip", "install", "--python", folder / "env", "--constraint", folder / "tested.txt", wanted)
    return folder / "env" / "bin"


def answer(environment, tmp_path, *arguments):
    """What a command prints as JSON, far from the checkout."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    command = [environment / "epsearch", *arguments, "--json"]
    surroundings = clean | {"EPSEARCH_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=tmp_path, env=surroundings, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
