"""Which hyperparameters a method has, and a point of a search by their names."""

from collections.abc import Iterable

from epsearch.failures.errors import UsageError, unknown
from epsearch.study.hyperparameters import EPSILON
from search_spaces.space import Point, Value
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


def named(names: Iterable[str], point: Point) -> dict[str, Value]:
    """name -> value."""
    return dict(zip(names, point, strict=True))
