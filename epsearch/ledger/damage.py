"""Messages about rows of a ledger that cannot be used, each one line."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from epsearch.failures.errors import PluginError, UsageError
from results.ledger.errors import StoreUnavailable
from results.ledger.store import StoreError, StudyRow

MOST_NAMED = 3
# Errors of reading a stored study that has fields which this version does not know, or lacks some.
NOT_UNDERSTOOD = (UsageError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


class Unreadable(UsageError):
    """A stored study that cannot be read; `why` is the reason without its name."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"study {name!r} cannot be read, {why}")
        self.why = why


@contextmanager
def as_unreadable(row: StudyRow) -> Iterator[None]:
    """Turns the errors of reading a row of a study into Unreadable, in one line.

    Raises Unreadable at once where the row is damaged; StoreUnavailable passes.
    """
    if row.damage:
        raise Unreadable(row.name, f"damaged: {row.damage}")
    try:
        yield
    except (StoreUnavailable, Unreadable):
        # Where the database has gone, the row may be sound; an unreadable study has its message already.
        raise
    except StoreError as error:
        raise Unreadable(row.name, f"damaged: {error}") from error
    except PluginError as error:
        raise Unreadable(row.name, f"its code cannot be loaded: {error}") from error
    except NOT_UNDERSTOOD as error:
        words = f"nothing known as {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise Unreadable(row.name, f"needs another version of epsearch: {words}") from error


def describe_unused(damaged: Mapping[str, str]) -> str:
    """Returns which records are not used, and why: the first few by name.

    >>> describe_unused({"0123456789abcdef": "its checksum does not match"})
    '1 damaged record of the ledger is not used: 0123456789ab… (its checksum does not match)'
    """
    named = [f"{key[:12]}… ({why})" for key, why in list(damaged.items())[:MOST_NAMED]]
    more = [f"{len(damaged) - MOST_NAMED} more"] if len(damaged) > MOST_NAMED else []
    what = "1 damaged record of the ledger is" if len(damaged) == 1 else f"{len(damaged)} damaged records are"
    return f"{what} not used: {', '.join(named + more)}"
