"""Studies with `--runner auto` whose Ray is killed while it starts beside threads: they end as if there were none."""

import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import pytest

from epsearch.runners import overheads
from tests.fuzz import remains
from tests.fuzz.chaos import gone
from tests.fuzz.victim import OPTIONS, Command
from tests.support.descendants import descendants
from tests.support.limits import HANGS

LOST = "epsearch: Ray was lost (its "
SHARE = float(os.environ.get("EPSEARCH_FUZZ_SHARE", "1"))
KILLS, SEED = 20, 1
KINDS = ("raylet", "gcs_server")
LONGEST = 8.0  # seconds that a start takes from its first process on, about
LONG = OPTIONS | {"batch_size": 2, "repeats": 3, "points": 6, "seeds": 6}
"""Longer than Ray takes to start, beside threads that have all cores."""

pytestmark = [
    pytest.mark.fuzz,
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc"),
]


@pytest.fixture
def folder(monkeypatch):
    """A folder with a short name, as Ray's sockets need one; in its cache a start of Ray pays at once."""
    made = Path(tempfile.mkdtemp(prefix="r-", dir="/tmp"))
    monkeypatch.setattr("tests.fuzz.victim.OPTIONS", LONG)
    yield made
    shutil.rmtree(made)


def begun(folder: Path, runner: str) -> Command:
    """A study that has not been started."""
    command = Command(folder, runner)
    command.disk.mkdir(parents=True)
    with patch.dict(os.environ, EPSEARCH_CACHE=command.environment["EPSEARCH_CACHE"]):
        for _ in range(overheads.RUNS):
            overheads.remember(overheads.RAY_START, 0.1)
    return command


def killed(command: Command, process, kind: str, delay: float) -> bool:
    """Kills a process of the Ray that starts, so long after it appeared; returns whether it did.

    Not where none has appeared, or Ray has workers by then: it has taken over, and is no Ray that starts.
    """
    deadline, until = time.monotonic() + HANGS, None
    while process.poll() is None and time.monotonic() < deadline:
        below = descendants(process.pid)
        found = [pid for pid, name in below if name == kind]
        if any(name.startswith(("ray::IDLE", "ray::train")) for _, name in below):
            return False
        if found and until is None:
            until = time.monotonic() + delay
        if found and time.monotonic() >= until:
            os.kill(found[0], signal.SIGKILL)
            return True
        time.sleep(0.005)
    return False


def test_ray_is_killed_while_it_starts(figures, folder):
    """Of every study nothing is lost, nothing differs from a run of threads alone, and nothing is left.

    Between joining Ray and its first worker the command may end in the line that Ray was lost; it is started again.
    """
    kills, dice, found = max(2, round(KILLS * SHARE)), random.Random(SEED), Counter()
    alone = begun(folder / "alone", "local")
    assert alone.wait() == 0, alone.err
    reference, files = remains.tables(alone), remains.files(alone)
    wrong = []
    while found["kills"] < kills:
        assert found["studies"] < 4 * kills, "Ray has always started before it could be killed"
        kind, delay = dice.choice(KINDS), dice.uniform(0, LONGEST)
        before, number = remains.shared_memory(), found["studies"]
        command = begun(folder / str(number), "auto")
        process = command.start()
        was_killed = killed(command, process, kind, delay)
        status = process.wait()
        found["studies"] += 1
        if status == 1 and [LOST in line for line in command.err.splitlines()] == [True]:
            found["just after it was joined"] += was_killed
            was_killed, status = False, command.wait()
        found["kills"] += was_killed
        found[kind] += was_killed
        left = gone(lambda command=command, before=before: [
            *(remains.files(command) - files), *remains.processes(command), *(remains.shared_memory() - before)
        ])  # fmt: skip
        differing = remains.differing(remains.tables(command), reference) if status == 0 else []
        if status or left or differing or "Traceback" in command.err:
            wrong.append((kind, delay, status, left, differing[:3], command.err[-800:]))
        shutil.rmtree(command.folder)
    figures("a Ray that starts, killed", **found, wrong=len(wrong))
    assert not wrong
