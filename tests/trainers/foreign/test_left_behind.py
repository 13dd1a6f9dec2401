"""What a trainer leaves in memory, on disk and among processes is gone when its member ends, however it ends."""

import os
import subprocess
import textwrap
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.support.limits import HANGS
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


def names():
    """Segments of trainers: what other tests make meanwhile begins otherwise."""
    return {name for name in os.listdir("/dev/shm") if name.startswith(("left-", "psm_", "torch_", "sem.mp-"))}


SEGMENTS = {
    "open": "kept = shared_memory.SharedMemory('left-a', create=True, size=4096)",
    "closed": "shared_memory.SharedMemory('left-b', create=True, size=4096).close()",
    "of its own name": "kept = open('/dev/shm/left-c', 'wb'); kept.write(b'x')",
    "mapped alone": (
        "import mmap\nwith open('/dev/shm/left-d', 'w+b') as file:\n    file.truncate(4096)\n"
        "    kept = mmap.mmap(file.fileno(), 4096)"
    ),
    "of a child": (
        "if os.fork() == 0:\n    kept = open('/dev/shm/left-e', 'wb')\n    time.sleep(600)\n"
        "while not os.path.exists('/dev/shm/left-e'): time.sleep(0.01)"
    ),
    "of torch": "import torch\nkept = torch.zeros(1000).share_memory_()",
    "a lock": "import multiprocessing\nkept = multiprocessing.get_context('spawn').Lock()",
}
ENDS = {
    "returns": "",
    "fails": "1 / 0",
    "is ended": (
        "for end in range(3, 40):\n    try:\n        os.write(end, b'\\x01' * 100)\n    except OSError:\n        pass\n"
        "time.sleep(600)"
    ),
}


@pytest.mark.parametrize("segment", SEGMENTS.values(), ids=SEGMENTS)
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_shared_memory_is_removed(trained, segment, end):
    before = names()
    try:
        trained(body(f"{segment}\n{end}"))
    except ForeignError:
        assert end
    assert not {name for name in names() - before if name.startswith("left-")}


def test_memory_that_others_have_stays(trained, tmp_path):
    mine = Path("/dev/shm/left-other")
    mine.write_bytes(b"mine")
    try:
        trained(body("kept = open('/dev/shm/left-other', 'r+b')"))
        assert mine.read_bytes() == b"mine", "it was there before"
    finally:
        mine.unlink()


def test_memory_that_another_process_uses_stays():
    memory, file = SharedMemory(), Path("/dev/shm/left-used")
    with file.open("wb") as opened:
        other = subprocess.Popen(["sleep", "600"], stdout=opened)
    try:
        assert memory.grows()
        memory.look([other.pid])
        assert not memory.grows()
        memory.remove()
        assert file.exists()
    finally:
        other.kill()
        other.wait()
    memory.remove()
    assert not file.exists()


def test_system_v_segments_are_removed(trained):
    before = Path("/proc/sysvipc/shm").read_text()
    trained(body("import ctypes\nassert ctypes.CDLL(None).shmget(0, 4096, 0o1600) >= 0"))
    assert Path("/proc/sysvipc/shm").read_text().count("\n") <= before.count("\n")


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


@pytest.mark.parametrize("daemon", DAEMONS.values(), ids=DAEMONS)
def test_a_trainer_that_kills_its_guard_leaves_no_daemon(trained, tmp_path, daemon):
    file = tmp_path / "pid"
    part = f"{file}.part"
    note = f"import os; open({part!r}, 'w').write(str(os.getpid())); os.rename({part!r}, {str(file)!r})"
    wait = f"while not os.path.exists({str(file)!r}): time.sleep(0.01)"
    text = f"{daemon.format(note)}\n{wait}\nos.kill(os.getppid(), 9)\ntime.sleep(600)"
    with pytest.raises(ForeignError, match=r"was killed by signal 9"):
        trained(body(text))
    pid = int(file.read_text())
    with suppress(psutil.NoSuchProcess):
        psutil.Process(pid).wait(HANGS)


def test_results_are_the_same(trained):
    plain, other = trained(body("")), trained(body(SEGMENTS["open"]))
    assert np.array_equal(plain.accuracies, other.accuracies, equal_nan=True)
