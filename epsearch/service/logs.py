"""Log of a service on standard error: text for people, or one JSON object a line for programs."""

import json
import logging
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from epsearch.failures import stopping
from epsearch.failures.crash_report import option_urls
from epsearch.failures.lines import OURS, explain
from results.ledger.url import LedgerUrl, without_passwords

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

TEXT, JSON = FORMATS = ("text", "json")
OTHERS = "library"
"""Event of a message that is not ours, such as one of the HTTP server; `logger` says whose it is."""


class LogHandler(logging.Handler):
    """Writes records to the present standard error."""

    def __init__(self, structured: bool) -> None:
        super().__init__()
        self.structured = structured
        """True for JSON."""
        self.urls = list[LedgerUrl]()
        """URLs whose passwords are masked, besides those of the command line and the environment."""

    @property
    def _known(self) -> list[LedgerUrl]:
        return [*option_urls(), *self.urls]

    def emit(self, record: logging.LogRecord) -> None:
        """Writes a record as one line, if standard error is open."""
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line of a record."""
        if not self.structured:
            return f"epsearch: {without_passwords(record.getMessage(), self._known)}"
        fields = getattr(record, "fields", {"logger": record.name})
        error = record.exc_info[1] if record.exc_info else None
        return self.encode(getattr(record, "event", OTHERS), record.getMessage(), record.levelno, error, **fields)

    def encode(self, event: str, message: str, level: int, error: BaseException | None, **fields: Any) -> str:
        """Returns a JSON object on one line, without passwords; fields that are None or empty are left out."""
        if error is not None:
            fields["traceback"] = "".join(traceback.format_exception(error))
        head = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": logging.getLevelName(level).lower(),
            "event": event,
            "message": message,
        }
        urls = self._known
        texts = head | {name: value for name, value in fields.items() if value not in (None, "")}
        return json.dumps(
            {name: without_passwords(text, urls) if isinstance(text, str) else text for name, text in texts.items()},
            default=str,
        )


LOGGER = logging.getLogger("epsearch.service")
"""Logger of what the service says; as text, only warnings and errors."""
LOGGER.propagate = False
LOGGER.setLevel(logging.WARNING)
LOGGER.addHandler(LogHandler(structured=False))


def log(event: str, message: str, level: int = logging.INFO, error: BaseException | None = None, **fields: Any) -> None:
    """Logs an event of the service.

    event: a short name that stays the same, for programs; message: one line for people; error: its traceback is logged
    in JSON alone; fields: more for programs, such as the study.
    """
    LOGGER.log(level, message, exc_info=error, extra={"event": event, "fields": fields})


@contextmanager
def write_json_logs() -> Iterator[LogHandler]:
    """Writes everything on standard error as JSON, as a context manager that yields the handler.

    That is what the service says, what libraries log and warn of, errors of threads, and the last line of the command,
    for which it raises SystemExit.
    """
    handler, root = LogHandler(structured=True), logging.getLogger()
    before = LOGGER.handlers, LOGGER.level, root.handlers, threading.excepthook, sys.unraisablehook
    LOGGER.handlers, root.handlers = [handler], [handler]
    LOGGER.setLevel(logging.INFO)
    logging.captureWarnings(True)
    interrupt = sys.unraisablehook

    def of_thread(failed: threading.ExceptHookArgs) -> None:
        log("bug", f"a thread has ended by {failed.exc_type.__name__}", logging.ERROR, failed.exc_value)

    def unraisable(failed: "UnraisableHookArgs") -> None:
        if issubclass(failed.exc_type, KeyboardInterrupt):
            interrupt(failed)
        else:
            log("bug", f"an ignored {failed.exc_type.__name__}", logging.ERROR, failed.exc_value)

    def last_line(message: str, status: int, error: BaseException | None) -> str:
        stopped, bug = status in (stopping.STATUS, stopping.AGAIN_STATUS), error if status == OURS else None
        event, level = ("stopped", logging.INFO) if stopped else ("failed", logging.ERROR)
        return handler.encode(event, message, level, bug, exit_status=status)

    threading.excepthook, sys.unraisablehook = of_thread, unraisable
    stopping.lay_out(last_line)
    try:
        yield handler
    except (Exception, KeyboardInterrupt) as error:
        raise SystemExit(explain(error)) from error
    finally:
        stopping.lay_out(None)
        logging.captureWarnings(False)
        LOGGER.handlers, level, root.handlers, threading.excepthook, sys.unraisablehook = before
        LOGGER.setLevel(level)
