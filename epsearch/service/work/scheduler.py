"""Works on the queue: a process for each study that waits, at most so many at a time, by priority and age.

All that it knows is in the ledger, but for the processes that it has started itself. So a service that was killed, and
is started again, finds what is running by the leases, and goes on; and several may work on one queue.
"""

import errno
import os
import sys
import threading
from time import monotonic

from epsearch.failures.errors import Unavailable, UsageError
from epsearch.preparation.build import check_name
from epsearch.service.settings import Settings
from epsearch.service.work.processes import Process, probe
from results.labels import count_text
from results.ledger.errors import StoreError
from results.ledger.store import Store
from results.ledger.writers.queue import Submission, ended, waits
from results.ledger.writers.states import CANCELLING, QUEUED, RUNNING, Standing

POLL_SECONDS = 1.0
LAST_SECONDS = 2.0  # that its last step has
MOST_TRIES = 5  # processes in a row that end without a word, and without a member that was stored
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 5.0  # seconds; of two that follow each other the second is twice the first
PASSING = frozenset(
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "EIO", "EROFS", "ESTALE")
    if hasattr(errno, name)
)
"""Errors of the machine, which other studies would meet, too: it is waited until they are over."""
REFUSED = 2  # exit status of a study that cannot be trained as it is


class Scheduler:
    """The queue of one service; `step` does what there is to do now."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings, self._store = settings, store
        self._processes: dict[str, Process] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="queue", daemon=True)
        self.problem = ""
        """Why the last step failed, or for which trouble of the machine studies wait; "" where neither is so."""
        self._trouble = ""
        self._pause, self._until = FIRST_PAUSE, 0.0  # monotonic time before which nothing is begun

    def start(self) -> None:
        """Works in a thread of its own, until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """Starts nothing more, and interrupts what it has started: that queues itself again when it ends."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(LAST_SECONDS)  # it may wait for the ledger
        for process in list(self._processes.values()):
            process.interrupt()

    @property
    def pids(self) -> dict[str, int]:
        """Study -> its process, for those that this service has started and that are there."""
        return {name: one.pid for name, one in list(self._processes.items()) if one.status() is None}

    def check(self) -> None:
        """Raises Unavailable where the queue does not work."""
        if self.problem or not self._thread.is_alive():
            raise Unavailable(self.problem or "the queue has ended")

    def step(self) -> None:
        """Looks at what has ended, and starts what may begin. Raises StoreError where the ledger fails."""
        standings = self._store.leases.standings()
        open_ones = [one for one in self._store.queue.submissions().values() if one.open]
        self._reap(standings, {one.study: one for one in open_ones})
        busy, waiting = set(self._processes), []
        for one in open_ones:
            there = standings.get(one.study)
            if there is None:
                continue
            if ended(there.state, there.held):
                self._store.queue.close(one.study)
            elif there.held and there.state != QUEUED:
                busy.add(one.study)
            elif there.state == CANCELLING:  # its process was killed
                self._store.leases.cancel(one.study)
            elif waits(there.state, there.held) and one.study not in self._processes:
                waiting.append(one)
        if not waiting or self._over.is_set() or monotonic() < self._until:
            return
        for one in waiting[: max(0, self._settings.parallel - len(busy))]:
            if not self._begin(one):
                return
        self._troubled("")

    def _troubled(self, trouble: str) -> None:
        """Lets studies wait for the end of a trouble of the machine, which is said once; "" where there is none."""
        if trouble and trouble != self._trouble:
            print(f"epsearch: studies of the queue wait: {trouble}", file=sys.stderr, flush=True)
        self._trouble = trouble
        self._until = monotonic() + self._pause if trouble else 0.0
        self._pause = min(2 * self._pause, LONGEST_PAUSE) if trouble else FIRST_PAUSE

    def _begin(self, one: Submission) -> bool:
        """Starts the process of a study, and returns False where a trouble of the machine is in the way."""
        if one.tries >= MOST_TRIES:
            self._store.queue.fail(one.study, f"its process ended {count_text(one.tries, 'time')} without a word")
            return True
        try:
            check_name(one.study, self._settings.out, self._settings.storage)
        except UsageError as error:  # submitted to an earlier version: its folder must not be made
            self._store.queue.fail(one.study, str(error))
            return True
        try:
            probe(self._settings.out)
            process = Process(one.study, self._settings)
        except OSError as error:
            why = f"no process could be started for {one.study}: {error.strerror}"
            if error.errno in PASSING:
                self._troubled(why)
                return False
            self._store.queue.fail(one.study, why)
            return True
        self._processes[one.study] = process
        self._store.queue.set_tries(one.study, one.tries + 1)
        return True

    def _reap(self, standings: dict[str, Standing], open_ones: dict[str, Submission]) -> None:
        """Forgets processes that have ended; a study that was refused before it began has failed."""
        for name, process in list(self._processes.items()):
            if (status := process.status()) is None:
                continue
            del self._processes[name]
            # As the ledger was read before: of a process that ended since, the next step knows more.
            standings.pop(name, None)
            there = self._store.leases.standing(name)
            if there is None or there.held or name not in open_ones or there.state not in (QUEUED, RUNNING):
                continue
            if status > 0 and (trouble := self._met(process)):
                self._store.queue.set_tries(name, max(0, open_ones[name].tries - 1))  # it is none of the study's own
                self._troubled(f"{name}: {trouble}")
            elif status == REFUSED:
                self._store.queue.fail(name, process.last_words() or "it was refused")
            elif status > 0 and open_ones[name].tries >= MOST_TRIES:
                self._store.queue.fail(name, process.last_words() or f"its process ended with status {status}")

    def _met(self, process: Process) -> str:
        """The trouble of the machine that a process has met; "" where it has met none."""
        try:
            probe(self._settings.out)
        except OSError as error:
            return str(error.strerror) if error.errno in PASSING else ""
        words = process.last_words()
        return words if any(os.strerror(number) in words for number in PASSING) else ""

    def _keep(self) -> None:
        while not self._over.wait(POLL_SECONDS):
            try:
                self.step()
                self.problem = self._trouble and f"studies of the queue wait: {self._trouble}"
            except StoreError as error:  # the next step finds the database again, or does not
                self.problem = str(error)
            except Exception as error:  # noqa: BLE001  a queue that stopped would say nothing to those who wait
                self.problem = f"a bug in epsearch: {type(error).__name__}: {error}"
