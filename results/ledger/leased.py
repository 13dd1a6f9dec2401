"""A ledger that one process writes to, study by study: leases, claims, states and events as calls of a store."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Engine

from results.ledger import schema
from results.ledger.access import Access, Prepare
from results.ledger.retry import tried_again
from results.ledger.url import LedgerUrl
from results.ledger.writers import claims, events, leases, queue
from results.ledger.writers.errors import LeaseHeld, LeaseLost
from results.ledger.writers.events import Event
from results.ledger.writers.holder import Holder, here
from results.ledger.writers.leases import Lease
from results.ledger.writers.queue import Audited, Submission
from results.ledger.writers.states import CANCELLING, FAILED, QUEUED, RUNNING, Standing

REGAIN_SECONDS = 1.0
"""Between two tries to get a lease back."""


class Leased(Access):
    """What a `Store` knows of writers; a run that lost its lease waits for it as long as the store has patience.

    `renew`, `release`, `enter`, `note` and `claim` are of the lease that the store has then: another one than
    `acquire` returned, where that was lost and regained meanwhile. They raise RuntimeError where it never had one.
    """

    def __init__(self, make: Callable[[], Engine], url: LedgerUrl, prepare: Prepare) -> None:
        super().__init__(make, url, prepare)
        self._regaining = threading.Lock()
        self._given_back = False

    def acquire(self, name: str, holder: Holder, resume: bool = True, begin: bool = True) -> Lease:
        """Takes the lease of a study, stored or not, under which this store then writes.

        holder: from `here`; resume: also of a study that was cancelled; begin: the study runs from now on, else from
        `begin` on, and until then its state stays as it was. Raises LeaseHeld while somebody else has it,
        and StudyCancelled. A lease that is over, or whose holder is gone, is taken over.
        """
        own = holder.acquiring()

        def work() -> Lease:
            with self._transaction("write to") as connection:
                lease = leases.acquire(connection, name, own, resume)
                claims.drop_all(connection, name)  # of those who had it before
                if begin:
                    _begin(connection, lease)
                return lease

        self.lease = lease = self.patience.again(work)
        self._given_back = False
        return lease

    @tried_again
    def begin(self) -> None:
        """Lets our study run, whatever it was when we acquired it. Raises LeaseLost."""
        lease = self._own()
        with self._transaction("write to") as connection:
            _begin(connection, lease)

    def renew(self) -> bool:
        """Lets our lease last LEASE_SECONDS from now; returns False if it was taken over or released.

        It is tried once, whatever the store's patience: how long there is for more is known to whoever renews.
        """
        lease = self._own()
        with self._transaction("write to") as connection:
            return leases.renew(connection, lease)

    @tried_again
    def release(self) -> None:
        """Gives our lease back, with its claims; then this store writes no more, until it acquires another."""
        lease, self._given_back = self._own(), True
        with self._transaction("write to") as connection:
            leases.release(connection, lease)
            claims.drop_of(connection, lease)

    def regain(self, lost: LeaseLost) -> None:
        """Takes a lost lease again as soon as nobody has it: what was trained is still to be stored.

        What others have stored meanwhile is recognised by its keys. Raises the error that it was given where the
        store's patience is over, and where it released the lease itself; StudyCancelled for a study that was cancelled.
        """
        deadline, told = self.patience.clock() + self.patience.seconds, False
        with self._regaining:  # threads that lost it together regain it once
            while not self._given_back and self.patience.clock() + REGAIN_SECONDS <= deadline:
                if self.patience.again(self.renew):
                    return
                try:
                    self.acquire(lost.study, here(), resume=False, begin=False)
                    return
                except LeaseHeld as held:
                    if not told:
                        self.patience.tell(f"{held}; waiting for up to {self.patience.seconds:.0f} s to store results")
                        told = True
                self.patience.sleep(REGAIN_SECONDS)
        raise lost

    def _own(self) -> Lease:
        if self.lease is None:
            raise RuntimeError("this store has no lease")
        return self.lease

    @tried_again
    def enter(self, state: str, reason: str = "") -> None:
        """Lets our study enter a state, once. Raises LeaseLost, and NotAllowed where it may not follow the present one.

        reason: why it failed; what cannot be printed becomes spaces.
        """
        lease, reason = self._own(), _one_line(reason)
        with self._transaction("write to") as connection:
            if leases.enter(connection, lease, state, reason):
                events.append(connection, lease.name, lease.token, [_state(state, reason)])

    @tried_again
    def cancel(self, name: str) -> Standing | None:
        """Asks whoever trains a study to stop; one that nobody trains is cancelled at once. Returns how it stands then.

        None for a study that nobody has trained yet; one that has ended stays as it is.
        """
        with self._transaction("write to") as connection:
            stood = leases.cancel(connection, name)
            if stood is None:
                return None
            before, after = stood
            if before.state != after.state:
                events.append(connection, name, after.token, [_state(after.state)])
            return after

    @tried_again
    def standings(self) -> dict[str, Standing]:
        """Returns study -> how it stands, for all that have ever been trained; none in a ledger of an older program."""
        if schema.leases.name not in self._tables:
            return {}
        with self._transaction("read") as connection:
            return leases.standings(connection)

    @tried_again
    def standing(self, name: str) -> Standing | None:
        """Returns how a study stands; None for one that nobody has trained yet, and in a ledger of an older program."""
        if schema.leases.name not in self._tables:
            return None
        with self._transaction("read") as connection:
            return leases.standing(connection, name)

    def cancelling(self) -> bool:
        """Returns whether our study is to be cancelled; tried once, whatever the store's patience."""
        lease = self._own()
        with self._transaction("read") as connection:
            there = leases.standing(connection, lease.name)
        return there is not None and (there.token, there.state) == (lease.token, CANCELLING)

    def note(self, new: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Appends (kind, data) to the events of our study. Raises LeaseLost; tried once, as events are not results."""
        lease = self._own()
        with self._transaction("write to") as connection:
            leases.guard(connection, lease)
            events.append(connection, lease.name, lease.token, new)

    @tried_again
    def events(self, name: str, after: int = 0, most: int = events.KEPT) -> list[Event]:
        """Returns the events of a study behind one, the oldest first, at most so many."""
        if schema.events.name not in self._tables:
            return []
        with self._transaction("read") as connection:
            return events.after(connection, name, after, most)

    @tried_again
    def claim(self, keys: Collection[str]) -> set[str]:
        """Claims keys for our study, and returns those that are claimed by it now: it is to train their members.

        The others have a record or a live claim of another study. Raises LeaseLost.
        """
        lease = self._own()
        with self._transaction("write to") as connection:
            leases.guard(connection, lease)
            # Before records are looked for: whoever adds one drops the claim on it in the same transaction.
            claims.lock(connection)
            known = self._known(connection, schema.runs, schema.from_row, sorted(set(keys)))
            return claims.claim(connection, lease, [*(set(keys) - known.keys())])

    @tried_again
    def claimed(self, keys: Collection[str]) -> dict[str, str]:
        """Returns key -> study that has claimed it, for those keys that a study is training now."""
        if schema.claims.name not in self._tables:  # of an older ledger that is read
            return {}
        with self._transaction("read") as connection:
            return claims.claimed(connection, sorted(set(keys)))

    @tried_again
    def submit(self, name: str, given: Mapping[str, Any], priority: int = 0, submitter: str = "") -> Submission | None:
        """Puts a study (given, as JSON) into the queue, as `queue.submit`: None, or what stays there instead of it."""
        with self._transaction("write to") as connection:
            before = queue.submit(connection, name, given, priority, submitter)
            if before is None:
                _tell(connection, name, QUEUED)
            return before

    @tried_again
    def submissions(self) -> dict[str, Submission]:
        """Returns study -> its last submission, in the order in which they are to be trained."""
        if schema.queue.name not in self._tables:
            return {}
        with self._transaction("read") as connection:
            return queue.submissions(connection)

    @tried_again
    def close_submission(self, name: str) -> None:
        """Closes a submission: its study has ended."""
        with self._transaction("write to") as connection:
            queue.close(connection, name)

    @tried_again
    def started(self, name: str, tries: int) -> None:
        """Keeps how often a process was started for a study of the queue."""
        with self._transaction("write to") as connection:
            queue.started(connection, name, tries)

    @tried_again
    def put_back(self, name: str) -> bool:
        """Queues a study again that was left running, unless somebody trains it; returns whether it is queued now."""
        return self._leave(name, QUEUED)

    @tried_again
    def fail(self, name: str, reason: str) -> bool:
        """Lets a study of the queue fail that nobody trains, and closes its submission; whether it has failed now.

        reason: why, of any form; what cannot be printed becomes spaces.
        """
        return self._leave(name, FAILED, _one_line(reason))

    def _leave(self, name: str, state: str, reason: str = "") -> bool:
        with self._transaction("write to") as connection:
            left = queue.leave(connection, name, state, reason)
            if left:
                _tell(connection, name, state, reason)
            return left

    @tried_again
    def events_behind(self, last: int, most: int) -> list[Event]:
        """Returns the events of all studies behind one, the oldest first, at most so many."""
        with self._transaction("read") as connection:
            return events.after(connection, None, last, most)

    @tried_again
    def last_event(self) -> int:
        """Returns the number of the newest event, 0 without one."""
        with self._transaction("read") as connection:
            return events.last(connection)

    @tried_again
    def newest_event(self, name: str, *kinds: str) -> Event | None:
        """Returns the newest event of a study, of one of these kinds if some are named; None without one."""
        if schema.events.name not in self._tables:
            return None
        with self._transaction("read") as connection:
            return events.newest(connection, name, kinds)

    @tried_again
    def audit(self, who: str, action: str, study: str, detail: Mapping[str, Any]) -> None:
        """Keeps that somebody has asked for a change; detail: JSON, without secrets."""
        with self._transaction("write to") as connection:
            queue.keep(connection, who, action, study, detail)

    @tried_again
    def audited(self, most: int, name: str | None = None) -> list[Audited]:
        """Returns the newest changes that were asked for, at most so many, newest first; name: of one study alone."""
        with self._transaction("read") as connection:
            return queue.audited(connection, most, name)

    @tried_again
    def first_submitted(self) -> dict[str, float]:
        """Returns study -> when it was submitted for the first time, in seconds since 1970."""
        with self._transaction("read") as connection:
            return queue.first_submitted(connection) if schema.audit.name in self._tables else {}


def _tell(connection: Connection, name: str, state: str, reason: str = "") -> None:
    there = leases.standing(connection, name)
    events.append(connection, name, 0 if there is None else there.token, [_state(state, reason)])


def _begin(connection: Connection, lease: Lease) -> None:
    leases.begin(connection, lease)
    events.append(connection, lease.name, lease.token, [_state(RUNNING)])


def _one_line(reason: str) -> str:
    """Returns a reason in which what cannot be printed is a space."""
    return "".join(letter if letter.isprintable() else " " for letter in reason)


def _state(state: str, reason: str = "") -> tuple[str, dict[str, str]]:
    """Returns the event of a study that enters a state."""
    return "state", {"state": state, "reason": reason}
