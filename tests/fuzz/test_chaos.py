"""Studies under `kill -9`: a small campaign, the large one behind its marker, and what a campaign notices."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.fuzz import remains
from tests.fuzz.chaos import WRONG, Campaign
from tests.fuzz.chaos import figures as counted
from tests.support.trainings import log
from tests.support.trainings.sitecustomize import noted
from trainers.cohort import Learner

SHARE = float(os.environ.get("EPSEARCH_FUZZ_SHARE", "1"))
KILLS = {"local": 140, "tune": 60}
ROOT = Path(__file__).parents[2]


@pytest.mark.fuzz
@pytest.mark.parametrize("runner", KILLS)
def test_chaos(figures, tmp_path, runner):
    """EPSEARCH_FUZZ_LOG names the log of a campaign that is to go on where it was interrupted."""
    kept = Path(os.environ.get("EPSEARCH_FUZZ_LOG", tmp_path / "log"))
    found = Campaign(kept, runner, max(2, round(KILLS[runner] * SHARE))).run()
    figures(f"kills, {runner}", **found)
    assert not any(found[name] for name in WRONG), [line for line in map(json.loads, kept.open())]


EARLIER = {
    "runner": "local",
    "seed": 1,
    "study": 0,
    "database": "sqlite",
    "kills": [{"target": "driver", "moment": "start", "delay": 0.0, "life": 1}],
    "statuses": [-9, 0],
    "seconds": 1.0,
    "members": 16,
    "twice": 0,
    **{name: [] for name in WRONG},
}


@pytest.mark.slow
def test_a_small_campaign_goes_on_where_another_was_interrupted(tmp_path):
    """A process of its own, whose runs are forks of it: those that run these tests have threads."""
    kept = tmp_path / "log"
    kept.write_text("".join(json.dumps(EARLIER | {"seed": seed}) + "\n" for seed in (1, 2)))  # the other is not its
    options = ["--log", kept, "--databases", "sqlite", "--kills", "3", "--forked"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.chaos", *options], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    one, other, *lines = map(json.loads, kept.read_text().splitlines())
    assert [one, other] == [EARLIER, EARLIER | {"seed": 2}]
    assert [line["study"] for line in lines] == list(range(1, 1 + len(lines)))
    found = counted([one, *lines])
    assert found["kills"] == 3 and found["members"] > 0 and not any(found[name] for name in WRONG)
    assert Campaign(kept, "local", 3, ["sqlite"]).run() == found, "nothing is left to do"


@pytest.fixture
def live(tmp_path, monkeypatch):
    """A life in which these seeds are trained, each as a cohort; after it those of `stored` are in the ledger."""

    def make(number, seeds, stored, lost=()):
        for name, value in log.environment(tmp_path / "log", number).items():
            monkeypatch.setenv(name, value)
        for seed in seeds:
            learners = [Learner.of("soft_agem", seed, lr=0.1, memory_batch=None, epsilon=0.5)]
            job = SimpleNamespace(phase="cv", certify=None, cohort=SimpleNamespace(learners=learners))
            noted(lambda job: None)(job)
        return SimpleNamespace(number=number, lost=Counter(lost), stored=set(stored))

    return make


def trained(tmp_path, *lives):
    victim = SimpleNamespace(command=SimpleNamespace(log=tmp_path / "log"), lives=lives)
    found = remains.trained(victim, lambda run: run.learner.seed)
    return found["members"], found["twice"], len(found["wrong"])


def test_members_in_flight_may_be_trained_twice(tmp_path, live):
    lives = live(1, [0, 1, 2], [0]), live(2, [1, 2, 1, 3], [0, 1, 2, 3], lost=[1])
    assert trained(tmp_path, *lives) == (4, 3, 0)


@pytest.mark.parametrize(
    "lives",
    [
        [([0, 1], [0, 1]), ([1], [0, 1])],  # trained again, though it was stored
        [([0, 1], [0, 1]), ([], [0])],  # lost
        [([0, 0], [0])],  # twice, though no worker was killed
        [([0], [0, 1])],  # stored, and nobody has trained it
        [([0, 1], [0])],  # trained, and not stored
    ],
)
def test_others_may_not(tmp_path, live, lives):
    assert trained(tmp_path, *(live(number, *one) for number, one in enumerate(lives)))[2] == 1


def test_every_cell_that_differs_is_counted():
    one = {"a.csv": [["x", "y"], ["1", "2"], ["3", "4"]], "b.csv": [["z"]]}
    assert remains.differing(one, one) == []
    other = {"a.csv": [["x", "y"], ["1", "0"]], "c.csv": [["z"]]}
    assert len(remains.differing(one, other)) == 1 + 2 + 1 + 1


def test_what_other_programs_have_in_shared_memory_is_not_left_behind(tmp_path, monkeypatch):
    """Its folder may be the temporary one of a browser or a database."""
    monkeypatch.setattr(remains, "MEMORY", tmp_path)
    for name in ("psm_1", "torch_2", "sem.mp-3", "plasma-4", "PostgreSQL.5"):
        (tmp_path / name).touch()
    (tmp_path / "org.chromium.Chromium.6").mkdir()
    assert remains.shared_memory() == {"psm_1", "torch_2", "sem.mp-3", "plasma-4"}
