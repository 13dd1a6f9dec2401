"""The wheel in a fresh environment, as people install it: nothing that the program reads is left behind."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.limits import HANGS

ROOT = Path(__file__).parent.parent
SEARCH = (
    "run --repeats 1 --points 3 --seeds 1 --certify 0 --tasks 4 --cv-tasks 2 --examples-per-task 60 --memory 3 "
    "--memory-batch 8 --runner local --device cpu"
)

pytestmark = pytest.mark.install


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The programs of an environment that has the wheel, and what it needs in the versions that are tested."""
    folder = tmp_path_factory.mktemp("install")
    uv = os.environ.get("UV") or shutil.which("uv")

    def run(*arguments):
        # In a session of its own: in the background of a terminal uv, which looks for one, would be stopped.
        subprocess.run([uv, *arguments], cwd=ROOT, check=True, timeout=HANGS, start_new_session=True)

    tested = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["uv"]
    (folder / "tested.txt").write_text("\n".join(tested["constraint-dependencies"]), encoding="utf-8")
    run("build", "--wheel", "--out-dir", folder, ROOT)
    run("venv", "--python", sys.executable, folder / "env")
    (wheel,) = folder.glob("*.whl")
    run("pip", "install", "--python", folder / "env", "--constraint", folder / "tested.txt", wheel)
    return folder / "env" / "bin"


def answer(environment, tmp_path, *arguments):
    """What a command prints as JSON, far from the checkout."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    command = [environment / "epsearch", *arguments, "--json"]
    surroundings = clean | {"EPSEARCH_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=tmp_path, env=surroundings, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_search_ends_with_its_report(environment, tmp_path):
    found = answer(environment, tmp_path, *SEARCH.split())
    assert found["effort"]["trained"] > 0 and "<html" in (tmp_path / found["report"]).read_text(encoding="utf-8")


def test_the_definitions_of_datasets_come_along(environment, tmp_path):
    names = {row["name"] for row in answer(environment, tmp_path, "datasets")}
    assert names >= {"permuted_digits", "permuted_mnist", "split_cifar", "split_cub", "split_awa"}


def test_nothing_comes_from_the_checkout(environment, tmp_path):
    code = (
        "import epsearch, results, search_spaces, trainers as t; print(epsearch.__file__, results.__file__, t.__file__)"
    )
    done = subprocess.run(
        [environment / "python", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert str(ROOT) not in done.stdout and done.stdout.count("site-packages") == 3
