"""Without Ray: the same studies by threads, and no word about what is absent."""

import json
import pkgutil
import sys
from dataclasses import replace
from importlib import import_module

import pytest

from epsearch.failures.errors import UsageError
from epsearch.runners import registry
from tests.support import blocked
from tests.support.sizes import PACKAGES
from tests.test_architecture import files, imports

SIZES = (
    "--repeats 1 --points 3 --seeds 1 --certify 0 --tasks 4 --cv-tasks 2 --examples-per-task 60 --memory 3 "
    "--memory-batch 8 --device cpu"
)
OF_RAY = ("epsearch/runners/on_ray/", "search_spaces/adapters/ray_tune.py", "epsearch/doctor.py")
"""Where Ray may be imported."""


def epsearch(tmp_path, *arguments):
    return blocked.run(("ray",), tmp_path / "cache", *arguments, folder=tmp_path)


@pytest.mark.slow
def test_ray_is_imported_in_places_of_its_own():
    for package in PACKAGES:
        for path in files(package):
            relative = path.relative_to(blocked.ROOT).as_posix()
            assert relative.startswith(OF_RAY) or "ray" not in {name for name, _ in imports(path)}, relative


@pytest.mark.slow
def test_a_search_is_trained_by_threads_and_says_nothing_of_ray(tmp_path):
    done = epsearch(tmp_path, "run", *SIZES.split())
    assert done.returncode == 0, done.stderr
    assert "Ray" not in done.stdout + done.stderr and "arning" not in done.stderr
    (report,) = tmp_path.glob("runs/*/report.html")
    assert "<html" in report.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("command", [["plan", *SIZES.split()], ["plan", "compare", "--device", "cpu"], ["doctor"]])
def test_neither_plan_nor_doctor_names_it(tmp_path, command):
    done = epsearch(tmp_path, *command)
    assert done.returncode == 0 and "Ray" not in done.stdout + done.stderr


@pytest.mark.slow
def test_doctor_finds_nothing_wrong(tmp_path):
    rows = json.loads(epsearch(tmp_path, "doctor", "--json").stdout)
    assert {"ray", "Ray"}.isdisjoint(row["subject"] for row in rows)
    assert not [row for row in rows if row["ok"] is False]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "condition"),
    [
        (["--runner", "tune"], "runner must be auto or local without Ray, got 'tune'"),
        (["--address", "10.0.0.1:6379"], "address must be local without Ray, got '10.0.0.1:6379'"),
        (["--address", "auto"], "address must be local without Ray, got 'auto'"),
    ],
)
def test_what_needs_ray_is_refused_in_one_line(tmp_path, options, condition):
    done = epsearch(tmp_path, "run", *SIZES.split(), *options)
    assert done.returncode == 2 and not (tmp_path / "runs").exists()
    assert done.stderr == f"epsearch: {condition}; pip install 'epsearch[ray]'\n"
    assert len(done.stderr.split()) <= 25


@pytest.mark.parametrize(
    ("options", "runner"),
    [
        ({"runner": "auto"}, "local"),
        ({"runner": "auto", "device": "cuda"}, "local"),
        ({"runner": "local", "address": "auto"}, "local"),
        ({"runner": "auto", "address": "auto"}, "tune"),
        ({"runner": "tune"}, "tune"),
    ],
)
def test_which_runner_begins(small_study, monkeypatch, options, runner):
    study = replace(small_study(), **options)
    monkeypatch.setattr(registry, "ray_installed", lambda: False)
    assert registry.runner_of(study).name == runner
    if runner == "local":
        registry.check_runner(study)
    else:
        with pytest.raises(UsageError, match="without Ray"):
            registry.check_runner(study)


def test_a_folder_named_ray_is_no_ray(tmp_path, monkeypatch):
    (tmp_path / "ray").mkdir()
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    assert not registry.ray_installed()


@pytest.mark.slow
def test_modules_outside_of_its_places_import_without_it(tmp_path):
    names = sorted(_modules())
    lines = (
        "import sys; sys.modules['ray'] = None",
        f"from importlib import import_module; [import_module(name) for name in {names!r}]",
    )
    done = blocked.code("\n".join(lines), tmp_path)
    assert done.returncode == 0, done.stderr


def _modules():
    for package in PACKAGES:
        found = import_module(package)
        for module in pkgutil.walk_packages(found.__path__, f"{package}."):
            path = module.name.replace(".", "/")
            if not path.startswith(OF_RAY) and not f"{path}.py".startswith(OF_RAY) and not path.endswith("__main__"):
                yield module.name
