"""The wheel in a fresh environment, as people install it: nothing that the program reads is left behind."""

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.support.installed import answer, installed
from tests.support.limits import HANGS
from tests.support.places import on_disk

ROOT = Path(__file__).parent.parent
SEARCH = (
    "run --repeats 1 --points 3 --seeds 1 --certify 0 --tasks 4 --cv-tasks 2 --examples-per-task 60 --memory 3 "
    "--memory-batch 8 --device cpu"
)

pytestmark = pytest.mark.install


@pytest.fixture(scope="module")
def environment():
    with on_disk() as folder:
        yield installed(folder)


def test_a_search_ends_with_its_report(environment, tmp_path):
    found = answer(environment, tmp_path, *SEARCH.split())
    assert found["effort"]["trained"] > 0 and "<html" in (tmp_path / found["report"]).read_text(encoding="utf-8")


def test_ray_does_not_come_along(environment, tmp_path):
    done = subprocess.run([environment / "python", "-c", "import ray"], cwd=tmp_path, capture_output=True, text=True)
    assert "No module named 'ray'" in done.stderr
    command = [environment / "epsearch", *SEARCH.split(), "--runner", "tune"]
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANGS)
    assert (
        refused.returncode == 2 and refused.stderr.count("\n") == 1 and "pip install 'epsearch[ray]'" in refused.stderr
    )


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


PACKAGE = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "acme-continual"
version = "1.2"
dependencies = ["epsearch"]

[project.entry-points."epsearch.methods"]
pulled = "acme_continual.shown:PULLED"
agem = "acme_continual.shown:PULLED"

[project.entry-points."epsearch.strategies"]
from-the-ends = "acme_continual.shown:ENDS"

[project.entry-points."epsearch.metrics"]
worst = "acme_continual.shown:worst"

[project.entry-points."epsearch.figures"]
first-task = "acme_continual.shown:first_task"

[project.entry-points."epsearch.networks"]
small = "acme_continual.trained:small"

[project.entry-points."epsearch.streams"]
shuffled = "acme_continual.trained:shuffled"

[project.entry-points."epsearch.trainers"]
softmax = "acme_continual.trainers:softmax"
"""
TRAINED = """
from torch import nn
from trainers.streams.permuted import PermutedStream
from trainers.streams.pixels import digits

def small(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 12), nn.ReLU(), nn.Linear(12, outputs))

def shuffled(tasks, examples_per_task):
    return PermutedStream(digits.load(), tasks, examples_per_task)
"""
SIZES = (
    "--repeats 1 --points 3 --seeds 1 --certify 1 --tasks 4 --cv-tasks 2 --examples-per-task 60 "
    "--runner local --device cpu"
)
MEMORY = "--memory 3 --memory-batch 8"
KINDS = {
    "method": f"--method pulled --search pull=0..1 --set pull_when=odd {MEMORY}",
    "strategy": f"--strategy from-the-ends {MEMORY}",
    "network": f"--network small {MEMORY}",
    "stream": f"--dataset shuffled {MEMORY}",
    "trainer": "--trainer softmax --search lr=log:0.01..1 --set memory=5",
    "metric": f"--add-metrics worst {MEMORY}",
    "figure": f"--add-figures first-task {MEMORY}",
}


@pytest.fixture(scope="module")
def extended(environment, tmp_path_factory):
    """The same with a package of somebody else's."""
    folder = tmp_path_factory.mktemp("acme")
    package = folder / "acme_continual"
    package.mkdir()
    (folder / "pyproject.toml").write_text(PACKAGE, encoding="utf-8")
    (package / "__init__.py").touch()
    shutil.copy(ROOT / "tests" / "support" / "others.py", package / "shown.py")
    shutil.copy(ROOT / "tests" / "support" / "own_trainers.py", package / "trainers.py")
    (package / "trained.py").write_text(TRAINED, encoding="utf-8")
    uv = os.environ.get("UV") or shutil.which("uv")
    command = [uv, "pip", "install", "--python", environment.parent, "--no-deps", folder]
    subprocess.run(command, cwd=folder, check=True, timeout=HANGS, start_new_session=True)
    return environment


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_plug_in_of_an_installed_package(extended, tmp_path, kind):
    """Run, its ledger and its report, by the name of its entry point; the same command trains nothing again."""
    told = ["run", *SIZES.split(), *KINDS[kind].split(), "--name", "one"]
    found = answer(extended, tmp_path, *told)
    assert found["effort"]["trained"] > 0
    again = answer(extended, tmp_path, *told)
    assert again["effort"]["trained"] == 0 and again["evaluation"] == found["evaluation"]
    report = (tmp_path / found["report"]).read_text(encoding="utf-8")
    if kind in ("metric", "figure"):
        assert {"metric": "worst", "figure": 'id="figure-first_task"'}[kind] in report
    else:
        assert "acme_continual/__init__.py" in report, "what it is made of"


def test_what_it_provides_is_listed_and_shadows_nothing(extended, tmp_path):
    rows = {(row["kind"], row["name"]): row for row in answer(extended, tmp_path, "plugins")}
    assert len(rows) == 8 and {row["package"] for row in rows.values()} == {"acme-continual 1.2"}
    assert rows["method", "agem"]["note"] == "the name is epsearch's own: use what it stands for"
    assert {row["note"] for key, row in rows.items() if key != ("method", "agem")} == {""}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["results.py", "trainers/__init__.py", "search_spaces/__init__.py"])
def test_files_of_ones_own_that_have_the_names_of_our_packages(environment, tmp_path, name):
    """They hide nothing from the program, however it is started, and what cannot be imported is said in one line."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("def train(values, stream, seed, report): pass\n", encoding="utf-8")
    assert answer(environment, tmp_path, *SEARCH.split())["effort"]["trained"] > 0
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    clean["EPSEARCH_CACHE"] = str(tmp_path / "cache")

    def said(*command):
        return subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=HANGS)

    assert said(environment / "python", "-m", "epsearch", "--version").stdout.startswith("epsearch ")
    ours = Path(name).parts[0].removesuffix(".py")
    refused = said(environment / "epsearch", "run", "--trainer", f"{ours}:train", "--search", "lr=0..1")
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1, refused.stderr
    assert f"'{ours}' is a package of epsearch, not " in refused.stderr
    (tmp_path / "first.py").write_text(f"import {ours}, epsearch", encoding="utf-8")
    (tmp_path / "second.py").write_text("import epsearch; print(epsearch.Search.__name__)", encoding="utf-8")
    first, second = (said(environment / "python", tmp_path / f"{file}.py") for file in ("first", "second"))
    assert f"has the name of a package of epsearch, '{ours}'; give it another name" in first.stderr
    assert (
        second.stdout == "Search\n"
        and f"cannot be imported beside epsearch, which has a package '{ours}'" in second.stderr
    )


def test_the_version(environment, tmp_path):
    done = subprocess.run([environment / "epsearch", "--version"], cwd=tmp_path, capture_output=True, text=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert done.stdout == f"epsearch {project['version']}\n"
