"""How a point of a search becomes a member, and which hyperparameters a method has."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from epsearch.failures.errors import UsageError, unknown
from epsearch.loop.content import method_settings
from epsearch.loop.jobs import Trainee
from epsearch.study.hyperparameters import EPSILON
from search_spaces.space import Point, Value
from trainers.cohort import Member, TrainConfig
from trainers.hyperparameters import OF_EVERY_METHOD
from trainers.methods import METHODS

# Fields of Member and TrainConfig that users call otherwise.
FIELDS = {"lr": "learning_rate"}
OF_A_MEMBER = (EPSILON, "strength")


def searchable(method: str) -> tuple[str, ...]:
    """Names of the hyperparameters on which a method's result depends."""
    return (*METHODS[method].names, *(one.name for one in OF_EVERY_METHOD))


def check(method: str, names: Iterable[str]) -> None:
    """Raises UsageError where a name is not a hyperparameter of the method."""
    for name in names:
        if name not in (allowed := searchable(method)):
            if name == EPSILON:
                raise UsageError(f"method {method!r} has no ε; name what --search is to try: {', '.join(allowed)}")
            raise UsageError(f"method {method!r}: {unknown('hyperparameter', name, allowed)}")


def trainee(phase: str, method: str, config: TrainConfig, fixed: Member, values: Mapping[str, Value]) -> Trainee:
    """The member with these hyperparameters; all others are those of `config` and `fixed`."""
    if EPSILON not in method_settings(method):
        fixed = replace(fixed, epsilon=0.0)  # as in every other record of the method
    own = {name: value for name, value in values.items() if name in OF_A_MEMBER}
    # The learning rate, too, stands in the configuration: cohorts of several rates are put together from that.
    shared = {FIELDS.get(name, name): value for name, value in values.items() if name not in OF_A_MEMBER}
    return Trainee(phase, method, replace(config, **shared), replace(fixed, **own))  # type: ignore[arg-type]


def named(names: Iterable[str], point: Point) -> dict[str, Value]:
    """name -> value."""
    return dict(zip(names, point, strict=True))
