"""Runs that are stopped by signals at any stage, and whose disk fills up: one line, and the same tables in the end."""

import itertools
import os
import random
import resource
import signal
import subprocess

import pytest

from tests.fuzz.runs import Run

pytestmark = pytest.mark.fuzz

SHARE = float(os.environ.get("EPSEARCH_FUZZ_SHARE", "1"))
SIGNALS = {name: [getattr(signal, f"SIG{name}")] for name in ("INT", "TERM", "HUP", "KILL")} | {"INTs": []}
STAGES = {
    "importing": lambda run: run.imported("yaml"),
    "searching": lambda run: run.rows("cv") >= 2,
    "evaluating": lambda run: run.rows("eval") >= 1,
    "reporting": lambda run: (run.out / "fuzzed").exists(),
}
CASES = random.Random(1).sample(list(itertools.product(STAGES, SIGNALS)), max(2, int(20 * min(1, SHARE))))
SIZES = max(2, int(12 * SHARE))
SMALLEST = 16 * 1024  # bytes: less, and no ledger is begun


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A run that nothing has happened to."""
    run = Run(tmp_path_factory.mktemp("undisturbed"))
    assert run.wait() == 0, run.err
    return run


def test_signals(figures, undisturbed, tmp_path):
    dice, stopped, ended, found = random.Random(2), 0, 0, []
    for number, (stage, name) in enumerate(CASES):
        run = Run(tmp_path / str(number), flags=("-X", "importtime"))
        process = run.until(STAGES[stage])
        for one in SIGNALS[name] or [signal.SIGINT] * dice.randint(2, 5):
            process.send_signal(one)
        status = process.wait()
        stopped, ended = stopped + (status != 0), ended + (status == 0)
        if problem := wrong(status, name, run):
            found.append((stage, name, problem, run.err[-500:]))
        again = Run(run.folder)
        if again.wait() != 0 or again.tables() != undisturbed.tables():
            found.append((stage, name, "not resumed to the same tables", again.err[-500:]))
    figures("signals", tried=len(CASES), stopped=stopped, ended_before_the_signal=ended, wrong=len(found))
    assert not found, found
    assert stopped >= len(CASES) * 3 // 4


def wrong(status, name, run):
    """What is wrong with how a run ended; None where nothing is."""
    if "Traceback" in run.err or "Exception ignored" in run.err:
        return "a traceback"
    if status == 0:
        return None  # it had ended before
    if name == "KILL":
        return None if status == -signal.SIGKILL and not run.last_words else f"status {status}"
    return None if status == 130 and len(run.last_words) == 1 else f"status {status}, {len(run.last_words)} lines"


class Disk:
    """A disk of so many bytes: a file system in memory where we may mount one, else a limit on the size of a file."""

    def __init__(self, folder, size):
        folder.mkdir()
        self.folder, self.size = folder, size
        self.mounted = self._mount(f"size={size}")

    def _mount(self, options):
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.folder)]
        return os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0

    def limit(self):
        """For the process that is to run on it."""
        if not self.mounted:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.size))

    def make_room(self):
        """From now on it is large."""
        if self.mounted:
            subprocess.run(["mount", "-o", "remount,size=1g", str(self.folder)], check=True)

    def remove(self):
        if self.mounted:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=True)


def test_a_disk_that_fills_up(figures, undisturbed, tmp_path):
    """Sizes from the smallest ledger to nearly all that a run writes, each larger by the same factor."""
    largest = 0.95 * undisturbed.size()
    factor = (largest / SMALLEST) ** (1 / max(1, SIZES - 1))
    found, mounted, statuses = [], 0, []
    for number in range(SIZES):
        (tmp_path / str(number)).mkdir()
        disk = Disk(tmp_path / str(number) / "disk", int(SMALLEST * factor**number))
        mounted += disk.mounted
        try:
            run = Run(tmp_path / str(number), disk.folder, before=disk.limit)
            process = run.until(lambda run: "trying again" in run.err)
            if process.poll() is None:  # it would wait for five minutes
                process.send_signal(signal.SIGINT)
            status = process.wait()
            statuses.append(status)
            if status not in (1, 130) or "Traceback" in run.err or len(run.last_words) != 1:
                found.append((disk.size, status, run.err[-500:]))
            disk.make_room()
            again = Run(run.folder, disk.folder)
            if again.wait() != 0 or again.tables() != undisturbed.tables():
                found.append((disk.size, "not resumed to the same tables", again.err[-500:]))
        finally:
            disk.remove()
    figures(
        "full disks",
        tried=SIZES,
        mounted=mounted,
        ended=statuses.count(1),
        waited=statuses.count(130),
        wrong=len(found),
    )
    assert not found, found
