"""Which hyperparameters of a method a search may name."""

from collections.abc import Iterable

from epsearch.failures.errors import UsageError, unknown
from epsearch.study.hyperparameters import EPSILON
from trainers import methods
from trainers.hyperparameters import OF_EVERY_METHOD


def searchable(method: str) -> tuple[str, ...]:
    """Names of the hyperparameters on which a method's result depends."""
    declared = methods.method(method)
    return (*declared.names, *(one.name for one in OF_EVERY_METHOD))


def check(method: str, names: Iterable[str]) -> None:
    """Raises UsageError where a name is not a hyperparameter of the method."""
    for name in names:
        if name not in (allowed := searchable(method)):
            if name == EPSILON:
                raise UsageError(f"method {method!r} has no ε; name what --search is to try: {', '.join(allowed)}")
            raise UsageError(f"method {method!r}: {unknown('hyperparameter', name, allowed)}")
