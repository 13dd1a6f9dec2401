"""Takes from this process what Windows, or macOS, lacks, but from libraries, which have their own ways there."""

import asyncio  # noqa: F401
import ctypes  # noqa: F401  from here on: what the standard library and others import while all is still there
import multiprocessing  # noqa: F401
import os
import signal
import subprocess  # noqa: F401
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from urllib.request import urlopen

import numba  # noqa: F401
import pandas  # noqa: F401
import platformdirs  # noqa: F401
import plotly  # noqa: F401
import psutil  # noqa: F401
import pyarrow  # noqa: F401
import sklearn.datasets  # noqa: F401
import sqlalchemy  # noqa: F401
import torch  # noqa: F401
import uvicorn  # noqa: F401

ROOT = str(Path(__file__).parents[2])
OURS = tuple(f"{ROOT}/{package}/" for package in ("epsearch", "trainers", "search_spaces", "results"))
OF_OS = (
    *("fork", "killpg", "getpgid", "getpgrp", "setsid", "setpriority", "getpriority", "PRIO_PROCESS"),
    *("sched_getaffinity", "sched_setaffinity", "getuid", "geteuid", "getgid", "sysconf", "getloadavg", "nice"),
    *("O_NONBLOCK", "O_DIRECTORY", "EX_OK", "EX_SOFTWARE", "WNOHANG", "mkfifo", "fchmod"),
    *("register_at_fork", "pidfd_open", "memfd_create", "chown", "lchown", "uname"),
)
OF_SIGNAL = (
    "SIGKILL",
    "SIGHUP",
    "SIGCONT",
    "SIGSTOP",
    "SIGUSR1",
    "SIGUSR2",
    "SIGALRM",
    "SIGPIPE",
    "SIGCHLD",
    "SIGQUIT",
)
MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "uvloop", "ray")
OF_LINUX = (
    *(
        "sched_getaffinity",
        "sched_setaffinity",
        "O_TMPFILE",
        "O_DIRECT",
        "pidfd_open",
        "memfd_create",
        "sched_setscheduler",
    ),
    *(
        "posix_fallocate",
        "posix_fadvise",
        "pipe2",
        "splice",
        "getrandom",
        "getxattr",
        "setxattr",
        "listxattr",
        "eventfd",
    ),
)
NEED_MORE = (
    "trainers.foreign",  # needs processes that fork
    "epsearch.runners.on_ray",
    "search_spaces.adapters.ray_tune",
)
FOLDERS = ("/proc", "/sys", "/dev/shm")
DEPTH = 6  # frames between a call of ours and the file that it opens


def become_plain() -> None:
    """From now on this process has neither processes' groups nor locks of files, and no /proc of Linux."""
    _lose(OF_OS, OF_SIGNAL, MODULES)
    os.supports_fd = os.supports_fd - {os.chmod}
    sys.addaudithook(_without_folders)


def become_mac() -> None:
    """From now on this process says that it is on macOS, and has nothing of Linux alone."""
    _lose(OF_LINUX, ("SIGSTKFLT", "SIGPWR", "SIGPOLL", "sigtimedwait", "sigwaitinfo"), ("ray",))
    sys.platform = "darwin"
    tempfile._O_TMPFILE_WORKS = False  # type: ignore[attr-defined]
    sys.addaudithook(_without_folders)


def import_all() -> None:
    """Imports every module of ours but those of plug-in trainers' processes and of other libraries."""
    for package in ("epsearch", "trainers", "search_spaces", "results"):
        for path in sorted(Path(ROOT, package).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if not name.startswith(NEED_MORE) and path.name not in ("__main__.py", "__init__.py"):
                import_module(name)


def stop_serving(port: int) -> None:
    """Ends this process's service as Ctrl-C does, once its page has come; what has come is printed."""
    for _ in range(600):
        try:
            with urlopen(f"http://127.0.0.1:{port}/") as answer:
                print("service", answer.status, flush=True)
                break
        except OSError:
            time.sleep(0.1)
    signal.raise_signal(signal.SIGINT)


def _lose(of_os: tuple[str, ...], of_signal: tuple[str, ...], modules: tuple[str, ...]) -> None:
    for module, names in ((os, of_os), (signal, of_signal)):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    sys.modules |= dict.fromkeys(modules)


def _without_folders(event: str, arguments: tuple[object, ...]) -> None:
    """Hides folders of Linux from our own code."""
    if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith(FOLDERS) and _ours():
        raise FileNotFoundError(2, "No such file or directory", arguments[0])


def _ours() -> bool:
    frame = sys._getframe(2)
    for _ in range(DEPTH):
        if frame is None or "site-packages" in frame.f_code.co_filename:  # psutil, too, reads /proc
            return False
        if frame.f_code.co_filename.startswith(OURS):
            return True
        frame = frame.f_back
    return False
