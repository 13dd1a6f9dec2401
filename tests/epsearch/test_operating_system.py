"""Calls that not every operating system has stand in few places, and each has a fallback.

The fallbacks are tested on Linux, by taking away what other systems lack; docs/platforms.md says what that leaves open.
"""

import ast
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from types import SimpleNamespace

import psutil
import pytest

from epsearch import operating_system
from epsearch.failures.errors import UsageError
from epsearch.preparation import arithmetic
from results import files
from tests import test_architecture
from tests.support import blocked
from tests.support.limits import HANGS
from tests.support.sizes import PACKAGES
from trainers import operating_system as of_trainers
from trainers.engines import pixel_choice
from trainers.engines.compiled import products
from trainers.foreign import process
from trainers.numeric_path import NumericPath
from trainers.plugins.calls import ForeignError

PLACES = (
    "epsearch/operating_system.py",
    "trainers/operating_system.py",
    "results/files.py",  # files that are whole or absent
    "results/ledger/writers/holder.py",  # processes, by /proc
    "epsearch/runners/on_ray/",  # Ray's own processes
    "trainers/foreign/",  # plug-in trainers, which Windows does not have
)
"""Files that may have the code of one operating system."""
MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix", "msvcrt", "winreg", "uvloop"}
OF_OS = {
    *("fork", "forkpty", "killpg", "getpgid", "setpgid", "setsid", "kill", "nice", "setpriority", "getpriority"),
    *("sched_getaffinity", "getuid", "geteuid", "getgid", "sysconf", "getloadavg", "waitpid", "wait", "uname"),
    *(
        "fchmod",
        "fchown",
        "lchown",
        "getpgrp",
        "pread",
        "pwrite",
        "sendfile",
        "register_at_fork",
        "memfd_create",
        "sync",
    ),
    *("getresuid", "setuid", "initgroups", "WNOHANG", "O_NOFOLLOW", "O_CLOEXEC", "openpty"),
    *("O_TMPFILE", "O_DIRECTORY", "O_NONBLOCK", "EX_OK", "EX_SOFTWARE", "mkfifo", "statvfs", "chown", "pidfd_open"),
}
OF_SIGNAL = {
    *("SIGKILL", "SIGHUP", "SIGCONT", "SIGSTOP", "SIGUSR1", "SIGALRM", "SIGPIPE", "SIGCHLD", "CTRL_BREAK_EVENT"),
    *("SIGUSR2", "SIGQUIT", "SIGTSTP", "alarm", "setitimer", "pthread_kill", "pthread_sigmask", "sigwait"),
}
OF_OTHERS = {"socket": {"AF_UNIX", "SO_PEERCRED", "SO_REUSEPORT"}, "select": {"poll", "epoll", "kqueue"}}
ARGUMENTS = {"start_new_session", "process_group", "pass_fds", "preexec_fn", "creationflags", "startupinfo"}
FOLDERS = ("/proc", "/sys/", "/dev/")
GUARDED = {
    ("epsearch/failures/environment.py", "/proc"),  # tried first, with a fallback beside it
    ("epsearch/machine.py", "/proc/cpuinfo"),  # the processor's name, else that of Python
    ("epsearch/machine.py", "/proc/driver/nvidia/version"),  # the driver's version, else none
    ("results/ledger/dialects/sqlite.py", "/dev/shm"),  # used where the disk is full and it is there
}


def calls_of_one_system(path):
    """Returns the names in a file that some operating systems lack."""
    for node in test_architecture.nodes(path):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names = (OF_OTHERS | {"os": OF_OS, "signal": OF_SIGNAL}).get(node.value.id, set())
            if node.attr in names:
                yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.keyword) and node.arg in ARGUMENTS:
            yield node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(FOLDERS):
            yield node.value
    yield from {name for name, _ in test_architecture.imports(path)} & MODULES


@pytest.mark.slow
def test_code_of_one_system_stands_in_its_places():
    for package in PACKAGES:
        for path in test_architecture.files(package):
            relative = path.relative_to(blocked.ROOT).as_posix()
            if not relative.startswith(PLACES):
                others = {name for name in calls_of_one_system(path) if (relative, name) not in GUARDED}
                assert not others - {"O_NONBLOCK"}, relative


def test_such_calls_are_seen():
    root = blocked.ROOT
    names = ("trainers/foreign/child.py", "trainers/foreign/guard.py", *PLACES[:2])
    seen = {call for name in names for call in calls_of_one_system(root / name)}
    assert seen >= {"os.fork", "os.killpg", "start_new_session", "fcntl", "resource", "/proc/self/stat"}


SIZES = (
    "--repeats 1 --points 3 --seeds 1 --certify 1 --tasks 4 --cv-tasks 2 --examples-per-task 60 --memory 3 "
    "--memory-batch 8 --device cpu --name one"
)
PLAIN = """
import sys, threading
from tests.support import other_systems

other_systems.{system}()
from epsearch.__main__ import main

other_systems.import_all()
for command in sys.argv[1:]:
    sys.argv[1:] = command.split()
    if command.startswith("serve"):
        threading.Thread(target=other_systems.stop_serving, args=[{port}], daemon=True).start()
    try:
        main()
    except SystemExit as end:
        print("status", end.code, file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize("system", ["become_plain", "become_mac"])
def test_a_study_without_what_linux_has(tmp_path, system):
    """From the search to its deletion, and the service, in a process that lacks what Windows, or macOS, lacks."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shown = ("list", "show one", "report one", "verify one", "export one one.zip")
    commands = (f"run {SIZES}", *shown, "delete one --yes", "doctor")
    refused = [f"run {SIZES} --device mps"]
    if system == "become_plain":
        refused.append("run --trainer tests.support.own_trainers:softmax --search lr=log:0.01..1")
    serve = f"serve --port {port}"  # the last, as Ctrl-C ends the process
    done = blocked.code(
        PLAIN.format(system=system, port=port), tmp_path / "cache", *commands, *refused, serve, folder=tmp_path
    )
    statuses = [line.split()[1] for line in done.stderr.splitlines() if line.startswith("status")]
    assert statuses == [*["0"] * len(commands), *["2"] * len(refused)], done.stderr
    assert done.returncode == 130 and "service 200" in done.stdout and "Traceback" not in done.stderr
    assert "device is 'mps', but torch finds no GPU of Apple here; allowed here: cpu, auto" in done.stderr
    assert ("needs a system that forks processes, as Linux and macOS" in done.stderr) is (system == "become_plain")
    assert (tmp_path / "one.zip").is_file() and not [*tmp_path.rglob("*.part"), *tmp_path.rglob("*.sealing")]


class TestProcesses:
    @pytest.fixture
    def parent(self):
        """A process that leads a group and has a child."""
        code = (
            "import subprocess, sys, time; child = [sys.executable, '-c', 'import time; time.sleep(3600)']; "
            "print(subprocess.Popen(child).pid, flush=True); time.sleep(3600)"
        )
        command = [sys.executable, "-c", code]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **operating_system.new_group()) as started:
            child = psutil.Process(int(started.stdout.readline()))
            yield started, child
            for one in (started, child):
                with suppress(ProcessLookupError, psutil.NoSuchProcess):
                    one.kill()

    @pytest.mark.slow
    @pytest.mark.parametrize("groups", [True, False])
    def test_a_group_is_killed_with_or_without_the_systems_help(self, parent, monkeypatch, groups):
        started, child = parent
        if not groups:
            monkeypatch.delattr(os, "killpg")
            monkeypatch.delattr(os, "getpgid")
        assert operating_system.leads_group(started.pid) is groups
        operating_system.kill_group(started.pid)
        assert started.wait(HANGS) != 0
        gone, _ = psutil.wait_procs([child], timeout=HANGS)
        assert gone
        operating_system.kill_group(started.pid)  # nothing more

    def test_a_process_is_interrupted_by_a_signal(self, parent):
        started, _ = parent
        operating_system.interrupt(started)
        assert started.wait(HANGS) == -signal.SIGTERM
        operating_system.interrupt(started)  # nothing more

    def test_a_group_of_windows(self, monkeypatch):
        """Ctrl-Break for those that lead a group; an end at once without a console."""
        monkeypatch.setattr(sys, "platform", "win32")
        monkeypatch.setattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0x200, raising=False)
        monkeypatch.setattr(signal, "CTRL_BREAK_EVENT", 1, raising=False)
        assert operating_system.new_group() == {"creationflags": 0x200}
        sent = []
        with_console = SimpleNamespace(send_signal=sent.append, terminate=lambda: sent.append("end"))
        operating_system.interrupt(with_console)

        def without_console(number):
            raise OSError("no console")

        operating_system.interrupt(SimpleNamespace(send_signal=without_console, terminate=with_console.terminate))
        assert sent == [1, "end"]

    def test_nice_values_are_of_linux_alone(self, monkeypatch):
        monkeypatch.setattr(sys, "platform", "darwin")
        monkeypatch.delattr(os, "setpriority")
        operating_system.add_niceness(5)

    @pytest.mark.skipif(not of_trainers.AUTOGROUP.exists(), reason="this kernel has no groups of sessions")
    @pytest.mark.parametrize("niceness", [0, 7])
    def test_a_new_session_keeps_the_nice_value(self, niceness):
        code = (
            f"import os; os.nice({niceness}); from trainers.operating_system import *; keep_niceness();"
            "print(AUTOGROUP.read_text().split()[-1])"
        )
        options = {"start_new_session": True, "capture_output": True, "text": True}
        assert subprocess.run([sys.executable, "-c", code], **options).stdout.strip() == str(niceness)

    def test_a_nice_value_is_written_again_where_others_were_first(self, monkeypatch):
        tries = iter([BlockingIOError, BlockingIOError, None])

        def write_text(text, encoding):
            if (error := next(tries)) is not None:
                raise error

        monkeypatch.setattr(os, "getpriority", lambda *_: 5)
        monkeypatch.setattr(of_trainers, "AUTOGROUP", SimpleNamespace(write_text=write_text))
        of_trainers.keep_niceness()
        assert next(tries, "none left") == "none left"

    def test_signals_of_windows(self, tmp_path):
        code = (
            "import signal; del signal.SIGHUP; signal.SIGBREAK = 21\n"
            "from epsearch.operating_system import STOP_SIGNALS; print(*map(int, STOP_SIGNALS))"
        )
        assert blocked.code(code, tmp_path).stdout.split() == ["2", "15", "21"]


class TestFiles:
    def test_without_locks_nobody_waits(self, tmp_path, monkeypatch):
        monkeypatch.setattr(of_trainers, "fcntl", None)
        with (tmp_path / "one").open("wb") as first, (tmp_path / "one").open("wb") as second:
            assert not of_trainers.lock(first.fileno()) and not of_trainers.lock(second.fileno())

    def test_a_lock_is_held_until_the_file_is_closed(self, tmp_path):
        with (tmp_path / "one").open("wb") as first, (tmp_path / "one").open("wb") as second:
            assert of_trainers.lock(first.fileno())
            with pytest.raises(BlockingIOError):
                of_trainers.lock(second.fileno(), wait=False)
            first.close()
            assert of_trainers.lock(second.fileno(), wait=False)

    def test_files_are_whole_without_nameless_files_and_modes_of_descriptors(self, tmp_path, monkeypatch):
        monkeypatch.delattr(os, "O_TMPFILE")
        monkeypatch.setattr(os, "supports_fd", os.supports_fd - {os.chmod})
        monkeypatch.setattr(files, "DESCRIPTORS", str(tmp_path / "absent"))
        files.write_atomically(tmp_path / "folder" / "one", b"old")
        files.write_atomically(tmp_path / "folder" / "one", b"new\n")
        assert [one.name for one in (tmp_path / "folder").iterdir()] == ["one"]
        assert (tmp_path / "folder" / "one").read_bytes() == b"new\n"

    def test_windows_flushes_files_that_are_open_for_writing_and_no_folders(self, tmp_path, monkeypatch):
        opened = []
        monkeypatch.setattr(files, "os", SimpleNamespace(**vars(os) | {"name": "nt"}))
        monkeypatch.setattr(files.os, "open", lambda place, mode: opened.append((place, mode)) or os.open(place, mode))
        (tmp_path / "one").touch()
        files.flush(tmp_path / "one")
        files.flush(tmp_path)
        assert opened == [(tmp_path / "one", os.O_RDWR)]

    def test_owners(self, tmp_path, monkeypatch):
        (tmp_path / "link").symlink_to(tmp_path)
        assert operating_system.is_own(tmp_path) and not operating_system.is_own(tmp_path / "link")
        assert operating_system.user_name() == str(os.getuid())
        monkeypatch.setattr(os, "getuid", lambda: -5)
        assert not operating_system.is_own(tmp_path)
        monkeypatch.delattr(os, "getuid")
        assert operating_system.is_own(tmp_path) and not operating_system.is_own(tmp_path / "link")
        assert operating_system.user_name() == str(os.getpid())


class TestMachine:
    def test_cores(self, monkeypatch):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 5})
        assert of_trainers.usable_cores() == 3
        monkeypatch.delattr(os, "sched_getaffinity")
        monkeypatch.setattr(os, "cpu_count", lambda: 7)
        assert of_trainers.usable_cores() == 7

    def test_memory(self, tmp_path, monkeypatch):
        assert of_trainers.available_memory() > 0 and operating_system.resident_bytes() > 2**20
        monkeypatch.setattr(of_trainers, "MEMORY_FACTS", tmp_path / "absent")
        assert of_trainers.available_memory() is None

    def test_a_system_without_limits_of_the_address_space(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "resource", None)
        assert operating_system.address_space() is None

    def test_a_port_is_not_shared_on_windows(self, monkeypatch):
        options = []
        listening = SimpleNamespace(setsockopt=lambda *option: options.append(option))
        operating_system.reuse_address(listening)
        monkeypatch.setattr(operating_system.os, "name", "nt")
        operating_system.reuse_address(listening)
        monkeypatch.undo()
        assert len(options) == 1


class TestArithmetic:
    """torch for Macs has no oneDNN."""

    @pytest.fixture(autouse=True)
    def without(self, monkeypatch):
        monkeypatch.setattr(products.torch.backends.mkldnn, "is_available", lambda: False)
        monkeypatch.setattr(products, "_onednn", lambda *_: pytest.fail("it was called"))
        monkeypatch.setattr(pixel_choice, "PRODUCTS", {"mkl": products.PRODUCTS["mkl"]})

    def test_it_is_not_measured(self):
        assert products.available() == ["mkl"]
        assert pixel_choice._fastest_first_layer(64, 32, 0.9) == NumericPath(products="mkl")

    @pytest.mark.parametrize("path", ["cpu-float32-onednn", "cpu-float32-onednn-sparse"])
    def test_it_is_refused(self, small_study, path):
        with pytest.raises(UsageError, match=f"numeric-path '{path}' needs oneDNN, which this build of torch lacks"):
            arithmetic.numeric_path(small_study(numeric_path=path), SimpleNamespace(inputs=64))


def test_a_trainer_is_refused_where_processes_cannot_fork(monkeypatch):
    monkeypatch.setattr(process, "CAN_FORK", False)
    monkeypatch.setattr(process, "SYSTEM", "Windows")
    line = "trainer 'a:b' needs a system that forks processes, as Linux and macOS, got Windows"
    with pytest.raises(ForeignError, match=line):
        process.Process("trainer 'a:b'", {}, process.Limits())
