"""What a trainer leaves in memory, on disk and among processes is gone when its member ends, however it ends."""

import os
import subprocess
import textwrap
import uuid
from contextlib import suppress
from itertools import product
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.support.limits import HANGS
from trainers.foreign import process_tree
from trainers.foreign.shared_memory import SharedMemory
from trainers.plugins.calls import ForeignError

pytestmark = pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no shared memory to look at")

HEAD = """
import os, subprocess, tempfile, time
from multiprocessing import shared_memory
import numpy as np

def zeros(inputs, task):
    return np.zeros(len(inputs), int)

def train(values, stream, seed, report):
    global kept
    for task in range(len(stream)):
        stream.train(task)
        report(task, zeros)
"""


def body(text):
    return HEAD + textwrap.indent(textwrap.dedent(text).strip("\n"), "    ") + "\n"


@pytest.fixture(params=[False, True], ids=["anew", "copied"], autouse=True)
def copied(request):
    """Both ways to start."""
    return request.param


@pytest.fixture
def left():
    """How the names of a test's segments begin: others run beside it."""
    return f"left-{uuid.uuid4().hex[:12]}"


SEGMENTS = {
    "open": "kept = shared_memory.SharedMemory(left, create=True, size=4096)",
    "closed": "shared_memory.SharedMemory(left, create=True, size=4096).close()",
    "of its own name": "kept = open('/dev/shm/' + left, 'wb'); kept.write(b'x')",
    "mapped alone": (
        "import mmap\nwith open('/dev/shm/' + left, 'w+b') as file:\n    file.truncate(4096)\n"
        "    kept = mmap.mmap(file.fileno(), 4096)"
    ),
    "of a child": (
        "if os.fork() == 0:\n    kept = open('/dev/shm/' + left, 'wb')\n    time.sleep(600)\n"
        "while not os.path.exists('/dev/shm/' + left): time.sleep(0.01)"
    ),
    "of torch": (
        "import torch\ntorch.multiprocessing.set_sharing_strategy('file_system')\n"
        "kept = torch.zeros(9).share_memory_()\n"
        "left = next(name for name in os.listdir('/dev/shm') if name.startswith(f'torch_{os.getpid()}_'))"
    ),
    "a lock": (
        "import multiprocessing\nkept = multiprocessing.get_context('spawn').Lock()\n"
        "left = 'sem.' + kept._semlock.name.strip('/')"
    ),
}
ENDS = {
    "returns": "",
    "fails": "1 / 0",
    "is ended": (
        "for end in range(3, 1024):\n    try:\n        os.write(end, b'\\x01' * 100)\n"
        "    except OSError:\n        pass\n"
        "time.sleep(600)"
    ),
}


def leftovers():
    """All that can be left, at every end; in the default suite at one end, and a few at the others."""
    for end, segment in product(ENDS, SEGMENTS):
        few = end == "is ended" or segment in ("open", "of a child")
        marks = [] if few else [pytest.mark.slow]
        yield pytest.param(ENDS[end], SEGMENTS[segment], marks=marks, id=f"{segment}, {end}")


@pytest.mark.slow
@pytest.mark.few(4)
@pytest.mark.parametrize(("end", "segment"), [*leftovers()])
def test_shared_memory_is_removed(trained, left, tmp_path, segment, end):
    said = tmp_path / "name"
    try:
        trained(body(f"left = {left!r}\n{segment}\nopen({str(said)!r}, 'w').write(left)\n{end}"))
    except ForeignError:
        assert end
    assert said.read_text() not in os.listdir("/dev/shm")


class Process:
    def __init__(self, *words):
        self.cmdline = lambda: list(words)


def test_helpers_are_left_alone_from_their_start_on(monkeypatch):
    """A process that has only just become another program has no command line yet."""
    helper, beginning, other = Process("python", "multiprocessing.resource_tracker"), Process(), Process("sh")
    monkeypatch.setattr(psutil.Process, "children", lambda self, recursive: [helper, beginning, other])
    assert process_tree.descendants(os.getpid(), tidying=False) == [other]
    assert process_tree.descendants(os.getpid()) == [helper, beginning, other]


@pytest.mark.slow
def test_memory_that_others_have_stays(trained, left):
    mine = Path("/dev/shm", left)
    mine.write_bytes(b"mine")
    try:
        trained(body(f"kept = open({str(mine)!r}, 'r+b')"))
        assert mine.read_bytes() == b"mine", "it was there before"
    finally:
        mine.unlink()


def test_memory_that_another_process_uses_stays(left):
    memory, file = SharedMemory(), Path("/dev/shm", left)
    with file.open("wb") as opened:
        other = subprocess.Popen(["sleep", "600"], stdout=opened)
    try:
        assert memory.grows()
        memory.record([other.pid])
        assert not memory.grows()
        memory.remove()
        assert file.exists()
    finally:
        other.kill()
        other.wait()
    memory.remove()
    assert not file.exists()


@pytest.mark.slow
def test_system_v_segments_are_removed(trained):
    before = Path("/proc/sysvipc/shm").read_text()
    trained(body("import ctypes\nassert ctypes.CDLL(None).shmget(0, 4096, 0o1600) >= 0"))
    assert Path("/proc/sysvipc/shm").read_text().count("\n") <= before.count("\n")


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_temporary_files_are_removed(trained, tmp_path, end):
    said = tmp_path / "where"
    lines = f"name = tempfile.mkdtemp()\nopen(name + '/file', 'w').close()\nopen({str(said)!r}, 'w').write(name)\n{end}"
    try:
        trained(body(lines))
    except ForeignError:
        assert end
    assert said.read_text()
    assert not Path(said.read_text()).exists()


DAEMONS = {
    "a fork": (
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        exec({!r})\n        time.sleep(600)\n"
        "    os._exit(0)"
    ),
    "a program": "subprocess.Popen(['python3', '-c', {!r} + '; import time; time.sleep(600)'], start_new_session=True)",
}


@pytest.mark.slow
@pytest.mark.parametrize("daemon", DAEMONS.values(), ids=DAEMONS)
def test_a_trainer_that_kills_its_guard_leaves_no_daemon(trained, tmp_path, daemon):
    file = tmp_path / "pid"
    part = f"{file}.part"
    note = f"import os; open({part!r}, 'w').write(str(os.getpid())); os.rename({part!r}, {str(file)!r})"
    wait = f"while not os.path.exists({str(file)!r}): time.sleep(0.01)"
    text = f"{daemon.format(note)}\n{wait}\nos.kill(os.getppid(), 9)\ntime.sleep(600)"
    with pytest.raises(ForeignError, match="SIGKILL"):
        trained(body(text))
    pid = int(file.read_text())
    with suppress(psutil.NoSuchProcess):
        psutil.Process(pid).wait(HANGS)


@pytest.mark.slow
def test_results_are_the_same(trained, left):
    plain, other = trained(body("")), trained(body(f"left = {left!r}\n" + SEGMENTS["open"]))
    assert np.array_equal(plain.accuracies, other.accuracies, equal_nan=True)
