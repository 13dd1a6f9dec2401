"""Servers of plug-in trainers, kept while a study is trained: each imports its trainer once, for many learners."""

import atexit
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any

from trainers.foreign.guard import ForkServer
from trainers.notes import notify

POSSIBLE = sys.platform == "linux"
"""True where a guard adopts copies; on macOS the system's libraries forbid copies, too."""
SWITCH, OFF = "EPSEARCH_COPIES", "none"  # in the environment: no trainer is copied


class _Kept:
    """The idle servers of this process, and the trainers that cannot be copied."""

    def __init__(self) -> None:
        self.lock, self.holders = Lock(), 0
        self.idle: dict[str, list[ForkServer]] = {}
        self.refused: dict[str, str] = {}

    def put(self, key: str, server: ForkServer) -> bool:
        """Keeps a server for another learner; returns False where nothing is kept any more."""
        with self.lock:
            if self.holders:
                self.idle.setdefault(key, []).append(server)
            return self.holders > 0

    def refuse(self, key: str, reference: str, why: str) -> None:
        """Notes why a trainer is not copied."""
        with self.lock:
            self.refused[key] = why
        notify(f"each member imports {reference} anew: {why}")

    def release(self) -> None:
        """Ends what is kept where nobody needs it any more."""
        with self.lock:
            self.holders -= 1
            if self.holders:
                return
            idle = [server for servers in self.idle.values() for server in servers]
            self.idle.clear()
            self.refused.clear()
        for server in idle:
            server.end()


_kept = _Kept()


@contextmanager
def keeping() -> Iterator[None]:
    """Within the context, in all threads, trainers are imported by servers, which end with it."""
    with _kept.lock:
        _kept.holders += 1
    try:
        yield
    finally:
        _kept.release()


def keep_until_exit() -> None:
    """As `keeping`, until this process ends, which is a worker."""
    with _kept.lock:
        if _kept.holders:
            return
        _kept.holders += 1
    atexit.register(_kept.release)


def server_for(job: Mapping[str, Any], device: str, environment: Mapping[str, str]) -> tuple[ForkServer | None, str]:
    """Returns a server that imports what a job says, idle or new; or (None, why it is not used).

    The reason is "" where servers are not kept, or not possible. environment: of the trainer's process.
    """
    if not (_kept.holders and POSSIBLE and os.environ.get(SWITCH) != OFF):
        return None, ""
    reference, key = job["reference"], json.dumps([job, dict(environment), os.getcwd()], sort_keys=True)
    if device != "cpu" and key not in _kept.refused:
        _kept.refuse(key, reference, "copies were tried on processors alone, not on a GPU")
    if why := _kept.refused.get(key, ""):
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

    def refused(why: str) -> None:
        _kept.refuse(key, reference, why)

    return ForkServer(environment, job, lambda one: _kept.put(key, one), refused), ""
