"""The log of a study's process: lines of plain text with their time."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime

from epsearch.events import Event, Listener, Planned, Stored
from epsearch.failures.lines import one_line


def log_listener(advances: Callable[[], object]) -> Listener:
    """Returns a listener that prints headings, notes and warnings; progress is in the ledger.

    advances: called when members are stored for the first time.
    """
    stored = False

    def listen(event: Event) -> None:
        nonlocal stored
        match event:
            case Planned():
                _ = event.plan  # has it made: until there is a speed, the time to go is that of the plan
            case Stored() if not stored:
                stored = True
                advances()
            case _ if event.logged:
                stamp = datetime.now(UTC).isoformat(timespec="seconds")
                print(stamp, one_line(str(event)), file=sys.stderr, flush=True)

    return listen
