"""Works on the queue: a process for each study that waits, at most so many at a time, by priority and age.

All that it knows is in the ledger, but for the processes that it has started itself. So a service that was killed, and
is started again, finds what is running by the leases, and goes on; and several may work on one queue.
"""

import threading

from epsearch.failures.errors import Unavailable, UsageError
from epsearch.preparation.build import check_name
from epsearch.service.settings import Settings
from epsearch.service.work.processes import Process
from results.labels import count_text
from results.ledger.errors import StoreError
from results.ledger.store import Store
from results.ledger.writers.queue import Submission, ended, waits
from results.ledger.writers.states import CANCELLING, QUEUED, RUNNING, Standing

POLL_SECONDS = 1.0
LAST_SECONDS = 2.0  # that its last step has
MOST_TRIES = 5  # processes in a row that end without a word, and without a member that was stored
REFUSED = 2  # exit status of a study that cannot be trained as it is


class Scheduler:
    """The queue of one service; `step` does what there is to do now."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings, self._store = settings, store
        self._processes: dict[str, Process] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="queue", daemon=True)
        self.problem = ""
        """Why the last step failed; "" where it did not."""

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
        standings = self._store.standings()
        open_ones = [one for one in self._store.submissions().values() if one.open]
        self._reap(standings, {one.study: one for one in open_ones})
        busy, waiting = set(self._processes), []
        for one in open_ones:
            there = standings.get(one.study)
            if there is None:
                continue
            if ended(there.state, there.held):
                self._store.close_submission(one.study)
            elif there.held and there.state != QUEUED:
                busy.add(one.study)
            elif there.state == CANCELLING:  # its process was killed
                self._store.cancel(one.study)
            elif waits(there.state, there.held) and one.study not in self._processes:
                waiting.append(one)
        for one in [] if self._over.is_set() else waiting[: max(0, self._settings.parallel - len(busy))]:
            self._begin(one)

    def _begin(self, one: Submission) -> None:
        if one.tries >= MOST_TRIES:
            self._store.fail(one.study, f"its process ended {count_text(one.tries, 'time')} without a word")
            return
        try:
            check_name(one.study, self._settings.out, self._settings.storage)
        except UsageError as error:  # submitted to an earlier version: its folder must not be made
            self._store.fail(one.study, str(error))
            return
        self._store.started(one.study, one.tries + 1)
        try:
            self._processes[one.study] = Process(one.study, self._settings)
        except OSError as error:
            self._store.fail(one.study, f"no process could be started for it: {error.strerror}")

    def _reap(self, standings: dict[str, Standing], open_ones: dict[str, Submission]) -> None:
        """Forgets processes that have ended; a study that was refused before it began has failed."""
        for name, process in list(self._processes.items()):
            if (status := process.status()) is None:
                continue
            del self._processes[name]
            # As the ledger was read before: of a process that ended since, the next step knows more.
            standings.pop(name, None)
            there = self._store.standing(name)
            if there is None or there.held or name not in open_ones or there.state not in (QUEUED, RUNNING):
                continue
            if status == REFUSED:
                self._store.fail(name, process.last_words() or "it was refused")
            elif status > 0 and open_ones[name].tries >= MOST_TRIES:
                self._store.fail(name, process.last_words() or f"its process ended with status {status}")

    def _keep(self) -> None:
        while not self._over.wait(POLL_SECONDS):
            try:
                self.step()
                self.problem = ""
            except StoreError as error:  # the next step finds the database again, or does not
                self.problem = str(error)
            except Exception as error:  # noqa: BLE001  a queue that stopped would say nothing to those who wait
                self.problem = f"a bug in epsearch: {type(error).__name__}: {error}"
