"""Scheduler of the queue: starts a process for each waiting study, up to a limit at a time, of all and of each owner.

Studies begin by priority, and within one owners take turns (`in_turn`).

Its state is in the ledger, but for the processes that it has started itself. So a service that was killed and started
again goes on by the leases of what runs; and several services may work on one queue.
"""

import errno
import logging
import os
import threading
from collections import Counter
from time import monotonic

from epsearch.failures.errors import Unavailable, UsageError
from epsearch.preparation.build import check_name
from epsearch.service.logs import log
from epsearch.service.settings import Settings
from epsearch.service.work import notices
from epsearch.service.work.processes import StudyProcess, probe
from results.labels import count_text
from results.ledger.errors import StoreError
from results.ledger.store import Store
from results.ledger.writers.queue import Submission, has_ended, in_turn, waits
from results.ledger.writers.states import CANCELLING, FAILED, QUEUED, RUNNING, LeaseState

POLL_SECONDS = 1.0
LAST_SECONDS = 2.0  # that `stop` waits for the step under way
MOST_TRIES = 5  # processes in a row that end without a message and without a stored member
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 5.0  # seconds; each pause is twice the one before
TRANSIENT = frozenset(
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "EIO", "EROFS", "ESTALE")
    if hasattr(errno, name)
)
"""Errors of the machine, which would stop other studies, too: the scheduler waits until they are over."""
REFUSED = 2  # exit status of a study that cannot be trained as it is


class Scheduler:
    """Scheduler of one service; `step` starts and reaps processes once."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings, self._store = settings, store
        self._processes: dict[str, StudyProcess] = {}
        self._logged: set[str] = set()  # studies whose end is logged, until their submissions are closed
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="queue", daemon=True)
        self.problem = ""
        """Error of the last step, or trouble of the machine for which studies wait; empty without."""
        self._trouble = ""
        self._pause, self._until = FIRST_PAUSE, 0.0  # monotonic time before which nothing is started

    def start(self) -> None:
        """Starts a thread that works until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """Starts nothing more, and interrupts its processes, which queue their studies again."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(LAST_SECONDS)  # the thread may wait for the ledger
        for name, process in list(self._processes.items()):
            process.interrupt()
            log("study_interrupted", f"study {name!r} is interrupted, and queued again", study=name, pid=process.pid)

    @property
    def pids(self) -> dict[str, int]:
        """Study -> id of its process, for running processes of this service."""
        return {name: process.pid for name, process in list(self._processes.items()) if process.status() is None}

    def check(self) -> None:
        """Raises Unavailable if the queue does not work."""
        if self.problem or not self._thread.is_alive():
            raise Unavailable(self.problem or "the queue has ended")

    def step(self) -> None:
        """Reaps processes that have ended, and starts waiting studies. Raises StoreError if the ledger fails."""
        states = self._store.leases.states()
        submissions = {
            name: submission for name, submission in self._store.queue.submissions().items() if submission.open
        }
        self._reap(states, submissions)
        busy, waiting = set(self._processes), []
        for name, submission in submissions.items():
            current = states.get(name)
            if current is None:
                continue
            if has_ended(current.state, current.held):
                if self._store.queue.close(name):
                    notices.send(submission, self._settings, self._store)
                if name not in self._logged and name not in self._processes:  # another service has started its process
                    _log_end(name, current.now, current.reason)
                self._logged.discard(name)
            elif current.held and current.state != QUEUED:
                busy.add(name)
            elif current.state == CANCELLING:  # its process was killed
                self._store.leases.cancel(name)
            elif waits(current.state, current.held) and name not in self._processes:
                waiting.append(submission)
        # A trouble is over also where the studies that waited for its end were cancelled.
        if (waiting or self._trouble) and not self._over.is_set() and monotonic() >= self._until:
            owners = (submissions[name].submitter if name in submissions else "" for name in busy)
            self._begin_next(waiting, Counter(owners))

    def _begin_next(self, waiting: list[Submission], running: Counter[str]) -> None:
        """Begins waiting studies while there are fewer than may be trained; running: owner -> number of studies."""
        for submission in in_turn(waiting, self._store.queue.turns()):
            if running.total() >= self._settings.parallel:
                break
            if running[submission.submitter] < self._settings.most_running:
                if not self._begin(submission):
                    return
                running[submission.submitter] += 1
        self._wait_for_machine("")

    def _wait_for_machine(self, trouble: str) -> None:
        """Delays studies while the machine has a trouble, which is printed once; empty for none."""
        if trouble and trouble != self._trouble:
            log("queue_waits", f"studies of the queue wait: {trouble}", logging.WARNING)
        self._trouble = trouble
        self._until = monotonic() + self._pause if trouble else 0.0
        self._pause = min(2 * self._pause, LONGEST_PAUSE) if trouble else FIRST_PAUSE

    def _begin(self, submission: Submission) -> bool:
        """Starts the process of a study; returns False if a trouble of the machine prevents it."""
        name, tries = submission.study, submission.tries
        if tries >= MOST_TRIES:
            self._fail(submission, f"its process ended {count_text(tries, 'time')} without a message")
            return True
        try:
            check_name(name, self._settings.out, self._settings.storage)
        except UsageError as error:  # submitted to an earlier version: its folder must not be made
            self._fail(submission, str(error))
            return True
        try:
            probe(self._settings.out)
            process = StudyProcess(name, self._settings)
        except OSError as error:
            reason = f"no process could be started for {name}: {error.strerror}"
            if error.errno in TRANSIENT:
                self._wait_for_machine(reason)
                return False
            self._fail(submission, reason)
            return True
        self._processes[name] = process
        self._logged.discard(name)
        self._store.queue.begin(submission)
        log("study_begun", f"study {name!r} begins", study=name, owner=submission.submitter, pid=process.pid)
        return True

    def _fail(self, submission: Submission, reason: str, status: int | None = None) -> None:
        """Fails a study, logs its end, and sends its messages; status: of its process."""
        if self._store.queue.fail(submission.study, reason):
            notices.send(submission, self._settings, self._store)
        _log_end(submission.study, FAILED, reason, status)

    def _reap(self, states: dict[str, LeaseState], submissions: dict[str, Submission]) -> None:
        """Forgets processes that have ended; fails studies that they refused to train."""
        for name, process in list(self._processes.items()):
            if (status := process.status()) is None:
                continue
            del self._processes[name]
            states.pop(name, None)  # read before the process ended: left to the next step
            current = self._store.leases.state_of(name)
            if name in submissions:
                self._logged.add(name)
            if current is None or current.held or name not in submissions or current.state not in (QUEUED, RUNNING):
                state, reason = ("deleted", "") if current is None else (current.now, current.reason)
                _log_end(name, state, reason, status)
                continue
            if status > 0 and (trouble := self._trouble_of(process)):
                self._store.queue.set_tries(name, max(0, submissions[name].tries - 1))  # not the study's own fault
                self._wait_for_machine(f"{name}: {trouble}")
            elif status == REFUSED:
                self._fail(submissions[name], process.last_error() or "it was refused", status)
                continue
            elif status > 0 and submissions[name].tries >= MOST_TRIES:
                self._fail(submissions[name], process.last_error() or f"its process ended with status {status}", status)
                continue
            _log_end(name, current.now, process.last_error(), status)

    def _trouble_of(self, process: StudyProcess) -> str:
        """Returns the trouble of the machine that ended a process; empty for none."""
        try:
            probe(self._settings.out)
        except OSError as error:
            return str(error.strerror) if error.errno in TRANSIENT else ""
        message = process.last_error()
        return message if any(os.strerror(number) in message for number in TRANSIENT) else ""

    def _run(self) -> None:
        while not self._over.wait(POLL_SECONDS):
            try:
                self.step()
                self.problem = self._trouble and f"studies of the queue wait: {self._trouble}"
            except StoreError as error:  # the next step tries again
                self._log_problem(str(error))
            except Exception as error:  # noqa: BLE001  a thread that ended would leave the queue without a message
                self._log_problem(f"a bug in epsearch: {type(error).__name__}: {error}", error)

    def _log_problem(self, problem: str, bug: Exception | None = None) -> None:
        """Stores the error of a step, and logs it once."""
        if problem != self.problem:
            log("queue_failed", f"the queue: {problem}", logging.WARNING if bug is None else logging.ERROR, bug)
        self.problem = problem


def _log_end(name: str, state: str, reason: str, status: int | None = None) -> None:
    """Logs the end of a study; status: of its process, None for one of another service."""
    message = f"study {name!r} has ended: {state}" + (f", {reason}" if reason else "")
    log("study_ended", message, study=name, state=state, reason=reason, exit_status=status)
