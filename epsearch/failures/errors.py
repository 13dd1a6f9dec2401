"""What goes wrong in one line: the condition, the value, what is allowed."""

import difflib
import reprlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class UsageError(Exception):
    """Bad input: an option, a file, a dataset or code of the user's.

    The message is one line: the condition, the value, what is allowed. The command line prints it and exits with
    status 2.
    """


class NoStudy(UsageError):
    """No study has that name."""


class CodeOfOthers(UsageError):
    """A plug-in that cannot be had, or fails."""


class Cancelled(UsageError):
    """A study that was cancelled was to be trained, without a word that it is to be resumed."""

    def __init__(self, message: str, study: str) -> None:
        super().__init__(message)
        self.study = study
        """Its name."""


class Interrupted(Exception):
    """The user stopped the run; everything finished is stored."""


class TimeSpent(Interrupted):
    """The run has taken the time that it was given; the message says so, and everything finished is stored."""


class Unavailable(Exception):
    """The surroundings do not give what is needed, such as a Ray that starts; nothing that is stored is lost."""


class TrainingFailed(Exception):
    """A cohort could not be trained, for a reason outside the experiment.

    traceback: of the worker, where the program itself is to blame; else empty. What other cohorts gave is stored.
    """

    def __init__(self, message: str, traceback: str = "") -> None:
        super().__init__(message)
        self.traceback = traceback


@contextmanager
def refused(
    *errors: type[Exception], but: type[Exception] | tuple[()] = (), by: type[UsageError] = UsageError
) -> Iterator[None]:
    """Within it, or within a function that it decorates, errors that are one line for the user become UsageError.

    but: a kind of these that passes as it is, since other input would not help; by: the kind that they become.

    >>> with refused(ValueError):
    ...     raise ValueError("no numeric path 'gpu'")
    Traceback (most recent call last):
    epsearch.failures.errors.UsageError: no numeric path 'gpu'
    """
    try:
        yield
    except but:
        raise
    except errors as error:
        raise by(str(error)) from error


class _Brief(reprlib.Repr):
    """Long texts and lists are cut, and numbers of more digits than Python prints are told by their length."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 60

    def repr_int(self, number: int, level: int) -> str:
        # Python writes no int of more than 4300 digits as a decimal: that would take quadratic time.
        try:
            return super().repr_int(number, level)
        except ValueError:
            return f"a number of {number.bit_length()} bits"


brief = _Brief().repr
"""A value as an error line quotes it, whatever its size."""


def unknown(kind: str, value: object, allowed: Iterable[str]) -> str:
    """Returns one line for a name that is not known, with all that are, and the nearest of them.

    >>> unknown("method", "agme", ["agem", "van"])
    "no method 'agme'; known: agem, van; did you mean 'agem'?"
    >>> unknown("study", "FIRST", ["first"]), unknown("study", "first", [])
    ("no study 'FIRST'; known: first; did you mean 'first'?", "no study 'first'; there is none")
    """
    names = list(allowed)
    if not names:
        return f"no {kind} {value!r}; there is none"
    folded = {name.casefold(): name for name in reversed(names)}
    near = difflib.get_close_matches(str(value).casefold(), folded, n=1)
    hint = f"; did you mean {folded[near[0]]!r}?" if near else ""
    return f"no {kind} {value!r}; known: {', '.join(names)}{hint}"
