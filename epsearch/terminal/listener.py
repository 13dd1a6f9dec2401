"""A training as people see it while it runs: a live line on a terminal; elsewhere, a line now and then."""

import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from epsearch.events import Progress
from epsearch.loop.ahead import Plan
from epsearch.session.plan_text import in_words
from epsearch.study.description import Study
from epsearch.terminal.consoles import facts
from results.labels import duration_text
from results.ledger.record import RunRecord

PLAIN_SECONDS = 30.0  # without a terminal: a line at every new stage, and at least this often


class Terminal:
    """The listener of a command; what it draws is gone when its block ends.

    quiet: warnings alone are printed. Ctrl-C comes as a signal, so it never asks to stop.
    """

    def __init__(self, console: Console, quiet: bool = False) -> None:
        self._console, self._quiet = console, quiet
        self._lock = threading.Lock()  # progress comes from any thread
        self._line, self._bar = _Line(), _Bar(console)
        self._live = Live(console=console, get_renderable=self._line.text, refresh_per_second=4, transient=True)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()
        self._live.stop()

    def note(self, line: str) -> None:
        """Prints it, unless quiet."""
        if not self._quiet:
            self._print(line)

    def warning(self, line: str) -> None:
        """Prints it in yellow, however quiet."""
        self._print(Text(line, style="yellow"))

    def decoded(self, done: int, total: int) -> None:
        """Draws a bar with the time to go, until all are decoded."""
        if not self._quiet:
            self._bar.show(done, total)

    def plan(self, make: Callable[[], Plan]) -> None:
        """Prints what is ahead."""
        if not self._quiet:
            self._console.print(facts(in_words(make())), soft_wrap=True)

    def begin(self, study: Study, heading: str) -> None:
        """Prints what is about to run."""
        examples = study.examples_per_task or "all"
        text = Text.assemble(("epsearch ", "bold"), (study.name, "bold cyan"))
        text.append(f"  ·  {heading}; {examples} examples a task; {study.device}, {study.runner} runner")
        if not self._quiet:
            self._print(text)

    def progress(self, now: Progress) -> None:
        """Draws the line anew, or prints one where it is time for one."""
        if self._quiet:
            return
        with self._lock:
            due = self._line.take(now)
            if self._console.is_terminal:
                self._live.start()
            elif due:
                self._print(self._line.text())

    def records(self, stored: Sequence[RunRecord]) -> None:
        """Is seen in the progress."""

    def stop_wanted(self) -> bool:
        """Never."""
        return False

    def _print(self, line: str | Text) -> None:
        self._console.print(line, highlight=False, soft_wrap=True)


class _Line:
    """The line of progress."""

    def __init__(self) -> None:
        self._now, self._taken, self._printed = Progress("", 0, 0, "", 0, None, None, 0.0), 0.0, ("", 0.0)

    def take(self, now: Progress) -> bool:
        """Whether, without a terminal, it is time to print a line."""
        self._now, self._taken = now, time.monotonic()
        stage, then = self._printed
        if due := now.stage != stage or self._taken - then > PLAIN_SECONDS:
            self._printed = now.stage, self._taken
        return due

    def text(self) -> Text:
        """As it is now: the time goes on between two reports."""
        now = self._now
        parts = (
            now.stage,
            f"{now.known}/{now.wanted} members",
            now.headline,
            "– steps/s" if now.speed is None else f"{now.speed:,.0f} steps/s",
            "ETA –" if now.eta is None else f"ETA {duration_text(now.eta)}",
            f"elapsed {duration_text(now.seconds + time.monotonic() - self._taken)}",
        )
        return Text("  ·  ".join(parts))


class _Bar:
    """How far decoding is; it is open from the first image to the last."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar: Bar | None = None
        self._started = self._printed = 0.0

    def show(self, done: int, total: int) -> None:
        """A bar on a terminal, elsewhere a line now and then."""
        now = time.monotonic()
        if self._bar is None:
            self._bar, self._started, self._printed = self._opened(), now, now
        self._bar.update(self._bar.task_ids[0], completed=done, total=total)
        if not self._console.is_terminal and now - self._printed > PLAIN_SECONDS:
            self._printed = now
            eta = (now - self._started) * (total - done) / done
            line = f"decoding  {done:,}/{total:,} images  ETA {eta:.0f} s"
            self._console.print(line, highlight=False, soft_wrap=True)
        if done >= total:
            self.close()

    def close(self) -> None:
        """Takes the bar away."""
        if self._bar is not None:
            self._bar.stop()
        self._bar = None

    def _opened(self) -> Bar:
        columns = (TextColumn("decoding"), BarColumn(), MofNCompleteColumn(), TextColumn("ETA"), TimeRemainingColumn())
        bar = Bar(*columns, console=self._console, transient=True, disable=not self._console.is_terminal)
        bar.add_task("decoding", total=None)
        bar.start()
        return bar
