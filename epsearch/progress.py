"""What is seen while a study runs: stage, members, the best ε so far, speed, and an honest time to go."""

import threading
import time
from collections import deque
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from epsearch.evaluate import StudyLoop

WINDOW_SECONDS = 60.0  # speed is that of the last minute
PLAIN_SECONDS = 30.0  # without a terminal: a line at every new stage, and at least this often


class Monitor:
    """Counts steps from any thread and draws one line; without a terminal it prints a line now and then."""

    def __init__(self, loop: StudyLoop, console: Console, quiet: bool = False) -> None:
        self._console, self._quiet = console, quiet
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._total = 0
        self._marks: deque[tuple[float, int]] = deque([(self._started, 0)])
        self._printed, self._printed_stage = self._started, ""
        self.update(loop)
        self._live = Live(console=console, get_renderable=self._line, refresh_per_second=4, transient=True)

    def __enter__(self) -> "Monitor":
        if not self._quiet and self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    @property
    def member_steps(self) -> int:
        """Member-steps trained in this run."""
        return self._total

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def steps(self, count: int) -> None:
        """Adds member-steps; called from any thread."""
        with self._lock:
            self._total += count
            now = time.monotonic()
            self._marks.append((now, self._total))
            while now - self._marks[0][0] > WINDOW_SECONDS and len(self._marks) > 2:
                self._marks.popleft()
        self._print_plain(now)

    def update(self, loop: StudyLoop) -> None:
        """Takes a fresh look at the study, after results came in."""
        known, wanted = loop.stage_members()
        best = loop.strategy.best
        with self._lock:
            self._stage, self._known, self._wanted = loop.stage, known, wanted
            self._best = None if best is None else (best.epsilon, best.value)
            self._remaining, self._total_then = loop.remaining_steps(), self._total
        self._print_plain(time.monotonic())

    def speed(self) -> float:
        """Member-steps per second over the last minute; 0 before the first report."""
        first, last = self._marks[0], self._marks[-1]
        return (last[1] - first[1]) / max(last[0] - first[0], 1e-9)

    def eta(self) -> float | None:
        """Seconds to go at the present speed; None before there is one."""
        speed = self.speed()
        to_go = max(0, self._remaining - (self._total - self._total_then))
        return to_go / speed if speed > 0 else None

    def _line(self) -> Text:
        with self._lock:
            eta = self.eta()
            best = "–" if self._best is None else f"{self._best[0]:.6g} (A_T {100 * self._best[1]:.2f} %)"
            parts = (
                self._stage,
                f"{self._known}/{self._wanted} members",
                f"best ε {best}",
                f"{self.speed():,.0f} steps/s",
                "ETA –" if eta is None else f"ETA {clock(eta)}",
                f"elapsed {clock(self.seconds)}",
            )
        return Text("  ·  ".join(parts))

    def _print_plain(self, now: float) -> None:
        if self._quiet or self._console.is_terminal:
            return
        if self._stage != self._printed_stage or now - self._printed > PLAIN_SECONDS:
            self._printed, self._printed_stage = now, self._stage
            self._console.print(self._line(), soft_wrap=True)


def clock(seconds: float) -> str:
    """`1:02:03` or `2:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
