"""Speed and an honest time to go, from what was reported when. Knows no clock and prints nothing."""

from collections import deque
from typing import NamedTuple

WINDOW_SECONDS = 60.0  # speed is that of the last minute
LEAST_SECONDS = 3.0


class _Mark(NamedTuple):
    """What had been reported by a time."""

    time: float
    """Seconds of the caller's clock."""
    steps: int
    """Member-steps of all reports so far."""
    work: float
    """Work of all reports so far."""


class Speed:
    """Of member-steps, and of work: steps times what one of them takes beside other jobs' steps.

    Time starts with the first report, so that starting the workers does not count as slow training.

    >>> speed = Speed()
    >>> for second in range(5):
    ...     speed.add(second, steps=10, work=20.0)
    >>> speed.steps_per_second(), speed.seconds_for(work=100.0)
    (10.0, 5.0)
    """

    def __init__(self) -> None:
        self.steps, self.work = 0, 0.0  # of all reports
        self._marks: deque[_Mark] = deque()

    def add(self, now: float, steps: int, work: float) -> None:
        """Takes one report; now: seconds of any clock that does not go back."""
        self.steps += steps
        self.work += work
        self._marks.append(_Mark(now, self.steps, self.work))
        # Two stay, or steps that take more than a minute would have no speed.
        while now - self._marks[0].time > WINDOW_SECONDS and len(self._marks) > 2:
            self._marks.popleft()

    def steps_per_second(self) -> float | None:
        """Over the last minute; None until a few seconds have been seen."""
        seconds = self._seen()
        return (self._marks[-1].steps - self._marks[0].steps) / seconds if seconds else None

    def seconds_for(self, work: float) -> float | None:
        """How long so much work takes at the present speed; None before there is one."""
        seconds = self._seen()
        done = self._marks[-1].work - self._marks[0].work if seconds else 0.0
        return max(0.0, work) * seconds / done if seconds and done else None

    def _seen(self) -> float | None:
        """Seconds between the oldest and the newest report that are kept; None while they say too little."""
        if not self._marks or self._marks[-1].time - self._marks[0].time < LEAST_SECONDS:
            return None
        return self._marks[-1].time - self._marks[0].time
