"""What is seen while a study runs: stage, members, the best ε so far, speed, and an honest time to go."""

import threading
import time
from collections import deque
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from epsearch.evaluate import StudyLoop
from epsearch.study import Study

WINDOW_SECONDS = 60.0  # speed is that of the last minute
LEAST_SECONDS = 3.0
PLAIN_SECONDS = 30.0  # without a terminal: a line at every new stage, and at least this often


class Monitor:
    """Counts steps from any thread and draws one line; without a terminal it prints a line now and then."""

    def __init__(self, loop: StudyLoop, console: Console, quiet: bool = False) -> None:
        self._study, self._console, self._quiet = loop.study, console, quiet
        self._open = False
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._total = 0
        self._marks: deque[tuple[float, int]] = deque()
        self._printed, self._printed_stage = self._started, ""
        self.update(loop)
        self._live = Live(console=console, get_renderable=self._line, refresh_per_second=4, transient=True)

    def __enter__(self) -> "Monitor":
        self._open = True
        if not self._quiet:
            self._console.print(heading(self._study), highlight=False, soft_wrap=True)
            if self._console.is_terminal:
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

    def speed(self) -> float | None:
        """Member-steps per second over the last minute; None until a few seconds have been seen.

        Time starts with the first report, so that starting the workers does not count as slow training.
        """
        if not self._marks or self._marks[-1][0] - self._marks[0][0] < LEAST_SECONDS:
            return None
        first, last = self._marks[0], self._marks[-1]
        return (last[1] - first[1]) / (last[0] - first[0])

    def eta(self) -> float | None:
        """Seconds to go at the present speed; None before there is one."""
        speed = self.speed()
        to_go = max(0, self._remaining - (self._total - self._total_then))
        return to_go / speed if speed else None

    def _line(self) -> Text:
        with self._lock:
            eta, speed = self.eta(), self.speed()
            best = "–" if self._best is None else f"{self._best[0]:.6g} (A_T {100 * self._best[1]:.2f} %)"
            parts = (
                self._stage,
                f"{self._known}/{self._wanted} members",
                f"best ε {best}",
                "– steps/s" if speed is None else f"{speed:,.0f} steps/s",
                "ETA –" if eta is None else f"ETA {clock(eta)}",
                f"elapsed {clock(self.seconds)}",
            )
        return Text("  ·  ".join(parts))

    def _print_plain(self, now: float) -> None:
        if self._quiet or not self._open or self._console.is_terminal:
            return
        if self._stage != self._printed_stage or now - self._printed > PLAIN_SECONDS:
            self._printed, self._printed_stage = now, self._stage
            self._console.print(self._line(), soft_wrap=True)


def clock(seconds: float) -> str:
    """`1:02:03` or `2:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def heading(study: Study) -> Text:
    """One line: what is about to run."""
    text = Text.assemble(("epsearch ", "bold"), (study.name, "bold cyan"))
    examples = study.examples_per_task or "all"
    return text.append(
        f"  ·  {study.repeats} repeats × {study.points} ε × {len(study.seeds)} seeds on {study.cv_tasks} tasks, then "
        f"{study.tasks - study.cv_tasks} tasks; {examples} examples a task; {study.device}, {study.runner} runner"
    )
