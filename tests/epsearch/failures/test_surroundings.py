"""Odd surroundings: no memory, closed streams. One line or none, and the status says whose fault it is."""

import os
import subprocess
import sys

import pytest

from epsearch.failures import address_space
from tests.support.ledgers import ARGUMENTS, NAME, finished
from tests.support.limits import HANGS

resource = pytest.importorskip("resource")
EPSEARCH = [sys.executable, "-m", "epsearch"]
MIB = 2**20


def run(*arguments, before=lambda: None, **options):
    """What came of the command; before: called in its process before it begins."""
    command = [*EPSEARCH, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANGS, preexec_fn=before, **options)


def limited(mib):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (mib * MIB, mib * MIB))


@pytest.mark.few(1)
@pytest.mark.skipif(sys.platform != "linux", reason="others need not limit the address space")
@pytest.mark.parametrize("mib", [100, pytest.param(200, marks=pytest.mark.slow), 400, 800, 1600])
def test_a_run_without_memory_for_its_libraries(tmp_path, mib):
    done = run("run", "--out", tmp_path, "--quiet", before=limited(mib))
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert line.startswith("epsearch: out of memory (") and "a bug" not in line and "Traceback" not in line


def test_room_is_made_sure_of_before_a_library_that_needs_it(monkeypatch):
    limit, asked = 300 * MIB, []

    def full(number, size):
        asked.append(size)
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(address_space.mmap, "mmap", full)
    address_space.check(limit, "scipy")
    address_space.check(limit, "numpy.linalg")
    assert not asked
    with pytest.raises(MemoryError, match=r"^no room for scipy.linalg in the 300 MiB of `ulimit -v`$"):
        address_space.check(limit, "scipy.linalg")
    assert asked == [address_space.OWN + address_space.EACH * os.cpu_count()]


def test_without_a_limit_nothing_is_looked_at(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    before = [*sys.meta_path]
    address_space.check_imports()
    assert sys.meta_path == before


COMMANDS = [
    (["list", "--json"], 0),
    (["list"], 0),
    (["--help"], 0),
    (["show", "nobody"], 2),
    (["datasets", "--json"], 0),
]


def closures():
    """Every command with every closed stream; in the default suite all are closed, and each for one command."""
    for arguments, status in COMMANDS:
        for closed in [(1,), (2,), (1, 2), (0, 1, 2)]:
            few = closed == (0, 1, 2) or arguments == ["list", "--json"] or (closed == (1,) and status)
            marks = [] if few else [pytest.mark.slow]
            yield pytest.param(arguments, status, closed, marks=marks, id=f"{' '.join(arguments)} {closed}")


@pytest.mark.slow
@pytest.mark.few(4)
@pytest.mark.parametrize(("arguments", "status", "closed"), [*closures()])
def test_streams_that_are_closed(tmp_path, arguments, status, closed):
    place = [] if arguments[0] in ("--help", "datasets") else ["--out", tmp_path]
    if not status:
        place = ["--out", finished()] if place else []
    done = run(*arguments, *place, before=lambda: [os.close(number) for number in closed])
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr and done.stderr.count("\n") == (status > 0 and 2 not in closed)


@pytest.fixture
def gone(tmp_path):
    """A function that makes a process work in a folder that is gone."""

    def leave():
        place = tmp_path / "gone"
        place.mkdir()
        os.chdir(place)
        place.rmdir()

    return leave


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.skipif(sys.platform != "linux", reason="others do not let a folder go that somebody works in")
@pytest.mark.parametrize(
    "arguments", [["list"], ["show", NAME], ["report", NAME], ["run", *ARGUMENTS, "--name", NAME], ["plan", *ARGUMENTS]]
)
def test_a_working_folder_that_is_gone(gone, arguments):
    done = run(*arguments, "--out", finished(), before=gone)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="others do not let a folder go that somebody works in")
def test_a_relative_path_leads_nowhere_then(gone):
    for arguments in (["list"], ["run", *ARGUMENTS]):
        done = run(*arguments, "--out", "relative", before=gone)
        assert done.returncode in (1, 2), done.stderr
        assert done.stderr.startswith("epsearch: ") and done.stderr.count("\n") == 1
