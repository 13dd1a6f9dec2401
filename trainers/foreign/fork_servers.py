"""Servers of plug-in trainers, kept while a study is trained: each imports its trainer once, for many learners."""

import atexit
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from trainers.notes import notify
from trainers.operating_system import CAN_FORK

if TYPE_CHECKING:
    from trainers.foreign.guard import ForkServer

POSSIBLE = CAN_FORK and sys.platform == "linux"
"""True where a guard adopts copies; on macOS the system's libraries forbid copies, too."""
SWITCH, OFF = "EPSEARCH_COPIES", "none"  # in the environment: no trainer is copied


class _Kept:
    """The idle servers of this process, and the trainers that cannot be copied."""

    def __init__(self) -> None:
        self.lock, self.holders = Lock(), 0
        self.idle: dict[str, list[ForkServer]] = {}
        self.refused: dict[str, str] = {}
        self.noted: set[str] = set()

    def put(self, key: str, server: "ForkServer") -> bool:
        """Keeps a server for another learner; returns False where nothing is kept any more."""
        with self.lock:
            if self.holders:
                self.idle.setdefault(key, []).append(server)
            return self.holders > 0

    def refuse(self, key: str, why: str) -> None:
        """Keeps the reason why a trainer is not copied."""
        with self.lock:
            self.refused[key] = why

    def note(self, key: str, reference: str) -> None:
        """Says once why a trainer is not copied."""
        with self.lock:
            new = key not in self.noted
            self.noted.add(key)
        if new:
            notify(f"each member imports {reference} anew: {self.refused[key]}")

    def release(self) -> None:
        """Ends the kept servers where nobody needs them any more."""
        with self.lock:
            self.holders -= 1
            if self.holders:
                return
            self.refused.clear()
            self.noted.clear()
        self.end_idle()

    def end_idle(self) -> None:
        """Ends all servers that wait for a learner."""
        with self.lock:
            idle = [server for servers in self.idle.values() for server in servers]
            self.idle.clear()
        for server in idle:
            server.end()


_kept = _Kept()


@contextmanager
def keep_servers() -> Iterator[None]:
    """Makes servers import trainers within the context, in all threads; they end with it."""
    with _kept.lock:
        _kept.holders += 1
    try:
        yield
    finally:
        _kept.release()


def keep_until_exit() -> None:
    """Makes servers import trainers, as `keep_servers`, until this process ends, which is a worker."""
    with _kept.lock:
        if _kept.holders:
            return
        _kept.holders += 1
    atexit.register(_kept.release)


def end_idle() -> None:
    """Ends the servers of this process that wait for a learner."""
    _kept.end_idle()


def server_for(job: Mapping[str, Any], device: str, environment: Mapping[str, str]) -> "tuple[ForkServer | None, str]":
    """Returns a server that imports what a job says, idle or new; or (None, why it is not used).

    The reason is "" where servers are not kept, or not possible. environment: of the trainer's process. A server that
    was begun for a declaration goes on as one for learners.
    """
    if not (_kept.holders and POSSIBLE and os.environ.get(SWITCH) != OFF):
        return None, ""
    same = {name: value for name, value in job.items() if name != "kind"}
    key = json.dumps([same, dict(environment), os.getcwd()], sort_keys=True)
    trains = job["kind"] == "train"
    if device != "cpu" and key not in _kept.refused:
        _kept.refuse(key, "copies were tried on processors alone, not on a GPU")
        _kept.end_idle()  # that of the declaration
    if why := _kept.refused.get(key, ""):
        if trains:
            _kept.note(key, job["reference"])
        return None, why
    while True:
        with _kept.lock:
            idle = _kept.idle.get(key)
            server = idle.pop() if idle else None
        if server is None:
            break
        if server.usable():
            return server, ""
        server.end()

    from trainers.foreign.guard import ForkServer  # late: studies without a trainer keep none

    def refuse(why: str) -> None:
        _kept.refuse(key, why)
        if trains:  # of a declaration nobody may hear it
            _kept.note(key, job["reference"])

    return ForkServer(environment, job, lambda server: _kept.put(key, server), refuse), ""
