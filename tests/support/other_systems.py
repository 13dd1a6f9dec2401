"""Takes from this process what Windows does not have, but from libraries, which have their own ways there."""

import asyncio  # noqa: F401
import ctypes  # noqa: F401  from here on: what the standard library and others import while all is still there
import multiprocessing  # noqa: F401
import os
import signal
import subprocess  # noqa: F401
import sys
import tempfile  # noqa: F401
from pathlib import Path

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
FOLDERS = ("/proc", "/sys", "/dev/shm")
DEPTH = 6  # frames between a call of ours and the file that it opens


def become_plain() -> None:
    """From now on this process has neither processes' groups nor locks of files, and no /proc of Linux."""
    for name in OF_OS:
        if hasattr(os, name):
            delattr(os, name)
    for name in OF_SIGNAL:
        delattr(signal, name)
    sys.modules |= dict.fromkeys(MODULES)
    os.supports_fd = os.supports_fd - {os.chmod}
    sys.addaudithook(_without_folders)


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
