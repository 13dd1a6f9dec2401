"""A ledger that one process writes to, study by study: leases, claims, states and events as calls of a store."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from results.ledger import schema
from results.ledger.access import Access
from results.ledger.retry import tried_again
from results.ledger.writers import claims, events, leases
from results.ledger.writers.errors import LeaseHeld, LeaseLost
from results.ledger.writers.events import Event
from results.ledger.writers.holder import Holder, here
from results.ledger.writers.leases import Lease
from results.ledger.writers.states import Standing

REGAIN_SECONDS = 1.0
"""Between two tries to get a lease back."""


class Leased(Access):
    """What a `Store` knows of writers; a run that lost its lease waits for it as long as the store has patience."""

    def acquire(self, name: str, holder: Holder, resume: bool = True) -> Lease:
        """Takes the lease of a study, stored or not, under which this store then writes.

        holder: from `here`; resume: also of a study that was cancelled. Raises LeaseHeld while somebody else has it,
        and StudyCancelled. A lease that is over, or whose holder is gone, is taken over.
        """
        own = holder.acquiring()

        def work() -> Lease:
            with self._transaction("write to") as connection:
                lease = leases.acquire(connection, name, own, resume)
                claims.drop_all(connection, name)  # of those who had it before
                return lease

        self.lease = lease = self.patience.again(work)
        return lease

    def renew(self, lease: Lease) -> bool:
        """Lets a lease last LEASE_SECONDS from now; returns False if it was taken over or released.

        It is tried once, whatever the store's patience: how long there is for more is known to whoever renews.
        """
        with self._transaction("write to") as connection:
            return leases.renew(connection, lease)

    @tried_again
    def release(self, lease: Lease) -> None:
        """Gives a lease back, with its claims; then this store writes no more, until it acquires another."""
        with self._transaction("write to") as connection:
            leases.release(connection, lease)
            claims.drop_of(connection, lease)

    def regain(self, lost: LeaseLost) -> None:
        """Takes a lost lease again as soon as nobody has it: what was trained is still to be stored.

        What others have stored meanwhile is recognised by its keys. Raises the error that it was given where the
        store's patience is over, and where it released the lease itself.
        """
        deadline = self.patience.clock() + self.patience.seconds
        while not lost.released:
            if self.patience.clock() + REGAIN_SECONDS > deadline:
                break
            self.patience.sleep(REGAIN_SECONDS)
            try:
                self.acquire(lost.study, here(), resume=False)
                return
            except LeaseHeld:
                continue
        raise lost

    @tried_again
    def enter(self, lease: Lease, state: str, reason: str = "") -> None:
        """Lets our study enter a state. Raises LeaseLost, and NotAllowed where it may not follow the present one."""
        with self._transaction("write to") as connection:
            leases.enter(connection, lease, state, reason)
            events.append(connection, lease.name, lease.token, [("state", {"state": state, "reason": reason})])

    @tried_again
    def cancel(self, name: str) -> Standing | None:
        """Asks whoever trains a study to stop; one that nobody trains is cancelled at once. Returns how it stands then.

        None for a study that nobody has trained yet; one that has ended stays as it is.
        """
        with self._transaction("write to") as connection:
            before = leases.standing(connection, name)
            after = leases.cancel(connection, name)
            if before is not None and after is not None and before.state != after.state:
                events.append(connection, name, after.token, [("state", {"state": after.state})])
            return after

    @tried_again
    def standings(self) -> dict[str, Standing]:
        """Returns study -> how it stands, for all that have ever been trained; none in a ledger of an older program."""
        if schema.events.name not in self._tables:
            return {}
        with self._transaction("read") as connection:
            return leases.standings(connection)

    @tried_again
    def standing(self, name: str) -> Standing | None:
        """Returns how a study stands, or None."""
        return self.look(name)

    def look(self, name: str) -> Standing | None:
        """As `standing`, but tried once, whatever the store's patience."""
        if schema.events.name not in self._tables:
            return None
        with self._transaction("read") as connection:
            return leases.standing(connection, name)

    def note(self, lease: Lease, new: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Appends (kind, data) to the events of our study. Raises LeaseLost; tried once, as events are not results."""
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
    def claim(self, lease: Lease, keys: Collection[str]) -> set[str]:
        """Claims keys for a study, and returns those that are claimed by it now: it is to train their members.

        The others have a record or a live claim of another study. Raises LeaseLost.
        """
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
