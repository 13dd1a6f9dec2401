"""What a run leaves behind where it is killed is cleared up, and nothing else."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from epsearch.runners.on_ray import cleanup
from tests.support.descendants import gone
from tests.support.limits import HANGS

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc")

# Tells its folder and the number of a process of its own, which does not end by itself.
RUN = """
import os, subprocess, sys
from pathlib import Path
from epsearch.runners.on_ray import cleanup

with cleanup.run_folder(Path(sys.argv[1])) as folder:
    environment = os.environ | cleanup.environment(folder)
    sleep = [sys.executable, "-c", "import time; time.sleep(36000)"]
    child = subprocess.Popen(sleep, start_new_session=True, env=environment)
    print(folder, child.pid, flush=True)
    sys.stdin.read()
"""


def start(base):
    """(run, its folder, a descriptor of its process) of a run that waits for its standard input to be closed."""
    command = [sys.executable, "-c", RUN, str(base)]
    run = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    folder, child = run.stdout.readline().split()
    assert Path(folder, cleanup.LOCK).is_file()
    return run, Path(folder), os.pidfd_open(int(child))


def end(run):
    with run.stdin, run.stdout:
        pass
    run.wait(timeout=HANGS)


def until(condition):
    deadline = time.monotonic() + HANGS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_run_takes_everything_with_it(tmp_path):
    run, folder, child = start(tmp_path)
    end(run)
    assert run.returncode == 0 and gone(child) and not folder.exists()


def test_what_is_killed_is_cleared_up_at_once(tmp_path):
    run, folder, child = start(tmp_path)
    run.kill()
    assert gone(child)
    until(lambda: not folder.exists())
    end(run)


@pytest.mark.slow
def test_where_that_was_killed_too_the_next_run_does_it_and_touches_nothing_else(tmp_path):
    (tmp_path / "epsearch-of-somebody").mkdir()
    (tmp_path / "other").mkdir()
    works, its_folder, its_child = start(tmp_path)
    run, folder, child = start(tmp_path)
    (watcher,) = [pid for pid in map(int, children(run.pid)) if cleanup.__file__ in arguments(pid)]
    os.kill(watcher, signal.SIGKILL)
    run.kill()
    end(run)
    assert cleanup.abandoned_folders(tmp_path) == [folder]
    with cleanup.run_folder(tmp_path) as another:
        assert gone(child) and not folder.exists()
        here = {path.name for path in tmp_path.iterdir()}
        assert here == {"epsearch-of-somebody", "other", its_folder.name, another.name}
        assert works.poll() is None and len(cleanup.processes(its_folder)) == 1
    assert not another.exists()
    end(works)
    assert gone(its_child)


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def arguments(pid):
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def test_a_folder_with_a_long_name_is_no_place_for_sockets(tmp_path, monkeypatch):
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    monkeypatch.setattr(cleanup.tempfile, "gettempdir", lambda: str(tmp_path))
    assert cleanup.temporary() == Path("/tmp")
    monkeypatch.setenv("RAY_TMPDIR", "/var/tmp")
    assert cleanup.temporary() == Path("/var/tmp")
