"""A check that is interrupted goes on where it stopped, and says what it has found as soon as it is known."""

from pathlib import Path

import pytest

from epsearch.checking import check as checking
from epsearch.checking.check import check
from epsearch.failures.errors import Interrupted
from tests.support import own_trainers
from tests.support.events import Recorded

SIZES = {"tasks": 4, "cv_tasks": 2, "examples_per_task": 60, "device": "cpu"}
OPTIONS = [part for name, value in SIZES.items() for part in (f"--{name.replace('_', '-')}", str(value))]
SEARCH = {"search": "lr=log:0.01..1", "set": "memory=5"}
ROWS = ["matrix", "accuracies", "time", "repeats", "seed", "lr", "later tasks", "start", "peak memory"]


@pytest.fixture(autouse=True)
def trained(tmp_path, monkeypatch):
    """The trainings of this test, by their values and seeds."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(Path(own_trainers.__file__).read_text("utf-8"), encoding="utf-8")
    trainings, original = [], checking.train

    def train(request, run, *others, **more):
        trainings.append((run.values["lr"], run.seed))
        return original(request, run, *others, **more)

    monkeypatch.setattr(checking, "train", train)
    return trainings


class Interrupting(Recorded):
    """Ends a check while it trains for the nth time."""

    def __init__(self, training):
        super().__init__()
        self._training = training

    def stop_wanted(self):
        return len([line for line in self.notes if line.startswith("training ")]) >= self._training


def checked(listener=None, found=lambda one: None, **options):
    return check(SIZES | SEARCH | {"trainer": "mine:softmax"} | options, listener or Recorded(), found)


def same(one, other):
    """Whether two reports have the same findings, but for what is measured anew."""
    measured = ("time", "start", "peak memory")
    return [each for each in one.findings if each.subject not in measured] == [
        each for each in other.findings if each.subject not in measured
    ] and one.inert == other.inert


@pytest.mark.slow
def test_it_goes_on_where_it_stopped(trained, cache):
    whole = checked()
    assert len(trained) == 5 and len([*(cache / "checked").iterdir()]) == 1, "only the report is left"
    trained.clear()
    rows = []
    with pytest.raises(Interrupted):
        checked(Interrupting(4), rows.append)
    assert [one.subject for one in rows] == ROWS[:5] and len(trained) == 4
    trained.clear()
    rows, events = [], Recorded()
    report = checked(events, rows.append)
    assert trained == [(0.01, 0), (1.0, 0)] and same(report, whole)
    assert [one.subject for one in rows] == ROWS and {*rows} == {*report.findings}
    assert events.notes[-5] == "training 1 of at most 5: as it is, stored before the interruption"
    assert len([*(cache / "checked").iterdir()]) == 1
    trained.clear()
    checked()
    assert len(trained) == 5, "a check that came to its end is made anew"


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", [{"set": "memory=6"}, {"search": "lr=log:0.02..1"}, {"seeds": "3,4"}, {"examples_per_task": 70}, "edited"]
)
@pytest.mark.few(2)
def test_other_arguments_and_an_edited_trainer_begin_anew(trained, change):
    with pytest.raises(Interrupted):
        checked(Interrupting(2))
    trained.clear()
    if change == "edited":
        with open("mine.py", "a", encoding="utf-8") as file:
            file.write("# edited\n")
        change = {}
    with pytest.raises(Interrupted):
        checked(Interrupting(1), **change)
    assert len(trained) == 1


@pytest.mark.slow
def test_damage_of_what_is_stored_is_told_and_not_believed(trained, cache):
    with pytest.raises(Interrupted):
        checked(Interrupting(3))
    (path,) = (cache / "checked").iterdir()
    path.write_bytes(path.read_bytes().replace(b"result", b"resu1t"))
    trained.clear()
    events = Recorded()
    checked(events)
    assert len(trained) == 5 and any("it is damaged: it is trained again" in line for line in events.warnings)


@pytest.mark.slow
def test_rows_are_printed_one_by_one(epsearch, trained, monkeypatch):
    """Also those of a check that ends in the middle, with the line that says that it goes on."""
    original = checking.train

    def train(request, run, *others, **more):
        if len(trained) == 3:
            raise KeyboardInterrupt
        return original(request, run, *others, **more)

    monkeypatch.setattr(checking, "train", train)
    arguments = ["check", "mine:softmax", "--search", SEARCH["search"], "--set", SEARCH["set"], *OPTIONS]
    told = epsearch(*arguments, "--quiet")
    lines = [line.split() for line in told.out.splitlines()]
    assert [words[:2] for words in lines] == [["yes", row] for row in ROWS[:5]]
    assert told.status == 130 and told.err.strip() == (
        "epsearch: stopped; the same command resumes from what is stored"
    )
    monkeypatch.setattr(checking, "train", original)
    told = epsearch(*arguments)
    assert told.status == 0 and "it can be trusted" in told.out.splitlines()[-1]
    assert told.out.count("yes ") == len(ROWS) and told.err.count("stored before the interruption") == 3
