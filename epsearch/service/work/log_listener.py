"""The log of a study's process: lines of plain text with their time."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime

from epsearch.events import Event, Planned, Stored
from epsearch.failures.lines import one_line


class LogListener:
    """A listener that prints headings, notes and warnings; progress is in the ledger.

    advances: called when members have been stored for the first time.
    """

    def __init__(self, advances: Callable[[], object]) -> None:
        self._advances: Callable[[], object] | None = advances

    def __call__(self, event: Event) -> None:
        """Prints the event, if it is one for the log."""
        match event:
            case Planned():
                _ = event.plan  # as for a terminal: until there is a speed, the time to go is that of the plan
            case Stored() if self._advances is not None:
                # Once: a process that stores members is none that fails again and again.
                self._advances()
                self._advances = None
            case _ if event.logged:
                stamp = datetime.now(UTC).isoformat(timespec="seconds")
                print(stamp, one_line(str(event)), file=sys.stderr, flush=True)
