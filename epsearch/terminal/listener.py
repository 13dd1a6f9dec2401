"""Progress of a training: a live line on a terminal, otherwise a line a stage, and one every PLAIN_SECONDS."""

import threading
import time
from types import TracebackType

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from epsearch.events import Began, Decoded, Event, Planned, Progress, Warned
from epsearch.session.plan_text import in_a_line
from results.labels import count_text, duration_text

BETWEEN = " · "
PLAIN_SECONDS = 600.0  # without a terminal: a line at every new stage, and at least this often
DECODING_SECONDS = 30.0  # without a terminal: between two lines of decoding


class Terminal:
    """Listener of a command; a context manager, whose exit erases the live line.

    quiet: only warnings are printed. It never ends the training; Ctrl-C arrives as a signal.
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
        """Prints the event; if quiet, only warnings."""
        match event:
            case Warned():
                self._print(Text(event.line, style="yellow"))
            case _ if self._quiet:
                pass
            case Decoded():
                self._bar.show(event.done, event.total)
            case Planned():
                self._print(Text(in_a_line(event.plan)))
            case Began():
                self._print(_heading(event))
            case Progress():
                self._draw(event)
            case _ if event.logged:
                self._print(str(event))

    def _draw(self, now: Progress) -> None:
        """Updates the live line, or prints a line if one is due."""
        with self._lock:
            due = self._line.update(now)
            if self._console.is_terminal:
                self._live.start()
            elif due:
                self._print(self._line)

    def _print(self, line: RenderableType) -> None:
        # Without highlights: a number in a path must not be coloured. Only a terminal's width folds lines.
        self._console.print(line, highlight=False, soft_wrap=not self._console.is_terminal)


def _heading(event: Began) -> Text:
    more = f"{event.heading}; {event.device}, {event.runner} runner"
    if event.study is not None:
        count = event.study.examples_per_task
        examples = "all examples" if count is None else count_text(count, "example")
        more = f"{event.heading}; {examples} a task; {event.device}, {event.runner} runner"
    return Text.assemble(("epsearch ", "bold"), (event.name, "bold cyan"), BETWEEN, more)


class _Line:
    """The line of progress: stage, members, best result, steps per second, time to go, elapsed time.

    On a terminal it drops parts that do not fit.
    """

    DROPPED = ("speed", "elapsed", "best")
    """Parts to drop, in this order."""

    def __init__(self) -> None:
        self._now, self._updated, self._printed = Progress("", 0, 0, "", 0, None, None, 0.0), 0.0, ("", 0.0)

    def update(self, now: Progress) -> bool:
        """Stores the progress; returns whether to print a line now (used only without a terminal).

        That is at a new stage, and PLAIN_SECONDS after the last line.
        """
        self._now, self._updated = now, time.monotonic()
        stage, then = self._printed
        if due := now.stage != stage or self._updated - then > PLAIN_SECONDS:
            self._printed = now.stage, self._updated
        return due

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        parts = self._parts()
        for name in self.DROPPED if console.is_terminal else ():
            if len(BETWEEN.join(parts.values())) > options.max_width:
                parts.pop(name, None)
        yield Text(BETWEEN.join(parts.values()), no_wrap=console.is_terminal, overflow="ellipsis")

    def _parts(self) -> dict[str, str]:
        """Returns the parts that are known, by name; times advance between two events."""
        now, since = self._now, time.monotonic() - self._updated
        return {
            "stage": now.stage,
            "members": f"{now.known}/{now.wanted} members{now.tasks_text(BETWEEN)}",
            **({"best": now.headline} if now.headline else {}),
            **({} if now.speed is None else {"speed": now.speed_text}),
            **({} if now.eta is None else {"eta": f"ETA {duration_text(max(0.0, now.eta - since))}"}),
            "elapsed": f"elapsed {duration_text(now.seconds + since)}",
        }


class _Bar:
    """Progress bar of decoding, open from the first image to the last; drawn on terminals only."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("decoding"), BarColumn(), MofNCompleteColumn(), TextColumn("ETA"), TimeRemainingColumn())
        self._console = console
        self._bar = Bar(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._started = self._printed = 0.0

    def show(self, done: int, total: int) -> None:
        """Draws the bar on a terminal, otherwise prints a line every DECODING_SECONDS; done, total: images."""
        now = time.monotonic()
        if not self._bar.tasks:
            self._bar.add_task("decoding", total=total)
            self._bar.start()
            self._started = self._printed = now
        self._bar.update(self._bar.task_ids[0], completed=done, total=total)
        if not self._console.is_terminal and now - self._printed > DECODING_SECONDS:
            self._printed = now
            eta = (now - self._started) * (total - done) / done
            self._console.print(
                f"decoding  {done:,}/{total:,} images  ETA {eta:.0f} s", highlight=False, soft_wrap=True
            )
        if done >= total:
            self.close()

    def close(self) -> None:
        """Removes the bar."""
        for task in self._bar.task_ids:
            self._bar.stop()
            self._bar.remove_task(task)
