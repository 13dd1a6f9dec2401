"""Speed and remaining time from reports of progress; reads no clock."""

from collections import deque

WINDOW_SECONDS = 60.0  # the speed is that of the last minute
LEAST_SECONDS = 3.0


class Speed:
    """Speed in member-steps, and in work: steps weighted by their cost.

    Time starts with the first report, so that the start of the workers does not count as slow training.

    >>> speed = Speed()
    >>> for second in range(5):
    ...     speed.add(second, steps=10, work=20.0)
    >>> speed.steps_per_second(), speed.seconds_for(work=100.0)
    (10.0, 5.0)
    """

    def __init__(self) -> None:
        self.steps, self.work = 0, 0.0  # of all reports
        self._marks: deque[tuple[float, int, float]] = deque()  # time, steps and work of all reports by then

    def add(self, now: float, steps: int, work: float) -> None:
        """Adds a report; now: seconds of any monotonic clock."""
        self.steps += steps
        self.work += work
        self._marks.append((now, self.steps, self.work))
        # Two stay, or steps that take more than a minute would have no speed.
        while now - self._marks[0][0] > WINDOW_SECONDS and len(self._marks) > 2:
            self._marks.popleft()

    def steps_per_second(self) -> float | None:
        """Returns the speed of the last minute; None during the first seconds."""
        seconds, steps, _ = self._window()
        return steps / seconds if seconds else None

    def seconds_for(self, work: float) -> float | None:
        """Returns the duration of some work at the present speed; None before there is one."""
        seconds, _, done = self._window()
        return max(0.0, work) * seconds / done if seconds and done else None

    def _window(self) -> tuple[float, int, float]:
        """Returns seconds, steps and work between the oldest and the newest report; zeros if too short."""
        if not self._marks or self._marks[-1][0] - self._marks[0][0] < LEAST_SECONDS:
            return 0.0, 0, 0.0
        (begin, steps, work), (end, all_steps, all_work) = self._marks[0], self._marks[-1]
        return end - begin, all_steps - steps, all_work - work
