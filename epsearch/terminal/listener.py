"""A training as people see it while it runs: a live line on a terminal; elsewhere, a line now and then."""

import threading
import time
from types import TracebackType

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from epsearch.events import Began, Decoded, Event, Planned, Progress, Warned
from epsearch.session.plan_text import in_words
from epsearch.terminal.consoles import facts
from results.labels import count_text, duration_text

BETWEEN = " · "
PLAIN_SECONDS = 30.0  # without a terminal: a line at every new stage, and at least this often


class Terminal:
    """The listener of a command; what it draws is gone when its block ends.

    quiet: warnings alone are printed. Ctrl-C comes as a signal, so it never asks to stop; what is stored is seen in the
    progress.
    """

    def __init__(self, console: Console, quiet: bool = False) -> None:
        self._console, self._quiet = console, quiet
        self._lock = threading.Lock()  # progress comes from any thread
        self._line, self._bar = _Line(), _Bar(console)
        self._live = Live(console=console, get_renderable=lambda: self._line, refresh_per_second=4, transient=True)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()
        self._live.stop()

    def __call__(self, event: Event) -> None:
        """Shows the event; if quiet, warnings alone."""
        match event:
            case Warned():
                self._print(Text(event.line, style="yellow"))
            case _ if self._quiet:
                pass
            case Decoded():
                self._bar.show(event.done, event.total)
            case Planned():
                self._print(facts(in_words(event.plan)))
            case Began():
                self._print(_heading(event))
            case Progress():
                self._draw(event)
            case _ if event.logged:
                self._print(str(event))

    def _draw(self, now: Progress) -> None:
        """Draws the line anew, or prints one when it is time for one."""
        with self._lock:
            due = self._line.take(now)
            if self._console.is_terminal:
                self._live.start()
            elif due:
                self._print(self._line)

    def _print(self, line: RenderableType) -> None:
        # As it is: a number in a path is not to be coloured. A terminal would cut lines in the middle of a word; where
        # there is none, a line is cut by whoever reads it, not here.
        self._console.print(line, highlight=False, soft_wrap=not self._console.is_terminal)


def _heading(event: Began) -> Text:
    more = f"{event.heading}; {event.device}, {event.runner} runner"
    if event.study is not None:
        count = event.study.examples_per_task
        examples = "all examples" if count is None else count_text(count, "example")
        more = f"{event.heading}; {examples} a task; {event.device}, {event.runner} runner"
    return Text.assemble(("epsearch ", "bold"), (event.name, "bold cyan"), BETWEEN, more)


class _Line:
    """The line of progress: stage, members, the best so far, steps a second, time to go, time since the beginning.

    On a terminal it leaves out what it has no room for.
    """

    DROPPED = (3, 5, 2)
    """Parts that go where there is no room, in this order: speed, time since the beginning, the best so far."""

    def __init__(self) -> None:
        self._now, self._taken, self._printed = Progress("", 0, 0, "", 0, None, None, 0.0), 0.0, ("", 0.0)

    def take(self, now: Progress) -> bool:
        """Keeps what is now; whether, without a terminal, it is time to print a line.

        It is at a new stage, and PLAIN_SECONDS after the last line.
        """
        self._now, self._taken = now, time.monotonic()
        stage, then = self._printed
        if due := now.stage != stage or self._taken - then > PLAIN_SECONDS:
            self._printed = now.stage, self._taken
        return due

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        parts = dict(enumerate(self._parts()))
        for number in self.DROPPED if console.is_terminal else ():
            if len(BETWEEN.join(parts.values())) > options.max_width:
                del parts[number]
        yield Text(BETWEEN.join(parts.values()), no_wrap=console.is_terminal, overflow="ellipsis")

    def _parts(self) -> tuple[str, ...]:
        """As they are now: the time goes on between two reports."""
        now, since = self._now, time.monotonic() - self._taken
        return (
            now.stage,
            f"{now.known}/{now.wanted} members",
            now.headline,
            "– steps/s" if now.speed is None else f"{now.speed:,.0f} steps/s",
            "ETA –" if now.eta is None else f"ETA {duration_text(max(0.0, now.eta - since))}",
            f"elapsed {duration_text(now.seconds + since)}",
        )


class _Bar:
    """How far decoding is; it is open from the first image to the last.

    Without a terminal the bar itself is not drawn, and keeps only that it is open.
    """

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("decoding"), BarColumn(), MofNCompleteColumn(), TextColumn("ETA"), TimeRemainingColumn())
        self._console = console
        self._bar = Bar(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._started = self._printed = 0.0

    def show(self, done: int, total: int) -> None:
        """A bar on a terminal, elsewhere a line now and then; done, total: images."""
        now = time.monotonic()
        if not self._bar.tasks:
            self._bar.add_task("decoding", total=total)
            self._bar.start()
            self._started = self._printed = now
        self._bar.update(self._bar.task_ids[0], completed=done, total=total)
        if not self._console.is_terminal and now - self._printed > PLAIN_SECONDS:
            self._printed = now
            eta = (now - self._started) * (total - done) / done
            self._console.print(
                f"decoding  {done:,}/{total:,} images  ETA {eta:.0f} s", highlight=False, soft_wrap=True
            )
        if done >= total:
            self.close()

    def close(self) -> None:
        """Takes the bar away."""
        for task in self._bar.task_ids:
            self._bar.stop()
            self._bar.remove_task(task)
