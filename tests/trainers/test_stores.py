"""Runs that are kept for all machines: whatever happens to the store, the result is the same, and one line says so."""

import contextvars
import itertools
import threading

import pytest
from fsspec.implementations.memory import MemoryFileSystem

import trainers.checkpoints
from tests.support.killing import train_until_kept
from tests.support.learners import SMALL, few, train
from tests.support.numeric_paths import MKL, rows_equal
from tests.support.toy_streams import toy
from trainers import Cohort
from trainers.persistence.places import Folder
from trainers.population import Training

STREAM = toy(range(4))
LEARNERS = [few("soft_agem", epsilon=0.2), few("soft_agem", epsilon=0.7)]
NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def after_every_task(monkeypatch):
    monkeypatch.setattr(trainers.checkpoints, "AT_MOST_EVERY", 0.0)


@pytest.fixture(scope="module")
def whole():
    return train(LEARNERS, STREAM, MKL)


@pytest.fixture(params=["folder", "memory://"])
def store(request, tmp_path):
    return tmp_path / "store" if request.param == "folder" else f"memory://stores-{next(NUMBERS)}/below"


def finish(store, keep="newest"):
    Training(STREAM, SMALL, MKL, store=store, keep=keep).checkpoints(Cohort(tuple(LEARNERS))).delete(LEARNERS)


def kept(store):
    """Names of all files."""
    if "://" in str(store):
        found = MemoryFileSystem().find(str(store).removeprefix("memory:/"))
        return sorted(path.rpartition("/")[2] for path in found)
    return sorted(path.name for path in store.rglob("*") if path.is_file())


def same(result, whole):
    return all(rows_equal(result, row, whole, row) for row in range(2))


def test_a_killed_run_goes_on_elsewhere(store, whole, monkeypatch, told):
    train_until_kept(monkeypatch, 2, LEARNERS, STREAM, MKL, store=store)
    assert len(kept(store)) == 2  # the newest of each
    again = train(LEARNERS, STREAM, MKL, store=store)
    assert same(again, whole) and again.saved == 2 * 3 * 6
    assert kept(store) == [] and told == []


def test_until_somebody_forgets_it_a_run_that_has_ended_is_there(store, whole, told):
    """Who trains it does not know whether its result is in a ledger."""
    train(LEARNERS, STREAM, MKL, store=store, keep="newest")
    assert [name.split("_")[1] for name in kept(store)] == ["3", "3"]
    again = train(LEARNERS[::-1], STREAM, MKL, store=store, keep="newest")
    assert again.saved == 2 * 4 * 6 and all(rows_equal(again, row, whole, 1 - row) for row in range(2))
    finish(store)
    assert kept(store) == [] and told == []


def test_forgetting_a_run_leaves_its_fork_points(store, whole):
    train(LEARNERS, STREAM, MKL, store=store, keep="all")
    assert len(kept(store)) == 2 * 4
    assert same(train(LEARNERS, STREAM, MKL, store=store), whole)  # at its end all but the fork points would go
    finish(store)
    assert len(kept(store)) == 2 * 4
    finish(store, keep="all")
    assert kept(store) == []


def test_another_machine_starts_anew_and_says_so_once(store, whole, monkeypatch, told):
    here = trainers.checkpoints.machine(MKL)
    monkeypatch.setattr(trainers.checkpoints, "machine", lambda path: [*here[:-1], "OTHER_ONE"])
    train_until_kept(monkeypatch, 2, LEARNERS, STREAM, MKL, store=store)
    monkeypatch.setattr(trainers.checkpoints, "machine", lambda path: here)
    again = train(LEARNERS, STREAM, MKL, store=store, keep="newest")
    assert same(again, whole) and again.saved == 6  # of the first task, which the two share
    (line,) = told
    assert line.startswith(f"checkpoints at {store} ") or line.startswith(
        f"{store} has checkpoints from another machine"
    )
    assert "OTHER-ONE" in line and line.endswith(": runs start anew")
    finish(store)
    assert kept(store) == []  # those of the other machine, too


@pytest.mark.parametrize("damage", [lambda whole: b"", lambda whole: whole[:-9], lambda whole: b"x" + whole[1:]])
def test_damaged_files_are_made_again(damage, whole, tmp_path, monkeypatch, told):
    train_until_kept(monkeypatch, 2, LEARNERS[:1], STREAM, MKL, store=tmp_path)
    (file,) = tmp_path.rglob("*.kept")
    file.write_bytes(damage(file.read_bytes()))
    again = train(LEARNERS, STREAM, MKL, store=tmp_path)
    assert same(again, whole)
    assert told == [f"{file} cannot be used, it is damaged: what it kept is trained again"]


def test_half_a_file_loses_one_task(whole, tmp_path, monkeypatch, told):
    """The file of the task before is removed only when the new one is there."""

    def interrupted(self, names):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Folder, "remove", interrupted)
        train(LEARNERS[:1], STREAM, MKL, store=tmp_path)
    _, second = sorted(tmp_path.rglob("*.kept"))
    second.write_bytes(second.read_bytes()[:-100])
    again = train(LEARNERS[:1], STREAM, MKL, store=tmp_path)
    assert rows_equal(again, 0, whole, 0) and again.saved == 6 and len(told) == 1


def test_files_of_others_are_left_alone(whole, tmp_path, monkeypatch, told):
    train_until_kept(monkeypatch, 2, LEARNERS, STREAM, MKL, store=tmp_path)
    (folder,) = tmp_path.iterdir()
    one, other = sorted(folder.iterdir())
    other.write_bytes(one.read_bytes())  # whole, but of another run
    for foreign in (folder / "README", folder / "x_1_y.kept", tmp_path / "notes"):
        foreign.write_text("mine")
    assert same(train(LEARNERS, STREAM, MKL, store=tmp_path), whole)
    (line,) = told
    assert line.startswith(f"{other} ")
    assert kept(tmp_path) == ["README", "notes", "x_1_y.kept"]


@pytest.mark.parametrize("works", [0, 1, 3])
@pytest.mark.parametrize("call", ["names", "write", "remove"])
def test_a_store_that_fails_on_the_way_stops_nothing(call, works, whole, tmp_path, monkeypatch, told):
    calls, original = itertools.count(), getattr(Folder, call)

    def fail(self, *given):
        if next(calls) >= works:
            raise OSError(28, "No space left on device")
        return original(self, *given)

    monkeypatch.setattr(Folder, call, fail)
    assert same(train(LEARNERS, STREAM, MKL, store=tmp_path), whole)
    if next(calls) > works:
        end = ("training goes on without them", "they stay there")
        (line,) = told
        assert line.startswith(f"checkpoints at {tmp_path} cannot be used, No space left on device: ")
        assert line.endswith(end)
    else:
        assert told == [] and call == "names"


def test_a_store_that_nobody_knows_stops_nothing(whole, told):
    assert same(train(LEARNERS, STREAM, MKL, store="nothing://x"), whole)
    assert told == [
        "checkpoints at nothing://x cannot be used, Protocol not known: nothing: training goes on without them"
    ]


def test_a_store_that_has_failed_is_not_asked_again_for_a_while(whole, tmp_path, monkeypatch, told):
    """By no cohort of this process: storage that hangs would hold every one of them up."""
    asked = []

    def fail(self, folder):
        asked.append(folder)
        raise OSError("no answer within 120 seconds")

    monkeypatch.setattr(Folder, "names", fail)
    for _ in range(3):
        assert same(train(LEARNERS, STREAM, MKL, store=tmp_path), whole)
    assert len(asked) == len(told) == 1
    monkeypatch.setattr("trainers.persistence.runs.RETRY_SECONDS", 0.0)
    assert same(train(LEARNERS, STREAM, MKL, store=tmp_path), whole)
    assert len(asked) == len(told) == 2


def test_two_who_train_the_same_at_once_do_each_other_no_harm(store, whole, told):
    results, context = [], contextvars.copy_context()

    def run(context):
        results.append(context.run(train, LEARNERS, STREAM, MKL, store=store, keep="newest"))

    threads = [threading.Thread(target=run, args=(context.copy(),)) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    results.append(train(LEARNERS, STREAM, MKL, store=store, keep="newest"))
    assert len(results) == 3 and all(same(one, whole) for one in results) and results[-1].saved == 2 * 4 * 6
    assert told == []
