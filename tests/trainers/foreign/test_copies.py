"""Trainers that are copies of a process which has imported them: what they learn is the same, and nothing is shared."""

import importlib
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import numpy as np
import psutil
import pytest
import torch

from epsearch.machine import rounding_hash
from tests.support.limits import HANGS
from tests.support.toy_streams import digits
from tests.trainers.foreign.conftest import SOFTMAX
from trainers.cohort import CohortResult
from trainers.foreign import fork_servers
from trainers.foreign.declaration import read_declaration
from trainers.foreign.fork_servers import OFF, SWITCH, keep_servers
from trainers.foreign.process import Limits, Observations
from trainers.foreign.running import Request, Run, train
from trainers.notes import redirect_notes
from trainers.plugins.calls import ForeignError
from trainers.plugins.source import source_of

pytestmark = pytest.mark.skipif(not fork_servers.POSSIBLE, reason="nothing is copied here")

ROOT = Path(__file__).parents[3]
TORCH = re.search(r"```python\n(.*?)```", (ROOT / "docs/own-trainer.md").read_text(encoding="utf-8"), re.DOTALL)[1]
ZEROS = """
    import os
    import tempfile
    from pathlib import Path
    import numpy as np

    def zeros(inputs, task):
        return np.zeros(len(inputs), int)

    def on(report, stream):
        for task in stream.tasks:
            stream.train(task)
            report(task, zeros)
"""


class Members:
    """Members of one module, each with what was observed; notes: what was said to the user."""

    def __init__(self, folder, name):
        importlib.invalidate_caches()
        self.request = Request(f"{name}:train", folder, dict(source_of(name).hashes))
        self.notes, self.observed, self.log = [], [], folder / "log"

    def train(self, values=None, seed=1, copied=True, closely=False, **more):
        self.observed.append(Observations(closely))
        limits = Limits(more.pop("seconds", None), more.pop("bytes", None))
        run = Run(values or {}, seed, digits(examples=200))
        with redirect_notes(self.notes.append):
            request = replace(self.request, copied=copied, limits=limits, **more)
            return train(request, run, None, None, self.observed[-1], self.log)

    @property
    def copies(self):
        return [one.copied for one in self.observed]


@pytest.fixture
def members(tmp_path, write, monkeypatch):
    """members(text) -> Members of it, while servers are kept."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv(SWITCH, raising=False)
    with keep_servers():
        yield lambda text, name="mine": Members(tmp_path, write(text, name))


def same(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name), equal_nan=name not in ("fingerprints", "params"))
        for name in CohortResult.ARRAYS
        if name not in ("params", "statistics")
    ) and (one.note, one.fingerprints) == (other.note, other.fingerprints)


@pytest.mark.parametrize("text", [SOFTMAX, pytest.param(TORCH, marks=pytest.mark.slow)], ids=["numpy", "torch"])
def test_results_are_the_same_both_ways(members, text):
    """Torch, too, with an optimizer, which must not hang after a fork."""
    mine, values = members(text), {"lr": 0.01, "memory": 5}
    anew = [mine.train(values, seed, copied=False) for seed in (1, 2)]
    copies = [mine.train(values, seed) for seed in (1, 2, 1)]
    assert mine.copies == [False, False, True, True, True]
    assert [bool(one.imported) for one in mine.observed] == [False, False, True, False, False]
    assert [same(one, other) for one, other in zip(copies, [*anew, anew[0]], strict=True)] == [True] * 3
    assert not same(copies[0], copies[1]) and mine.notes == []
    asked = torch.backends.cpu.get_cpu_capability() if text == TORCH else ""
    assert {one.capability for one in mine.observed} == {asked}
    assert rounding_hash("cpu", asked) == rounding_hash("cpu")


@pytest.mark.slow
def test_the_import_is_made_once_and_its_output_is_in_each_log(members, tmp_path):
    mine = members(
        f"{ZEROS}\n    print('imported', flush=True)\n    open({str(tmp_path / 'imports')!r}, 'a').write('x')\n"
        "    def train(values, stream, seed, report):\n        print('trained')\n        on(report, stream)\n"
    )
    for _ in range(3):
        mine.train()
    assert (tmp_path / "imports").read_text() == "x"
    assert mine.log.read_text().split() == ["imported", "trained"] * 3


GLOBALS = f"""{ZEROS}
    COUNT, PLACE = [], tempfile.mkdtemp()

    def train(values, stream, seed, report):
        with open(values["file"], "a") as file:
            print(len(COUNT), os.environ.get("LEFT"), os.getcwd(), len(os.listdir(PLACE)), file=file)
        COUNT.append(1)
        os.environ["LEFT"] = "x"
        os.chdir("/")
        Path(PLACE, "left").write_text("x")
        on(report, stream)
"""


@pytest.mark.slow
def test_no_member_sees_what_another_has_changed(members, tmp_path):
    """Neither in its modules nor in the folder of temporary files, whose name the module may keep."""
    mine, file = members(GLOBALS), tmp_path / "seen"
    for _ in range(3):
        mine.train({"file": str(file)})
    assert mine.copies == [True] * 3
    assert file.read_text().splitlines() == [f"0 None {os.getcwd()} 0"] * 3


CARRIED = {
    "kept = np.ones(3)": None,
    "threading.Thread(target=time.sleep, args=(600,), name='mine', daemon=True).start()": r"starts a thread \(",
    "kept = open(__file__)": r"opens \S*mine\.py",
    "kept = subprocess.Popen(['sleep', '600'])": "starts a process",
    "kept = mmap.mmap(-1, 4096)": "shares memory between processes",
    "kept = tempfile.NamedTemporaryFile(delete=False).close()": "writes temporary files",
    "kept = random.random()": "draws or seeds random numbers",
    "np.random.seed(3)": "draws or seeds random numbers",
    "kept = np.random.default_rng()": "keeps a random generator",
    "class Kept:\n    own = np.random.default_rng()": "keeps a random generator",
    "kept = {'own': random.Random()}": "keeps a random generator",
    "def kept(own=np.random.RandomState()): pass": "keeps a random generator",
}


@pytest.mark.slow
@pytest.mark.few(6)
@pytest.mark.parametrize(("line", "why"), CARRIED.items(), ids=[why or "nothing" for why in CARRIED.values()])
def test_an_import_that_cannot_be_copied_is_made_anew_and_it_is_said_why(members, line, why):
    head = "import mmap, os, random, subprocess, tempfile, threading, time\nimport numpy as np\n"
    mine = members(f"{head}{line}\n{dedent(SOFTMAX)}")
    first, second = mine.train({"lr": 0.1}), mine.train({"lr": 0.1})
    assert mine.copies == [why is None] * 2 and same(first, second)
    assert same(first, mine.train({"lr": 0.1}, copied=False))
    if why is None:
        assert mine.notes == []
        return
    (note,) = mine.notes  # once, although two were trained
    assert note.startswith("each member imports mine:train anew: its import ") and len(note.split()) < 25
    assert [one.anew for one in mine.observed] == [*[note.partition(": ")[2]] * 2, ""]
    assert re.search(why, note)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1 / 0", r"^cannot import 'mine' of trainer 'mine:train': ZeroDivisionError: division by zero, at mine\.py:1"),
        (
            "import os; print('so long'); os._exit(3)",
            r"ended by itself with status 3 while it was .*last output: so lo",
        ),
        ("import os; os.kill(os.getpid(), 11)", r"was killed by signal 11 \(SIGSEGV\) while it was imported"),
    ],
)
def test_an_import_that_fails_says_the_same_both_ways(members, line, said):
    mine, lines = members(f"{line}\n{dedent(SOFTMAX)}"), []
    for copied in (False, True):
        with pytest.raises(ForeignError, match=said) as error:
            mine.train({"lr": 0.1}, copied=copied)
        lines.append(str(error.value))
    with pytest.raises(ForeignError, match=said) as error:
        read_declaration("mine:train", mine.request.beside, mine.request.source)
    assert (
        lines == [str(error.value).partition("; its output")[0]] * 2 if "output" not in said else lines[0] == lines[1]
    )


def gone(pid):
    """Returns whether a process has ended, perhaps before its parent has looked at it."""
    until = time.monotonic() + HANGS
    while time.monotonic() < until:
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.01)
                continue
        return True
    return False


def servers():
    """Servers that wait for a learner."""
    return [one for kept in fork_servers._kept.idle.values() for one in kept]


DECLARING = f"""{ZEROS}
    LINE
    open(os.environ["IMPORTS"], "a").write("x")
    SEEN = []

    class train:
        version = "2"

        def __init__(self):
            made = Path(tempfile.gettempdir(), "made")
            SEEN.append(made.exists())
            made.write_text("x")

        def train(self, values, stream, seed, report):
            assert SEEN == [False]
            on(report, stream)
"""


@pytest.mark.slow
@pytest.mark.parametrize("line", ["", "import torch"], ids=["plain", "torch"])
def test_a_declaration_begins_the_server_of_the_members(members, tmp_path, monkeypatch, line):
    """It is a copy, too: members have the import as if nobody had made an object of the class before."""
    monkeypatch.setenv("IMPORTS", str(tmp_path / "imports"))
    mine = members(DECLARING.replace("LINE", line))
    made = read_declaration("mine:train", tmp_path, mine.request.source)
    assert made == read_declaration("mine:train", tmp_path) and made.version == "2"
    before = (tmp_path / "imports").read_text()
    assert before == "xx"  # that of the server, and of the one whose source was not said
    results = [mine.train() for _ in range(2)]
    assert (tmp_path / "imports").read_text() == before and mine.copies == [True] * 2 and len(servers()) == 1
    first, second = mine.observed
    assert 0 < first.imported < first.import_seconds and second.imported == second.import_seconds == 0
    assert same(results[0], mine.train(copied=False)) and same(*results)


@pytest.mark.slow
def test_a_declaration_says_nothing_of_an_import_that_cannot_be_copied(members, tmp_path, monkeypatch):
    monkeypatch.setenv("IMPORTS", str(tmp_path / "imports"))
    mine = members(DECLARING.replace("LINE", "KEPT = open(__file__)"))
    with redirect_notes(mine.notes.append):
        assert read_declaration("mine:train", tmp_path, mine.request.source).version == "2"
    assert mine.notes == [] and servers() == []
    for _ in range(2):
        mine.train()
    assert (tmp_path / "imports").read_text() == "x" * 4 and mine.copies == [False] * 2
    (note,) = mine.notes
    assert re.search(r"^each member imports mine:train anew: its import opens \S*mine\.py", note)
    assert [note.endswith(one.anew) and bool(one.anew) for one in mine.observed] == [True] * 2


LIKE_TORCH = """
class Generator:
    def get_state(self): pass
    def manual_seed(self, seed): return self

class cuda:
    is_initialized = staticmethod(bool)

get_rng_state, set_rng_state, set_num_threads, manual_seed = lambda: 0, id, id, id
equal = lambda one, other: True
"""


@pytest.mark.slow
def test_what_the_first_optimizer_imports_is_looked_at_after_a_declaration(members, tmp_path, monkeypatch):
    """A thread that it starts is found before members are copies."""
    monkeypatch.setenv("IMPORTS", str(tmp_path / "imports"))
    (tmp_path / "torch").mkdir()
    start = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    for name, text in (("__init__", LIKE_TORCH), ("_dynamo", start)):
        (tmp_path / "torch" / f"{name}.py").write_text(text, encoding="utf-8")
    mine = members(DECLARING.replace("LINE", "import sys; sys.path.insert(0, os.environ['PLACE']); import torch"))
    monkeypatch.setenv("PLACE", str(tmp_path))
    read_declaration("mine:train", tmp_path, mine.request.source)
    assert len(servers()) == 1, fork_servers._kept.refused
    mine.train()
    assert mine.copies == [False] and re.search(r"its import starts a thread \(", mine.observed[0].anew)


@pytest.mark.slow
def test_a_server_of_a_declaration_is_ended_where_members_are_trained_on_a_gpu(members, tmp_path):
    mine = members(SOFTMAX)
    read_declaration("mine:train", tmp_path, mine.request.source)
    (server,) = servers()
    mine.train({"lr": 0.1}, device="cuda")
    assert servers() == [] and server._process.poll() is not None and mine.copies == [False]


@pytest.mark.slow
def test_a_server_that_is_gone_is_replaced(members):
    mine = members(SOFTMAX)
    first = mine.train({"lr": 0.1})
    (server,) = servers()
    psutil.Process(server.server).kill()
    until = time.monotonic() + HANGS
    while server.usable() and time.monotonic() < until:
        time.sleep(0.01)
    assert same(first, mine.train({"lr": 0.1}))
    assert [bool(one.imported) for one in mine.observed] == [True, True] and mine.notes == []
    assert [one.server for one in servers()] != [server.server]


@pytest.mark.slow
def test_a_guard_that_is_gone_is_replaced(members):
    mine = members(SOFTMAX)
    first = mine.train({"lr": 0.1})
    (server,) = servers()
    server._process.kill()
    server._process.wait()
    assert same(first, mine.train({"lr": 0.1})) and mine.copies == [True] * 2
    assert gone(server.server)


@pytest.mark.slow
def test_a_server_that_ends_takes_no_member_with_it(members):
    kills = SOFTMAX.replace(
        "report(-1, predict)",
        "report(-1, predict)\n"
        "        import os, signal\n"
        "        guard = os.getppid()\n"
        "        for one in open(f'/proc/{guard}/task/{guard}/children').read().split():\n"
        "            if int(one) != os.getpid():\n"
        "                os.kill(int(one), signal.SIGKILL)",
    )
    mine = members(kills)
    first, second = mine.train({"lr": 0.1}), mine.train({"lr": 0.1})
    assert mine.copies == [True] * 2 and [bool(one.imported) for one in mine.observed] == [True] * 2
    assert same(first, second) and np.isfinite(first.accuracies[0, -1]).all() and servers() == []


@pytest.mark.slow
def test_a_member_that_diverges_is_ended_and_the_next_one_is_a_copy(members):
    mine = members(
        f"{ZEROS}\n    def train(values, stream, seed, report):\n        if values['lr']:\n"
        "            report(0, diverged=True)\n            while True: pass\n        on(report, stream)\n"
    )
    assert [int(mine.train({"lr": lr}).diverged_task[0]) for lr in (1, 0, 1, 0)] == [0, -1, 0, -1]
    assert [bool(one.imported) for one in mine.observed] == [True, False, False, False]


@pytest.mark.slow
def test_a_member_that_fails_ends_its_server(members):
    mine = members(
        f"{ZEROS}\n    def train(values, stream, seed, report):\n        assert not values['lr'], 'no'\n"
        "        on(report, stream)\n"
    )
    for lr in (1, 0):
        if lr:
            with pytest.raises(ForeignError, match="failed in task 0 with AssertionError: no, at mine"):
                mine.train({"lr": lr})
            assert servers() == []
        else:
            assert np.isfinite(mine.train({"lr": lr}).accuracies[0, -1]).all()


RESUMED = f"""{ZEROS}
    KEPT = [LINE]

    class Mine:
        seen = ()

        def train(self, values, stream, seed, report):
            for task in stream.tasks:
                self.seen += (task, int(stream.train(task)[1][0]))
                Path(values["file"]).write_text(str(self.seen))
                report(task, zeros)
                assert task or os.environ["FAILS"] != "True"

        def save(self, path):
            np.save(path.open("wb"), self.seen)

        def load(self, path):
            self.seen = tuple(map(int, np.load(path)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("line", ["0", "open(__file__)"], ids=["copied", "anew"])
def test_a_member_that_failed_goes_on_where_it_was(tmp_path, write, monkeypatch, line):
    """Also where its first process is given up, as it cannot be copied."""
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    source = dict(source_of(name := write(RESUMED.replace("LINE", line))).hashes)
    request, file = Request(f"{name}:Mine", tmp_path, source), tmp_path / "seen"
    seen = []
    for fails, folder in ((False, None), (True, tmp_path / "cache"), (False, tmp_path / "cache")):
        # The same values, which a run that goes on must have.
        observed, run = Observations(closely=False), Run({"file": str(file)}, 1, digits(examples=20))
        monkeypatch.setenv("FAILS", str(fails))
        with keep_servers():
            try:
                train(request, run, None, folder, observed)
            except ForeignError:
                assert fails
        assert observed.copied == (line == "0")
        seen.append((file.read_text(), len(observed.tasks)))
    assert seen[0] == (seen[2][0], 3) and [tasks for _, tasks in seen] == [3, 1, 2]


@pytest.mark.slow
def test_a_source_that_changes_is_refused_as_ever(members, write):
    mine = members(SOFTMAX)
    mine.train({"lr": 0.1})
    write(SOFTMAX + "\n    # another one\n")
    with pytest.raises(ForeignError, match=r"^mine\.py of trainer 'mine:train' changed after the run had begun"):
        mine.train({"lr": 0.1})


@pytest.mark.slow
def test_memory_of_the_server_is_not_the_members(members):
    mine = members(
        f"{ZEROS}\n    kept = np.ones(25_000_000)\n"
        "    def train(values, stream, seed, report):\n        kept[0] += 1\n        on(report, stream)\n"
    )
    for _ in range(2):
        mine.train(closely=True)
    assert 2e8 < mine.observed[1].peak < 3.5e8


@pytest.mark.slow
def test_nothing_is_left_when_servers_are_no_longer_kept(tmp_path, write, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    with keep_servers():
        Members(tmp_path, write(SOFTMAX)).train({"lr": 0.1})
        (server,) = servers()
    assert servers() == [] and not server.folder.exists()
    assert gone(server.server) and server._process.poll() is not None


@pytest.mark.slow
@pytest.mark.parametrize("how", ["switched off", "another system", "servers are not kept", "a GPU", "threads"])
def test_where_nothing_is_copied(members, how):
    mine, more = members(SOFTMAX), {"a GPU": {"device": "cuda"}, "threads": {"threads": 2}}.get(how, {})
    with pytest.MonkeyPatch.context() as patch:  # which ends before servers are no longer kept
        if how == "switched off":
            patch.setenv(SWITCH, OFF)
        elif how == "another system":
            patch.setattr(fork_servers, "POSSIBLE", False)
        elif how == "servers are not kept":
            patch.setattr(fork_servers, "_kept", fork_servers._Kept())
        mine.train({"lr": 0.1}, **more)
        mine.train({"lr": 0.1}, **more)
    assert mine.copies == [False] * 2
    assert mine.notes == [
        "each member imports mine:train anew: copies were tried on processors alone, not on a GPU"
    ] * (how == "a GPU")


IDLE = """
import sys, time
from pathlib import Path
from tests.support.toy_streams import digits
from trainers.foreign import fork_servers
from trainers.foreign.running import Request, Run, train
from trainers.plugins.source import source_of
sys.path.append(sys.argv[1])
fork_servers.keep_until_exit()
request = Request("mine:train", Path(sys.argv[1]), dict(source_of("mine").hashes))
train(request, Run({"lr": 0.1}, 1, digits(examples=20)))
((server,),) = fork_servers._kept.idle.values()
print(server.server, server._process.pid, server.folder, flush=True)
time.sleep(600 * (sys.argv[2] == "sleeps"))
"""


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("how", ["sleeps", "ends"])
def test_a_server_that_waits_ends_with_epsearch(tmp_path, write, how):
    """Killed, or at its end, as a worker of a cluster."""
    write(SOFTMAX)
    command = [sys.executable, "-c", IDLE, str(tmp_path), how]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        server, guard, folder = process.stdout.readline().split()
        if how == "sleeps":
            assert psutil.pid_exists(int(server))
            process.send_signal(signal.SIGKILL)
        process.wait()
    assert gone(int(server)) and gone(int(guard)) and not Path(folder).exists()


@pytest.mark.slow
def test_a_copy_that_cannot_be_made_is_a_new_process(members):
    """The process between server and copy may have reached the limit of processes."""
    mine = members(f"""{ZEROS}
    first, made = os.fork, []

    def fork():
        made.append(len(made))
        if len(made) == 2:
            raise BlockingIOError("no more processes")
        return first()

    os.fork = fork

    def train(values, stream, seed, report):
        on(report, stream)
""")
    assert np.isfinite(mine.train(seconds=HANGS).accuracies[0, -1]).all()
    assert mine.copies == [False] and servers() == []


@pytest.fixture
def many_files():
    """All files from now on have numbers that select() does not take."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < 4096:
        pytest.skip("the limit of open files is too low")
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
        for _ in range(1100):
            stack.enter_context(open(os.devnull, "rb"))
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("many_files")
def test_a_process_with_hundreds_of_workers_has_copies_and_new_ones(members):
    mine = members(SOFTMAX)
    results = [mine.train({"lr": 0.1}, copied=copied) for copied in (False, True, True)]
    assert mine.copies == [False, True, True] and all(same(results[0], one) for one in results[1:])
