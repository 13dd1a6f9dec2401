"""A trainer with `save` and `load` that is killed, at whatever moment, ends as it would have without that."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.support.limits import HANGS
from tests.support.toy_streams import digits
from trainers.foreign.declaration import read_declaration
from trainers.foreign.running import Request, Run, train
from trainers.plugins.calls import ForeignError

pytestmark = pytest.mark.slow

SEED, TASKS = 3, range(4)

# Learns from what it draws, too, so that a generator in another state is seen; dies once, at the moment in a file.
MINE = """
import os, random, signal, time
import numpy as np
from pathlib import Path

def at(moment, folder):
    with open(folder / "log", "a") as log:
        log.write(moment + "\\n")
    order = folder / "die"
    if order.exists() and order.read_text() == moment:
        order.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    if (folder / "wait").exists() and (folder / "wait").read_text() == moment:
        time.sleep(600)

class Mine:
    def __init__(self):
        self.weights = None

    def train(self, values, stream, seed, report):
        self.folder = folder = Path(values["folder"])
        if self.weights is None:
            self.weights = np.random.randn(stream.shape[0], stream.outputs)
        def predict(inputs, task):
            np.random.rand(3)  # tests must not move generators
            return (inputs @ self.weights).argmax(1)
        report(-1, predict)
        for task in stream.tasks:
            at(f"begin {task}", folder)
            inputs, labels = stream.train(task)
            for label in range(10):
                self.weights[:, label] += inputs[labels == label].mean(0) + 0.3 * random.random() * np.random.randn()
            report(task - 1, predict, batches=1)
            at(f"middle {task}", folder)
            report(task, predict)
            at(f"end {task}", folder)

    def save(self, path):
        at("save", self.folder)
        with open(path, "wb") as file:
            np.save(file, self.weights)

    def load(self, path):
        with open(path, "rb") as file:
            self.weights = np.load(file)
"""


@pytest.fixture
def run(tmp_path, write):
    """run(seed, …): the result; `source` is known, as it is to a study."""
    name = write(MINE)
    source = read_declaration(f"{name}:Mine", tmp_path).source

    def run(seed=SEED, folder=tmp_path / "kept", **values):
        request = Request(f"{name}:Mine", tmp_path, source)
        stream = digits(TASKS, examples=200)
        return train(request, Run({"folder": str(tmp_path)} | values, seed, stream), folder=folder)

    return run


@pytest.fixture
def log(tmp_path):
    """log(): tasks that were begun since the last call."""

    def log():
        lines = (tmp_path / "log").read_text().splitlines()
        (tmp_path / "log").unlink()
        return [int(line.split()[1]) for line in lines if line.startswith("begin")]

    return log


def same(one, other):
    assert one.fingerprints == other.fingerprints and one.note == other.note
    for name in ("accuracies", "initial", "within"):
        assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True)


def kept(tmp_path):
    return [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("moment", "begun"),
    [("begin 0", [0, 1, 2, 3]), ("save", [0, 1, 2, 3]), ("end 0", [1, 2, 3]), ("middle 2", [2, 3]), ("end 3", [])],
)
def test_a_run_that_is_killed_goes_on_after_its_last_task(run, log, tmp_path, moment, begun):
    whole = run()
    assert log() == list(TASKS) and kept(tmp_path) == []
    assert np.isfinite(whole.initial).all() and np.isfinite(whole.within[0, :, :2]).all()
    (tmp_path / "die").write_text(moment)
    with pytest.raises(ForeignError, match="SIGKILL"):
        run()
    log()
    same(run(), whole)
    assert log() == begun if begun else not (tmp_path / "log").exists()
    assert kept(tmp_path) == []


PARENT = """
import sys
from pathlib import Path
from tests.support.toy_streams import digits
from trainers.foreign.declaration import read_declaration
from trainers.foreign.running import Request, Run, train
folder = Path(sys.argv[1])
request = Request("mine:Mine", folder, read_declaration("mine:Mine", folder).source)
train(request, Run({"folder": str(folder)}, 3, digits(range(4), examples=200)), folder=folder / "kept")
"""


def test_so_does_a_run_whose_parent_was_killed(run, log, tmp_path):
    whole, until = run(), time.monotonic() + HANGS
    log()
    (tmp_path / "wait").write_text("middle 2")
    with subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], cwd=Path(__file__).parents[3]) as parent:
        while "middle 2" not in ((tmp_path / "log").read_text() if (tmp_path / "log").exists() else ""):
            assert time.monotonic() < until and parent.poll() is None
            time.sleep(0.05)
        parent.send_signal(signal.SIGKILL)
    (tmp_path / "wait").unlink()
    log()
    same(run(), whole)
    assert log() == [2, 3] and kept(tmp_path) == []


def interrupted(run, tmp_path, moment="middle 2"):
    (tmp_path / "die").write_text(moment)
    with pytest.raises(ForeignError):
        run()


def test_a_damaged_file_is_as_good_as_none(run, log, tmp_path, told):
    whole = run()
    interrupted(run, tmp_path)
    (file,) = kept(tmp_path)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    log()
    same(run(), whole)
    assert log() == list(TASKS)
    assert len(told) == 1 and "cannot be used, it is damaged" in told[0]


def test_what_was_kept_is_of_one_run_alone(run, log, tmp_path, write):
    interrupted(run, tmp_path)
    log()
    assert len(kept(tmp_path)) == 1
    run(seed=SEED + 1)
    assert log() == list(TASKS)
    run(other=1)
    assert log() == list(TASKS)
    assert len(kept(tmp_path)) == 1
    write(MINE + "\n")
    with pytest.raises(ForeignError, match=r"^mine\.py of trainer 'mine:Mine' "):
        run()
    request = Request("mine:Mine", tmp_path, read_declaration("mine:Mine", tmp_path).source)
    train(request, Run({"folder": str(tmp_path)}, SEED, digits(TASKS, examples=200)), folder=tmp_path / "kept")
    assert log() == list(TASKS)


def test_without_a_folder_or_a_source_nothing_is_kept(run, tmp_path):
    (tmp_path / "die").write_text("save")
    run(folder=None)
    assert (tmp_path / "die").exists()  # it was never asked to save
    request = Request("mine:Mine", tmp_path)
    train(request, Run({"folder": str(tmp_path)}, SEED, digits(TASKS, examples=20)), folder=tmp_path / "kept")
    assert (tmp_path / "die").exists() and kept(tmp_path) == []


def test_who_trains_all_tasks_again_is_told_so(tmp_path, write):
    write(MINE.replace("in stream.tasks", "in range(len(stream))"))
    request = Request("mine:Mine", tmp_path, read_declaration("mine:Mine", tmp_path).source)
    run = Run({"folder": str(tmp_path)}, SEED, digits(TASKS, examples=200))
    (tmp_path / "die").write_text("end 1")
    with pytest.raises(ForeignError, match="signal 9"):
        train(request, run, folder=tmp_path / "kept")
    with pytest.raises(ForeignError, match=r"failed in task 2 with ValueError: report\(-1, .* task 2 is being"):
        train(request, run, folder=tmp_path / "kept")


def test_a_save_that_fails_says_so(tmp_path, write):
    write(MINE.replace("np.save(file, self.weights)", "1 / 0"))
    request = Request("mine:Mine", tmp_path, read_declaration("mine:Mine", tmp_path).source)
    run = Run({"folder": str(tmp_path)}, SEED, digits(TASKS, examples=200))
    with pytest.raises(ForeignError, match=r"failed in task 1 with ZeroDivisionError: .*, at mine\.py:\d+: 1 / 0"):
        train(request, run, folder=tmp_path / "kept")
    assert train(request, run).fingerprints[0]
