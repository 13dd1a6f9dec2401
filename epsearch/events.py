"""What a training tells whoever listens, and the one thing that it asks: whether it is to stop.

A terminal is one listener (`epsearch.terminal`); a service or a logger can be others. All that is told can be left
unheard: what a training returns and stores depends on none of it.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple, Protocol

from epsearch.loop.ahead import Plan
from epsearch.study.description import Study
from results.ledger.record import RunRecord


class Progress(NamedTuple):
    """How far a training is."""

    stage: str
    """What is being trained, in words."""
    known: int
    """Members of the stage that have been trained."""
    wanted: int
    """Members of the stage."""
    headline: str
    """The best so far, in words."""
    member_steps: int
    """SGD steps of all members that were taken by now, in this run."""
    speed: float | None
    """Member-steps per second over the last minute; None until a few seconds have been seen."""
    eta: float | None
    """Seconds to go at the present speed; None before there is one."""
    seconds: float
    """Since the training began."""
    eta_low: float | None = None
    """Seconds to go if the study ends as early as it can."""
    eta_high: float | None = None
    """Seconds to go if it takes all that it may."""


class Events(Protocol):
    """A listener. `progress` and `stop_wanted` are called from any thread, the others from the one that trains.

    What a listener raises ends the training, as Ctrl-C does: what was trained is stored.
    """

    def note(self, line: str) -> None:
        """Takes a line worth knowing: what a member takes, what a worker has to say."""

    def warning(self, line: str) -> None:
        """Takes a line that is not to be missed: damage that was mended, a database that has gone."""

    def decoded(self, done: int, total: int) -> None:
        """Takes the number of images that are decoded by now, and that of all."""

    def plan(self, make: Callable[[], Plan]) -> None:
        """Offers what is ahead of a study; `make` may take seconds, and need not be called."""

    def begin(self, study: Study, heading: str) -> None:
        """Takes what is about to be trained, in words."""

    def progress(self, now: Progress) -> None:
        """Takes how far the training is, whenever a cohort reports steps, and when results have come in."""

    def records(self, stored: Sequence[RunRecord]) -> None:
        """Takes the members that were trained and stored since the last call."""

    def stop_wanted(self) -> bool:
        """Whether to stop: asked often, so it must be quick.

        The training then ends with Interrupted at its next report, with everything stored.
        """


class Silent:
    """Hears nothing and never stops; a listener that cares for some events alone derives from it."""

    def note(self, line: str) -> None:
        """Does nothing."""

    def warning(self, line: str) -> None:
        """Does nothing."""

    def decoded(self, done: int, total: int) -> None:
        """Does nothing."""

    def plan(self, make: Callable[[], Plan]) -> None:
        """Makes none."""

    def begin(self, study: Study, heading: str) -> None:
        """Does nothing."""

    def progress(self, now: Progress) -> None:
        """Does nothing."""

    def records(self, stored: Sequence[RunRecord]) -> None:
        """Does nothing."""

    def stop_wanted(self) -> bool:
        """Never."""
        return False


class Together:
    """Several listeners as one: all of them hear everything, and each may stop the training."""

    def __init__(self, *listeners: Events) -> None:
        self._listeners = listeners

    def note(self, line: str) -> None:
        """Tells all of them."""
        for one in self._listeners:
            one.note(line)

    def warning(self, line: str) -> None:
        """Tells all of them."""
        for one in self._listeners:
            one.warning(line)

    def decoded(self, done: int, total: int) -> None:
        """Tells all of them."""
        for one in self._listeners:
            one.decoded(done, total)

    def plan(self, make: Callable[[], Plan]) -> None:
        """Offers it to all of them; it is made once."""
        made = cache(make)
        for one in self._listeners:
            one.plan(made)

    def begin(self, study: Study, heading: str) -> None:
        """Tells all of them."""
        for one in self._listeners:
            one.begin(study, heading)

    def progress(self, now: Progress) -> None:
        """Tells all of them."""
        for one in self._listeners:
            one.progress(now)

    def records(self, stored: Sequence[RunRecord]) -> None:
        """Tells all of them."""
        for one in self._listeners:
            one.records(stored)

    def stop_wanted(self) -> bool:
        """Whether any of them wants it."""
        return any([one.stop_wanted() for one in self._listeners])


SILENT: Events = Silent()
