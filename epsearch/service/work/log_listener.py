"""What a study's process prints, for whoever looks into its file: lines of plain text with their time."""

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from epsearch.events import Silent
from epsearch.failures.lines import one_line
from epsearch.loop.ahead import Plan
from epsearch.study.description import Study
from results.ledger.record import RunRecord


class LogListener(Silent):
    """A listener that prints headings, notes and warnings; progress is in the ledger.

    advances: called when members have been stored for the first time.
    """

    def __init__(self, advances: Callable[[], object]) -> None:
        self._advances: Callable[[], object] | None = advances

    def note(self, line: str) -> None:
        """Prints it."""
        stamp = datetime.now(UTC).isoformat(timespec="seconds")
        print(stamp, one_line(line), file=sys.stderr, flush=True)

    def warning(self, line: str) -> None:
        """Prints it."""
        self.note(f"warning: {line}")

    def plan(self, make: Callable[[], Plan]) -> None:
        """Has it made, as a terminal would: until there is a speed, the time to go is that of the plan."""
        make()

    def begin(self, study: Study, heading: str) -> None:
        """Prints it."""
        self.note(f"{study.name} · {heading}")

    def records(self, stored: Sequence[RunRecord]) -> None:
        """Says so, once: a process that stores members is none that fails again and again."""
        if self._advances is not None:
            self._advances()
            self._advances = None
