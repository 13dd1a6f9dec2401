"""Trainers that do what they may not: one line says so, nothing is a result, and nothing of them is left."""

import json
import os
import secrets
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.support.limits import HANGS
from trainers.foreign.process import TAIL, Process
from trainers.plugins.calls import ForeignError

pytestmark = pytest.mark.slow

MARK = "TRAINER_OF_TEST"
LONG = 600.0  # seconds for what ends long before, and that what must be ended sleeps
GOES = 120.0  # seconds that what is killed may take to go: it frees its memory first, and less than it would sleep


def marked(mark):
    """Processes that were started with the mark in their environment, but for this one and those that have ended."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (place / "environ").read_bytes().split(b"\0"):
                found.append(int(place.name))
        except OSError:
            continue
    return [one for one in found if one != os.getpid()]


def left(mark):
    """Those of them that do not go."""
    until = time.monotonic() + GOES
    while (found := marked(mark)) and time.monotonic() < until:
        time.sleep(0.05)
    return found


@pytest.fixture(params=[False, True], ids=["anew", "copied"], autouse=True)
def copied(request):
    """Both ways to start."""
    return request.param


@pytest.fixture
def mark(monkeypatch):
    """In the environment of all that the test starts; nothing of it may be there afterwards."""
    mark = secrets.token_hex(8)
    monkeypatch.setenv(MARK, mark)
    yield mark
    assert left(mark) == []


def body(text):
    """A trainer that reports task 0, and then does this."""
    return (
        "import os, sys, time, signal, threading, subprocess\nimport numpy as np\n"
        "def zeros(inputs, task):\n    return np.zeros(len(inputs), int)\n"
        "def train(values, stream, seed, report):\n    stream.train(0)\n    report(0, zeros)\n"
        + textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")
    )


GO_ON = "for k in (1, 2):\n    stream.train(k)\n    report(k, zeros)\n"

ENDS = {
    "exit": ("os._exit(3)", r"ended by itself with status 3 in task 1"),
    "exit as if done": ("os._exit(0)", r"ended by itself with status 0 in task 1"),
    "sys.exit": ("sys.exit(0)", r"failed in task 1 with SystemExit: 0, at mine\.py:8: sys\.exit\(0\)"),
    "interrupt": ("raise KeyboardInterrupt", r"failed in task 1 with KeyboardInterrupt, at mine\.py:8"),
    "kill": ("os.kill(os.getpid(), 9)", r"was killed by signal 9 \(SIGKILL\) in task 1"),
    "kill its group": ("os.killpg(0, 9)", r"was killed by signal 9 \(SIGKILL\) in task 1"),
    "kill its guard": ("os.kill(os.getppid(), 9)\ntime.sleep(600)", r"was killed by signal 9 \(SIGKILL\) in task 1"),
    "abort": ("print('so long')\nos.abort()", r"killed by signal 6 \(SIGABRT\) in task 1; its last output: so long"),
    "exception": ("1 / 0", r"failed in task 1 with ZeroDivisionError: division by zero, at mine\.py:8: 1 / 0"),
    "controls": (r"raise ValueError('\x1b[2J\x07')", r"with ValueError: \\x1b\[2J\\x07, at mine\.py:8"),
    "no message": ("class E(Exception):\n    def __str__(self): 1 / 0\nraise E", r"with E, which has no message"),
    "recursion": ("def f(): f()\nf()", r"failed in task 1 with RecursionError"),
    "standard input": ("input()", r"failed in task 1 with EOFError: .*, at mine\.py:8: input\(\)"),
    "returns early": ("return", r"returned after it had reported 1 of 3 tasks"),
    "reads ahead": ("stream.train(2)", r"ValueError: task 2 cannot be read before task 1 .*, at mine\.py:8: stream"),
    "row too short": ("report(1, accuracies=[0.5])", r"ValueError: a row of 1 was reported after .*, at mine\.py:8"),
    "predict raises": ("def predict(x, t):\n    raise KeyError(t)\nreport(1, predict)", r"KeyError: 0, at mine\.py:9"),
    "one task more": (GO_ON + "report(3, zeros)", r"failed after its last task with ValueError: there is no task 3"),
    "closes everything": ("os.closerange(3, 4096)\nreport(1, zeros)", r"closed its pipe to epsearch in task 1"),
    "writes into the pipe": (
        "for end in range(3, 1024):\n    try:\n        os.write(end, b'\\x01' * 100)\n"
        "    except OSError:\n        pass\n"
        "time.sleep(600)",
        r"wrote into the pipe to epsearch what is no message: it announces",
    ),
}


@pytest.mark.parametrize(("text", "line"), ENDS.values(), ids=ENDS)
def test_one_line_says_what_was_wrong(trained, mark, text, line):
    with pytest.raises(ForeignError, match=line) as error:
        trained(body(text), seconds=LONG)
    message = str(error.value)
    assert message.startswith("trainer 'mine:train' ") and message.isprintable() and len(message) < 1000


REFUSED = {
    "report._channel.ask({'kind': 'reported'})": "no report has begun",
    "report._channel.ask({'kind': 'test', 'task': 2, 'first': 0})": "test inputs are for reports alone",
    "stream.train(2)": "task 2 cannot be read before task 1 has been reported; task 0 was the last one reported",
    "stream.train(3)": "there is no task 3; the stream has tasks 0…2",
    "stream.train(-1)": "there is no task -1; the stream has tasks 0…2",
    "report(2, zeros)": "report(2, …) came before task 1 was reported",
    "report(0, zeros)": "task 0 has been reported already",
    "report(3, zeros)": "report(3, …) came before task 1 was reported",
    "report(-1, zeros)": "report(-1, …) is of the untrained learner: once, before the first task is read",
    "report(-2, zeros)": "task -2 has been reported already",
    "report(-1, zeros, batches=1)": "report(-1, …, batches=1) is of task 0; task 1 is being trained",
    "report(1, zeros, batches=1)": "report(1, …, batches=1) is of task 2; task 1 is being trained",
    "report(0, zeros, batches=0)": "batches must lie in 1…10, got 0",
    "report(1)": "report() takes one of predict, accuracies and diverged=True",
    "report(1, zeros, accuracies=[1, 1])": "report() takes one of predict, accuracies and diverged=True",
    "report(1, zeros, diverged=True)": "report() takes one of predict, accuracies and diverged=True",
    "report(2, diverged=True)": "report(2, …) came before task 1 was reported",
    "report(1, accuracies=[0.5])": "a row of 1 was reported after task 1, where it must have 2 to 3",
    "report(1, accuracies=[])": "a row of 0 was reported after task 1, where it must have 2 to 3",
    "report(1, accuracies=[0.5] * 4)": "a row of 4 was reported after task 1, where it must have 2 to 3",
    "report(0, accuracies=[0.5] * 2, batches=1)": "a row of 2 was reported after task 0, where it must have 1",
    "report(1, accuracies=[0.5, 93])": "accuracies lie in 0…1, got 93 of task 1 after task 1",
    "report(1, accuracies=[-0.1, 0.9])": "accuracies lie in 0…1, got -0.1 of task 0 after task 1",
    "report(1, accuracies=[0.5, 0.5, 1.5])": "accuracies lie in 0…1, got 1.5 of task 2 after task 1",
    "report(1, accuracies=['a', 'b'])": "report() takes a row of numbers in [0, 1] as accuracies; got 'a' among them",
    "report(1, lambda x, t: np.zeros((len(x), 10), int))": "predict() must return one label for each input, [n]; "
    "got [355, 10]; of scores [n, outputs] it is argmax(axis=1)",
    "report(1, lambda x, t: zeros(x, t) + 0.5)": "predict() must return labels, whole numbers; got an array of float64",
    "report(1, lambda x, t: zeros(x, t) * np.nan)": "predict() must return labels, whole numbers; "
    "got an array of float64",
    "report(1, lambda x, t: ['a'] * len(x))": "predict() must return labels, whole numbers; got an array of <U1",
    "report(1, lambda x, t: [1])": "predict() must return one label for each of 355 inputs, got 1",
    "report(1, lambda x, t: [1] * 356)": "predict() must return one label for each of 355 inputs, got 356",
    "report(1, lambda x, t: zeros(x, t) + 10)": "predict() must return labels in 0…9, got 10 for task 0",
    "report(1, lambda x, t: zeros(x, t) + 10 * (t == 1))": "predict() must return labels in 0…9, got 10 for task 1",
    "report(1, lambda x, t: zeros(x, t) - 1)": "predict() must return labels in 0…9, got -1 for task 0",
    "report(1, lambda x, t: report(1, zeros))": "report() was called while another report() was not over",
    "report(1, lambda x, t: report._channel.ask({'kind': 'reported'}))": "the report of task 1 lacks predictions for "
    "task 0",
    "report(1, lambda x, t: stream.train(2))": "task 2 cannot be read before task 1 has been reported; "
    "task 0 was the last one reported",
}


def test_what_cannot_be_is_refused_and_changes_nothing(trained, mark, tmp_path):
    """All of it by one trainer, which swallows every error."""
    file = tmp_path / "said.json"
    hostile = f"""
        import json
        said = []
        for code in {list(REFUSED)!r}:
            try:
                eval(code, globals() | locals())
                said.append("nothing")
            except ValueError as error:
                said.append(str(error))
        with open({str(file)!r}, "w") as file:
            json.dump(said, file)
    """
    result = trained(body(textwrap.dedent(hostile) + GO_ON))
    assert json.loads(file.read_text()) == list(REFUSED.values())
    clean = trained(body(GO_ON))
    assert result.fingerprints == clean.fingerprints and result.note == clean.note == ""
    assert np.array_equal(result.accuracies, clean.accuracies, equal_nan=True)
    assert np.array_equal(result.within, clean.within, equal_nan=True)


def test_the_untrained_learner_is_reported_once_before_anything_is_read(trained, mark):
    with pytest.raises(ForeignError, match=r"failed in task 0 with ValueError: report\(-1, …\) is of the untrained"):
        trained("""
            def train(values, stream, seed, report):
                stream.train(0)
                report(-1, lambda inputs, task: [0] * len(inputs))
        """)


def test_a_learning_curve_goes_forward(trained, mark):
    with pytest.raises(ForeignError, match=r"ValueError: batches must grow within a task, got 2 after 2"):
        trained(body("report(0, zeros, batches=2)\nreport(0, zeros, batches=2)"))


@pytest.fixture
def late(monkeypatch, tmp_path):
    """(path, progress): once the file is there, hours have gone by."""
    path, shift = tmp_path / "started", [0]
    monkeypatch.setattr("trainers.foreign.process.time", SimpleNamespace(monotonic=lambda: time.monotonic() + shift[0]))

    def progress(tasks):
        shift[0] = 10_000 * path.exists()

    return path, progress


HANGING = {
    "loop": "while True: pass",
    "native": "import ctypes\nctypes.PyDLL(None).sleep(600)",  # holds the interpreter's lock
    "stopped": "os.kill(os.getpid(), signal.SIGSTOP)",
    "stops its guard": "os.kill(os.getppid(), signal.SIGSTOP)\nwhile True: pass",
    "deaf": "for one in (2, 15): signal.signal(one, signal.SIG_IGN)\ntime.sleep(600)",
    "endless output": "while True: os.write(1, b'x' * 2**20)",
    "in predict": "report(1, lambda x, t: time.sleep(600))",
    "does not read": (
        "from trainers.foreign.messages import pack\n"
        "for end in range(3, 1024):\n"
        "    try:\n        os.write(end, pack({'kind': 'train', 'task': 0, 'first': 0}) * 3)\n"
        "    except OSError:\n        pass\n"
        "time.sleep(600)"
    ),
}


@pytest.mark.parametrize("text", HANGING.values(), ids=HANGING)
def test_what_hangs_is_ended_at_its_limit(trained, mark, late, text):
    with pytest.raises(ForeignError, match=r"^trainer 'mine:train' took longer than 600 s, in task 1"):
        trained(body(f"open({str(late[0])!r}, 'w').close()\n{text}"), seconds=LONG, progress=late[1])


def test_an_import_that_hangs_is_ended_at_its_limit(trained, mark, late):
    with pytest.raises(
        ForeignError, match=r"^trainer 'mine:train' took longer than 600 s, while it was imported; .*hi"
    ):
        trained(f"print('hi')\nopen({str(late[0])!r}, 'w').close()\nwhile True: pass", seconds=LONG, progress=late[1])


def test_what_closes_its_pipe_and_stays_is_ended(trained, mark, late):
    with pytest.raises(ForeignError, match=r"^trainer 'mine:train' closed its pipe to epsearch in task 1$"):
        trained(body(f"open({str(late[0])!r}, 'w').close()\nos.closerange(3, 4096)\ntime.sleep(600)"), progress=late[1])


@pytest.mark.parametrize("text", ["{}", "if os.fork() == 0:\n    os.setsid()\n    {}\ntime.sleep(600)"])
def test_what_takes_too_much_memory_is_ended(trained, mark, text):
    """Of processes that it has started, too."""
    grow = "kept = [(time.sleep(0.01), bytearray(b'x' * 2**24)) for _ in range(200)]"
    with pytest.raises(ForeignError, match=r"^trainer 'mine:train' took more than 0\.5 GiB of memory, in task 1"):
        trained(body(text.format(grow) + "\ntime.sleep(600)"), bytes=2**29, seconds=LONG)


def test_gigabytes_of_output_neither_block_nor_stay(trained, mark, monkeypatch):
    kept, close = [], Process._close
    monkeypatch.setattr(Process, "_close", lambda self: (kept.append(len(self._output)), close(self)))
    text = "for _ in range(512): os.write(1, b'x' * 2**20); os.write(2, b'y' * 2**20)\n"
    assert np.isfinite(trained(body(text + GO_ON)).accuracies[0, 2]).all()
    assert kept == [TAIL]


LEFT = {
    "a thread": "threading.Thread(target=time.sleep, args=(600,)).start()",
    "a thread that works": "def work():\n    while True: pass\nthreading.Thread(target=work).start()",
    "a process": "subprocess.Popen(['sleep', '600'])",
    "a process of another session": "subprocess.Popen(['sleep', '600'], start_new_session=True)",
    "a fork that sleeps": "if os.fork() == 0: time.sleep(600)",
    "forks that go on": "os.fork()\nos.fork()",
    "an orphan": "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(600)\n    os._exit(0)",
    "many that start others": (
        "if os.fork() == 0:\n    while True:\n        if os.fork() == 0:\n            os.setsid()\n"
        "            time.sleep(1)\n            os._exit(0)\n        time.sleep(0.01)\n"
    ),
    "no standard streams": "for one in (0, 1, 2): os.close(one)",
    "a handler at exit": "import atexit\natexit.register(time.sleep, 600)",
    "other signals": "for one in range(1, 32):\n    if one not in (9, 19): signal.signal(one, signal.SIG_IGN)",
    "another folder": "os.chdir('/')\nsys.path.clear()\nos.environ.clear()",
}


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_what_is_left_behind_ends_with_the_run(trained, mark, text):
    result = trained(body(text + "\n" + GO_ON), seconds=LONG)
    assert np.isfinite(result.accuracies[0, 2]).all() and result.note == ""


def test_only_the_thread_that_reports_is_heard(trained, mark):
    """A second report meanwhile is refused, and changes nothing of the first."""
    result = trained(
        body("""
            refused = []
            def late(x, t):
                def other():
                    try:
                        report(1, zeros)
                    except ValueError as error:
                        refused.append(str(error))
                one = threading.Thread(target=other)
                one.start()
                one.join()
                return zeros(x, t)
            report(1, late)
            assert refused and set(refused) == {"report() was called while another report() was not over"}, refused
            report(2, zeros)
        """)
    )
    assert np.isfinite(result.accuracies[0, 2]).all()


KILLED = """
import sys
from pathlib import Path
from tests.support.toy_streams import digits
from trainers.foreign.fork_servers import keep_servers
from trainers.foreign.running import Request, Run, train
from trainers.plugins.source import source_of
sys.path.append(sys.argv[1])
source = dict(source_of("mine").hashes) if sys.argv[2] == "True" else None
with keep_servers():
    train(Request("mine:train", Path(sys.argv[1]), source), Run({}, 1, digits(examples=20)))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_epsearch_however_that_ends(tmp_path, write, mark, how, monkeypatch, copied):
    started, temporary = tmp_path / "started", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    write(
        body(
            f"subprocess.Popen(['sleep', '600'], start_new_session=True)\nopen({str(started)!r}, 'w').close()\n"
            "import ctypes\nctypes.PyDLL(None).sleep(600)"
        )
    )
    root = Path(__file__).parents[3]
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path), str(copied)], cwd=root) as process:
        until = time.monotonic() + HANGS
        while not started.exists() and time.monotonic() < until:
            time.sleep(0.05)
        assert len(marked(mark)) >= 4 and len(list(temporary.iterdir())) == 1
        process.send_signal(how)
        process.wait()
    assert left(mark) == []
    assert not list(temporary.iterdir())


BLIND = """
import os, subprocess
from trainers.foreign import guarding, process_tree
process_tree.become_subreaper()
one = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
see, looks = process_tree.descendants, []
def blind_at_first(pid, tidying=True):
    looks.append(pid)
    return [] if len(looks) <= 2 else see(pid, tidying)
process_tree.descendants = blind_at_first
guarding.end(os.getpid(), guarding.SharedMemory())
print(os.path.exists(f"/proc/{one.pid}"))
"""


def test_the_guard_looks_again_while_it_has_children(mark):
    """A look misses the children of a process that ends meanwhile."""
    assert subprocess.run([sys.executable, "-c", BLIND], capture_output=True, text=True, check=True).stdout == "False\n"
