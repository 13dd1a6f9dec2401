"""Leases: one writer per study, and the study's state, which only that writer changes."""

import threading

from sqlalchemy import Connection, not_

from results.ledger import schema
from results.ledger.database import insertion
from results.ledger.writers import claims, events
from results.ledger.writers.access import Access
from results.ledger.writers.errors import LeaseHeld, LeaseLost, NotAllowed, StudyCancelled
from results.ledger.writers.holder import Holder, here
from results.ledger.writers.lease import (
    Lease,
    expiry,
    guard,
    is_current,
    lasts,
    now,
    renew,
    state_of,
    states,
)
from results.ledger.writers.repository import Repository, reads, writes
from results.ledger.writers.states import CANCELLED, CANCELLING, FOLLOWS, QUEUED, RUNNING, STOPPED, LeaseState

REGAIN_SECONDS = 1.0
"""Between two tries to get a lease back."""

leases = schema.leases


class Leases(Repository):
    """The leases of a store: its own, and the states of all studies.

    `begin`, `renew`, `release`, `enter` and `cancelling` are of the lease that the store has then: another one than
    `acquire` returned, where that was lost and regained meanwhile. They raise RuntimeError where it never had one.
    """

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._regaining = threading.Lock()
        self._released = False

    def acquire(self, name: str, holder: Holder, resume: bool = True, begin: bool = True) -> Lease:
        """Takes the lease of a study, stored or not, under which this store then writes.

        holder: from `here`; resume: also of a study that was cancelled; begin: the study runs from now on, else from
        `begin` on, and until then its state stays as it was. Raises LeaseHeld while another holder has it, and
        StudyCancelled. A lease that is over, or whose holder is gone, is taken over.
        """
        acquiring = holder.acquiring()

        def work() -> Lease:
            with self._access.transaction("write to") as connection:
                lease = _acquire(connection, name, acquiring, resume)
                claims.drop_all(connection, name)  # of the holder before
                if begin:
                    _begin(connection, lease)
                return lease

        self._access.lease = lease = self._access.retries.again(work)
        self._released = False
        return lease

    @writes
    def begin(self, connection: Connection) -> None:
        """Starts our study, whatever its state when it was acquired. Raises LeaseLost."""
        _begin(connection, self._lease())

    def renew(self) -> bool:
        """Lets our lease last LEASE_SECONDS from now; returns False if it was taken over or released.

        It is tried once, whatever the store's time for retries: the caller knows how much time is left for more.
        """
        lease = self._lease()
        with self._access.transaction("write to") as connection:
            return renew(connection, lease)

    def release(self) -> None:
        """Releases our lease with its claims; then this store writes no more, until it acquires another.

        Nothing is done where another holder has it.
        """
        lease, self._released = self._lease(), True
        self._release(lease)

    @writes
    def _release(self, connection: Connection, lease: Lease) -> None:
        connection.execute(leases.update().where(is_current(lease)).values(expires=0.0))
        claims.drop_of(connection, lease)

    def regain(self, lost: LeaseLost) -> None:
        """Takes a lost lease again as soon as it is free: what was trained is still to be stored.

        Records that others have stored meanwhile are recognised by their keys. Raises `lost` where the store's
        time for retries is over, and where it released the lease itself; StudyCancelled for a study that was cancelled.
        """
        retries, waiting = self._access.retries, False
        deadline = retries.clock() + retries.seconds
        with self._regaining:  # threads that lost it together regain it once
            while not self._released and retries.clock() + REGAIN_SECONDS <= deadline:
                if retries.again(self.renew):
                    return
                try:
                    self.acquire(lost.study, here(), resume=False, begin=False)
                    return
                except LeaseHeld as held:
                    if not waiting:
                        retries.notify(f"{held}; waiting for up to {retries.seconds:.0f} s to store results")
                        waiting = True
                retries.sleep(REGAIN_SECONDS)
        raise lost

    @writes
    def enter(self, connection: Connection, state: str, reason: str = "") -> None:
        """Lets our study enter a state. Raises LeaseLost, and NotAllowed where it may not follow the present one.

        reason: why it failed; what cannot be printed becomes spaces.
        """
        lease, reason = self._lease(), events.one_line(reason)
        guard(connection, lease)
        before = states(connection, leases.c.name == lease.name)[lease.name].state
        if before == state:
            return
        if before not in FOLLOWS[state]:
            raise NotAllowed(lease.name, before, state)
        values = {"state": state, "reason": reason, "changed": now(connection)}
        connection.execute(leases.update().where(is_current(lease)).values(values))
        events.enter(connection, lease.name, lease.token, state, reason)

    @writes
    def cancel(self, connection: Connection, name: str) -> LeaseState | None:
        """Cancels a study: at once one that is queued or left over, else by its holder. Returns how it stands then.

        None for a study that was never trained; one that has ended stays as it is.
        """
        row = leases.c.name == name
        connection.execute(leases.update().where(row).values(token=leases.c.token))  # nobody changes it meanwhile
        before = state_of(connection, name)
        if before is None:
            return None
        state = CANCELLING if before.held and before.state != QUEUED else CANCELLED
        if before.state in FOLLOWS[state]:
            values: dict[str, object] = {"state": state, "reason": "", "changed": now(connection)}
            if state == CANCELLED:  # a process that was stopped, and goes on, must not write to it any more
                values |= {"token": leases.c.token + 1, "expires": 0.0}
            connection.execute(leases.update().where(row).values(values))
        after = states(connection, row)[name]
        if before.state != after.state:
            events.enter(connection, name, after.token, after.state)
        return after

    @reads(leases, dict)
    def states(self, connection: Connection) -> dict[str, LeaseState]:
        """Returns study -> how it stands, for all that have ever been trained."""
        return states(connection)

    @reads(leases, lambda: None)
    def state_of(self, connection: Connection, name: str) -> LeaseState | None:
        """Returns how a study stands; None for one that was never trained."""
        return state_of(connection, name)

    def cancelling(self) -> bool:
        """Returns whether our study is to be cancelled; tried once, whatever the store's time for retries."""
        lease = self._lease()
        with self._access.transaction("read") as connection:
            present = state_of(connection, lease.name)
        return present is not None and (present.token, present.state) == (lease.token, CANCELLING)


def _acquire(connection: Connection, name: str, holder: Holder, resume: bool) -> Lease:
    """Takes the lease of a study: a new one, one that is over or released, or one whose holder is gone.

    The study's state stays as it is; that of a new one is RUNNING. The same holder once more takes what it took before.
    Raises LeaseHeld and StudyCancelled.
    """
    present = state_of(connection, name)
    free = not_(lasts(connection)) | (leases.c.holder == holder.to_json())
    if present is not None and present.holder.gone():
        free |= leases.c.token == present.token  # unless it was taken from the dead one since
    if not resume:
        free &= leases.c.state.not_in(STOPPED)
    values = {"holder": holder.to_json(), "expires": expiry(connection)}
    # One statement, so that of many who try at once one wins; the others wait for it and see what it has written.
    begun = {"token": 1, "state": RUNNING, "reason": "", "changed": now(connection)}
    statement = insertion(connection, leases).values(name=name, **begun, **values)
    taking = statement.on_conflict_do_update(
        index_elements=[leases.c.name], set_={"token": leases.c.token + 1, **values}, where=free
    )
    token = connection.execute(taking.returning(leases.c.token)).scalar_one_or_none()
    if token is None:
        present = states(connection, leases.c.name == name)[name]
        if not (resume or present.held) and present.state in STOPPED:
            raise StudyCancelled(name)
        raise LeaseHeld(name, present.holder, max(0.0, present.seconds))
    return Lease(name, int(token))


def _begin(connection: Connection, lease: Lease) -> None:
    guard(connection, lease)
    values = {"state": RUNNING, "reason": "", "changed": now(connection)}
    connection.execute(leases.update().where(is_current(lease)).values(values))
    events.enter(connection, lease.name, lease.token, RUNNING)
