"""What is seen while a study runs: stage, members, the best ε so far, speed, and an honest time to go."""

import threading
import time
from collections import deque
from types import TracebackType
from typing import NamedTuple

from rich.console import Console
from rich.live import Live
from rich.text import Text

from epsearch.loop.base import Loop

WINDOW_SECONDS = 60.0  # speed is that of the last minute
LEAST_SECONDS = 3.0
PLAIN_SECONDS = 30.0  # without a terminal: a line at every new stage, and at least this often


class _Mark(NamedTuple):
    time: float
    steps: int
    work: float


class Monitor:
    """Counts steps from any thread and draws one line; without a terminal it prints a line now and then."""

    def __init__(self, loop: Loop, console: Console, quiet: bool = False) -> None:
        self._heading, self._console, self._quiet = heading(loop), console, quiet
        self._open, self._told = False, 0
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._total, self._work = 0, 0.0
        self._marks: deque[_Mark] = deque()
        self._printed, self._printed_stage = self._started, ""
        self.update(loop)
        self._live = Live(console=console, get_renderable=self._line, refresh_per_second=4, transient=True)

    def __enter__(self) -> "Monitor":
        self._open = True
        if not self._quiet:
            self._console.print(self._heading, highlight=False, soft_wrap=True)
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

    def steps(self, count: int, weight: float = 1.0) -> None:
        """Adds member-steps, and what one of them takes beside other jobs' steps; called from any thread."""
        with self._lock:
            self._total += count
            self._work += count * weight
            now = time.monotonic()
            self._marks.append(_Mark(now, self._total, self._work))
            while now - self._marks[0].time > WINDOW_SECONDS and len(self._marks) > 2:
                self._marks.popleft()
        self._print_plain(now)

    def update(self, loop: Loop) -> None:
        """Takes a fresh look at the study, after results came in."""
        known, wanted = loop.stage_members()
        with self._lock:
            self._stage, self._known, self._wanted = loop.stage, known, wanted
            self._headline = loop.headline()
            self._remaining, self._work_then = loop.remaining_work(), self._work
        self._tell(loop.notes)
        self._print_plain(time.monotonic())

    def _tell(self, notes: list[str]) -> None:
        """Prints what workers had to say, each line once."""
        for note in notes[self._told :]:
            if self._open and not self._quiet and note not in notes[: self._told]:
                self._console.print(note, highlight=False, soft_wrap=True)
            self._told += 1

    def speed(self) -> float | None:
        """Member-steps per second over the last minute; None until a few seconds have been seen.

        Time starts with the first report, so that starting the workers does not count as slow training.
        """
        seconds = self._seen()
        return (self._marks[-1].steps - self._marks[0].steps) / seconds if seconds else None

    def eta(self) -> float | None:
        """Seconds to go at the present speed, by the work that steps take; None before there is one."""
        seconds = self._seen()
        done = self._marks[-1].work - self._marks[0].work if seconds else 0.0
        to_go = max(0.0, self._remaining - (self._work - self._work_then))
        return to_go * seconds / done if seconds and done else None

    def _seen(self) -> float | None:
        if not self._marks or self._marks[-1].time - self._marks[0].time < LEAST_SECONDS:
            return None
        return self._marks[-1].time - self._marks[0].time

    def _line(self) -> Text:
        with self._lock:
            eta, speed = self.eta(), self.speed()
            parts = (
                self._stage,
                f"{self._known}/{self._wanted} members",
                self._headline,
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


def heading(loop: Loop) -> Text:
    """One line: what is about to run."""
    study = loop.study
    text = Text.assemble(("epsearch ", "bold"), (study.name, "bold cyan"))
    examples = study.examples_per_task or "all"
    return text.append(f"  ·  {loop.heading()}; {examples} examples a task; {study.device}, {study.runner} runner")
