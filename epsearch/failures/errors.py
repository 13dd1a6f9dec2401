"""Exceptions, whose messages name the condition, the value, what is allowed."""

import reprlib
from collections.abc import Iterator
from contextlib import contextmanager


class UsageError(Exception):
    """Bad input: an option, a file, a dataset or code of the user's.

    The message is one line: the condition, the value, what is allowed. The command line prints it and exits with
    status 2.
    """


class NoStudy(UsageError):
    """No study has that name."""


class PluginError(UsageError):
    """A plug-in cannot be loaded, or fails."""


class Cancelled(UsageError):
    """A cancelled study can only be trained by resuming it."""

    def __init__(self, message: str, study: str) -> None:
        super().__init__(message)
        self.study = study
        """Name of the study."""


class Interrupted(Exception):
    """The user stopped the run; everything finished is stored."""


class TimeSpent(Interrupted):
    """The time of the run is spent, or too short for what is left; everything finished is stored."""


class Unavailable(Exception):
    """The machine or a service lacks something, such as a running Ray; nothing stored is lost."""


class TrainingFailed(Exception):
    """A cohort could not be trained; results of other cohorts are stored.

    traceback: of the worker, for a bug in epsearch; else empty.
    """

    def __init__(self, message: str, traceback: str = "") -> None:
        super().__init__(message)
        self.traceback = traceback


@contextmanager
def as_usage_error(
    *errors: type[Exception], but: type[Exception] | tuple[()] = (), by: type[UsageError] = UsageError
) -> Iterator[None]:
    """Turns errors into UsageError, as a context manager or decorator.

    but: subclasses that pass unchanged, since other input would not help; by: the subclass of UsageError.

    >>> with as_usage_error(ValueError):
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


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


def brief(value: object) -> str:
    """Returns a value for an error message: long texts and lists are cut.

    >>> brief("a" * 100), brief(10**5000)
    ("'aaaaaaaaaaaaaaaaaaaaaaaaaaa...aaaaaaaaaaaaaaaaaaaaaaaaaaaa'", 'a number of 16610 bits')
    """
    try:
        return _SHORT.repr(value)
    except ValueError:  # Python prints no int of more than 4300 digits, which would take quadratic time
        return f"a number of {value.bit_length()} bits" if isinstance(value, int) else "a value with too long numbers"
