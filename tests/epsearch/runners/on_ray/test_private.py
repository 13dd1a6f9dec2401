"""A private Ray is kept by a process of its own: what it loses, whenever, is an error of this process, not its end."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from epsearch.failures.errors import Unavailable
from epsearch.runners.on_ray import cleanup, private, ray_start
from epsearch.runners.on_ray.private import PrivateRay
from tests.support.descendants import descendants
from tests.support.limits import HANGS

STAYS = "import sys; sys.stdin.read()"


@pytest.fixture
def own(monkeypatch):
    """A function that makes one whose first process says these objects, and then does something."""
    made = []

    def make(*said, then="pass"):
        lines = "".join(f"print({json.dumps(one)!r}, flush=True)\n" for one in said)
        monkeypatch.setattr(private, "HEAD", ["-c", lines + then])
        made.append(PrivateRay(1))
        return made[-1]

    yield make
    for one in made:
        one.end()


THERE = {"address": "127.0.0.1:1"}


@pytest.mark.parametrize(
    ("said", "then", "why"),
    [
        ([{"lost": "its gcs_server has ended"}], "pass", "its gcs_server has ended"),
        ([], "pass", "its first process has ended, with status 0"),
        ([], "raise SystemExit(3)", "its first process has ended, with status 3"),
        ([], "import os; os.abort()", "its first process has ended, with status -6"),
    ],
)
def test_a_ray_that_is_lost_while_it_starts(own, said, then, why):
    with pytest.raises(Unavailable) as error:
        own(*said, then=then).start()
    assert str(error.value) == f"Ray does not start here ({why}); try --runner local"


@pytest.mark.parametrize(
    ("said", "why"),
    [([THERE, {"lost": "its raylet has ended"}], "its raylet has ended"), ([THERE], "its first process has ended")],
)
def test_one_that_is_lost_before_it_is_joined_is_not_joined(own, said, why):
    one = own(*said)
    with pytest.raises(Unavailable, match=why):
        one.start()  # if it is lost as soon as that
        deadline = time.monotonic() + HANGS
        while not one.loss():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        one.join()


def test_one_that_is_lost_while_it_is_joined_is_waited_for_no_longer(own, monkeypatch):
    """Ray itself would look for the head for minutes."""
    asked, ends = threading.Event(), threading.Event()
    one = own(THERE, then='import sys; sys.stdin.readline(); print(\'{"lost": "its gcs_server has ended"}\')')
    monkeypatch.setattr(PrivateRay, "_join", lambda *_: (asked.set(), ends.wait(HANGS)))
    one.start()
    threading.Thread(
        target=lambda: asked.wait(HANGS) and one._process.stdin.write("\n") and one._process.stdin.flush()
    ).start()
    with pytest.raises(Unavailable, match="its gcs_server has ended"):
        one.join()
    ends.set()


def test_what_keeps_it_from_being_joined_is_told(own, monkeypatch):
    monkeypatch.setattr(ray_start, "enable_token", lambda: 1 / 0)
    one = own(THERE, then=STAYS)
    one.start()
    with pytest.raises(Unavailable, match=r"Ray cannot be joined \(division by zero\)"):
        one.join()


def test_one_that_does_not_answer(own, monkeypatch):
    monkeypatch.setattr(ray_start, "START_SECONDS", 0)
    with pytest.raises(Unavailable, match="it does not answer after 0 seconds"):
        own(then=STAYS).start()


def test_a_start_that_nobody_needs_any_more_ends_at_once(own):
    """Its process never answers, and would go on for ever."""
    one, ended = own(then="import time; time.sleep(36000)"), []

    def start():
        with pytest.raises(Unavailable) as error:
            one.start()
        ended.append(str(error.value))

    starting = threading.Thread(target=start)
    starting.start()
    deadline = time.monotonic() + HANGS
    while one._process is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    one._folder = Path("/of-a-run")  # whose processes are ended with its folder
    one.end()
    starting.join(HANGS)
    assert "it is no longer needed" in ended[0]
    one.kill()
    assert one._process.wait(HANGS) == -signal.SIGKILL


def test_one_that_ended_before_it_began_does_not_begin(own):
    one = own(THERE)
    one.end()
    with pytest.raises(Unavailable, match="no longer needed"):
        one.start()


@pytest.mark.cluster
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc")
def test_its_processes_listen_at_loopback_alone_and_end_with_it():
    """In a process of its own: Ray reads its settings when it is imported."""
    code = """import sys
from epsearch.runners.on_ray import cleanup
from epsearch.runners.on_ray.private import PrivateRay
with cleanup.run_folder() as folder:
    own = PrivateRay(1, folder)
    own.start(), own.join()
    import ray
    assert ray.get(ray.remote(lambda: 7).remote()) == 7
    print(folder, flush=True)
    sys.stdin.read()
    own.end()"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        folder = Path(run.stdout.readline().strip())
        theirs = [run.pid, *cleanup.processes(folder)]
        places = {place for pid in theirs for place in listening(pid)}
        names = {name for _, name in descendants(run.pid)}
        run.stdin.close()
        assert run.wait(HANGS) == 0
    assert {"raylet", "gcs_server"} <= names and places
    assert all(place in ("0100007F", "0000000000000000FFFF00000100007F") for place in places), places
    assert not folder.exists() and not any(map(cleanup.processes, [folder]))


def listening(pid):
    """Addresses at which a process listens, as Linux writes them."""
    sockets = set()
    for file in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            sockets.add(os.readlink(file))
        except OSError:
            continue
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                yield fields[1].partition(":")[0]


@pytest.mark.cluster
@pytest.mark.parametrize("kind", ["raylet", "gcs_server"])
def test_a_real_one_that_is_killed_before_it_is_joined(kind):
    code = f"""import os, signal, time
from epsearch.runners.on_ray import cleanup
from epsearch.runners.on_ray.private import PrivateRay
from tests.support.descendants import descendants
with cleanup.run_folder() as folder:
    own = PrivateRay(1, folder)
    own.start()
    os.kill(next(pid for pid, name in descendants(os.getpid()) if name == {kind!r}), signal.SIGKILL)
    while not own.loss():
        time.sleep(0.01)
    try:
        own.join()
    except Exception as error:
        print(error)
    own.end()"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[4])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"Ray was lost (its {kind} has ended); try --runner local\n"
