"""Errors of writing to a study; each message is one line."""

import math

from results.ledger.errors import StoreError
from results.ledger.writers.holder import Holder


class LeaseHeld(StoreError):
    """Another holder has the lease of a study."""

    def __init__(self, study: str, holder: Holder, seconds: float) -> None:
        super().__init__(study, holder, seconds)
        self.study = study
        """The study's name."""
        self.holder = holder
        """Its holder; `UNKNOWN` where that cannot be read."""
        self.seconds = seconds
        """When the lease expires unless it is renewed, in seconds from now, >= 0."""

    def __str__(self) -> str:
        left = math.ceil(self.seconds)
        return f"study {self.study!r} is being trained by {self.holder} (lease for another {left} s)"


class LeaseLost(StoreError):
    """A store was to write to its study after its lease was taken over or released."""

    def __init__(self, study: str, released: bool = False) -> None:
        super().__init__(study, released)
        self.study = study
        """The study's name."""
        self.released = released
        """Whether the lease was released, and not taken since."""

    def __str__(self) -> str:
        what = "was released by this run" if self.released else "has been taken over by another run"
        return f"study {self.study!r} {what}; nothing of this one was written since"


class StudyCancelled(StoreError):
    """A study that was cancelled was to be trained without being resumed."""

    def __init__(self, study: str) -> None:
        super().__init__(study)
        self.study = study
        """The study's name."""

    def __str__(self) -> str:
        return f"study {self.study!r} was cancelled; `epsearch resume {self.study}` takes it up again"


class NotAllowed(StoreError):
    """A study was to enter a state that may not follow its present one."""

    def __init__(self, study: str, state: str, wanted: str) -> None:
        super().__init__(study, state, wanted)
        self.study = study
        """The study's name."""
        self.state = state
        """Its present state."""
        self.wanted = wanted
        """The state that it cannot enter."""

    def __str__(self) -> str:
        return f"study {self.study!r} is {self.state} and cannot become {self.wanted}"


class QueueFull(StoreError):
    """A study was to enter the queue although it has as many as it may have."""

    def __init__(self, most: int, owner: str | None) -> None:
        super().__init__(most, owner)
        self.most = most
        """Most open submissions."""
        self.owner = owner
        """Their owner; None where it is the limit of all owners together."""

    def __str__(self) -> str:
        whose = "the queue" if self.owner is None else repr(self.owner)
        noun = "study" if self.most == 1 else "studies"
        return f"{whose} has {self.most} {noun} waiting or running already, as many as are allowed"
