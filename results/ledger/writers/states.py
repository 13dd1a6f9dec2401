"""The states of a study, and which of them may follow which: the only table of that."""

from dataclasses import dataclass

from results.ledger.writers.holder import Holder

QUEUED, RUNNING, CANCELLING = "queued", "running", "cancelling"
CANCELLED, FAILED, FINISHED = "cancelled", "failed", "finished"
INTERRUPTED = "interrupted"
"""Displayed for a study that is running or cancelling although no process trains it; never stored."""

STOPPED = (CANCELLED, CANCELLING)
"""States of a study that is not to be trained."""

FOLLOWS: dict[str, frozenset[str]] = {
    QUEUED: frozenset({RUNNING}),
    RUNNING: frozenset({QUEUED}),
    CANCELLING: frozenset({RUNNING}),
    CANCELLED: frozenset({QUEUED, RUNNING, CANCELLING}),
    FAILED: frozenset({RUNNING, CANCELLING}),
    FINISHED: frozenset({RUNNING, CANCELLING}),
}
"""Maps each state to the states that it may follow under one lease. A study may finish while it is being cancelled; it
then counts as finished. A process that acquires the lease, by `run`, `--extend` or `resume`, and begins, makes a study
RUNNING from any state; otherwise a study that has ended never runs again."""


@dataclass(frozen=True)
class LeaseState:
    """The state of a study: its stored state, and who has its lease."""

    state: str
    """The stored one."""
    reason: str
    """Why it failed, in one line; else empty."""
    changed: float
    """When the state was entered: seconds since 1970 by the database's clock."""
    token: int
    """Token of the last acquisition."""
    holder: Holder
    """Who made that acquisition."""
    seconds: float
    """When the lease expires, in seconds from now; <= 0 where it is over or was released."""

    @property
    def held(self) -> bool:
        """True if somebody has the lease, as far as can be seen from here."""
        return self.seconds > 0 and not self.holder.gone()

    @property
    def now(self) -> str:
        """The state for people: INTERRUPTED where nobody trains a study that was left running."""
        return INTERRUPTED if self.state in (RUNNING, CANCELLING) and not self.held else self.state
