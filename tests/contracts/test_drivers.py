"""Several drivers at once, as commands: no member is trained twice, by the log that whoever trains one writes."""

import json
import os
import subprocess
import sys

import pytest

from results.ledger.store import Store
from tests.support.trainings import log

pytestmark = pytest.mark.slow

STUDY = {
    "runner": "local",
    "workers": 2,
    "device": "cpu",
    "numeric_path": "cpu-float32-mkl",
    "strategy": "grid",
    "repeats": 1,
    "points": 5,
    "cv_tasks": 2,
    "tasks": 6,
    "examples_per_task": 1000,
    "memory": 3,
    "memory_batch": 8,
    "certify": 0,
}
FOUND = ("chosen", "chosen_score", "rounds", "evaluation")
# Each test runs on one database in CI, on both with the exhaustive cases.
AND_SQLITE = pytest.param("sqlite", marks=pytest.mark.exhaustive)
AND_POSTGRESQL = pytest.param("postgresql", marks=[pytest.mark.service, pytest.mark.exhaustive])
POSTGRESQL = pytest.param("postgresql", marks=pytest.mark.service)
on_sqlite = pytest.mark.parametrize("url", ["sqlite", AND_POSTGRESQL], indirect=True)
on_postgresql = pytest.mark.parametrize("url", [AND_SQLITE, POSTGRESQL], indirect=True)


@pytest.fixture
def at_once(tmp_path, url):
    """Runs studies at the same time, each with its options; (what they answer, how often each member was trained)."""

    def run(*studies):
        own = {"EPSEARCH_STORAGE": url, "EPSEARCH_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
        environment, drivers = os.environ | own | log.environment(tmp_path / "log"), []
        for number, options in enumerate(studies):
            given = STUDY | options | {"out": tmp_path / str(number)}
            flags = [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", str(value))]
            command = [sys.executable, "-m", "epsearch", "run", "--json", "--wait", *flags]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            drivers.append(subprocess.Popen(command, env=environment, text=True, **pipes))
        said = [driver.communicate() for driver in drivers]
        assert [driver.returncode for driver in drivers] == [0] * len(drivers), [err for _, err in said]
        trained = log.begun(log.read(tmp_path / "log"))
        with Store.read(url) as store:
            assert len(store.all_runs()) == len(trained), "what is trained is stored"
        return [json.loads(out) for out, _ in said], trained

    return run


def twice(trained):
    return {run: times for run, times in trained.items() if times > 1}


@on_sqlite
def test_the_same_study_twice_at_once(at_once):
    (one, other), trained = at_once(*[{"name": "same", "seeds": "0,1"}] * 2)
    assert [one[name] for name in FOUND] == [other[name] for name in FOUND]
    assert trained and twice(trained) == {}


@on_sqlite
def test_two_studies_with_half_of_their_members_in_common_at_once(at_once):
    _, trained = at_once({"name": "one", "seeds": "0,1"}, {"name": "other", "seeds": "1,2"})
    assert {run.learner.seed for run in trained} == {0, 1, 2} and twice(trained) == {}


@on_postgresql
def test_eight_studies_at_once(at_once):
    """Each has half of its members in common with the one before it, and half with the one after it."""
    _, trained = at_once(*[{"name": f"study-{one}", "seeds": f"{one},{(one + 1) % 8}"} for one in range(8)])
    assert {run.learner.seed for run in trained} == set(range(8)) and twice(trained) == {}
