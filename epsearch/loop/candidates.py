"""Candidates of a tuning with a budget: quasi-random values of all that a method alone has."""

from search_spaces.published.definition import learning_rate_grid, strength_grids
from search_spaces.space import Parameter
from trainers import methods
from trainers.hyperparameters import LARGEST, LR, Hyperparameter, Hyperparameters, Value

DECADES = 1  # on each side of a value without ends of its own


def tunable(method: str, values: Hyperparameters) -> tuple[Parameter, ...]:
    """Returns the learning rate, and each number of the method's own in which learners of a cohort may differ.

    Intervals are the span of A-GEM's grids, else the declared one; without ends, a decade on each side of the value.
    """
    declared = methods.method(method)
    searchable = (
        hyperparameter for hyperparameter in declared.own if hyperparameter.per_learner and not hyperparameter.choices
    )
    return (
        _parameter(LR, learning_rate_grid(), values),
        *(_parameter(hyperparameter, _grid(method, hyperparameter), values) for hyperparameter in searchable),
    )


def quasi_random(parameters: tuple[Parameter, ...], count: int) -> list[dict[str, Value]]:
    """Returns points of Halton's sequence (Halton, 1960) over the parameters' axes, from the second one on.

    The first is a corner. The first points of a longer list are those of a shorter one.
    """
    from scipy.stats.qmc import Halton  # takes a while to import

    unit = Halton(len(parameters), scramble=False).random(count + 1)[1:]
    axes = [parameter.axis() for parameter in parameters]
    return [
        {
            parameter.name: parameter.value(axis.low + share * axis.width)
            for parameter, axis, share in zip(parameters, axes, row, strict=True)
        }
        for row in unit
    ]


def _grid(method: str, hyperparameter: Hyperparameter) -> tuple[float, ...]:
    """Returns the published grid of a hyperparameter, if any."""
    alike = methods.method(method).settings_of or method
    return strength_grids().get(alike, ()) if hyperparameter.name == "strength" else ()


def _parameter(hyperparameter: Hyperparameter, grid: tuple[float, ...], values: Hyperparameters) -> Parameter:
    """Returns the interval in which a hyperparameter is tuned."""
    low = hyperparameter.low if hyperparameter.search_low is None else hyperparameter.search_low
    high = hyperparameter.high
    if grid:
        return Parameter(hyperparameter.name, min(grid), max(grid), log=True, whole=hyperparameter.whole)
    if high < LARGEST:
        return Parameter(hyperparameter.name, low, high, whole=hyperparameter.whole)
    value = float(vars(values)[hyperparameter.name])
    if value <= 0:
        raise ValueError(
            f"{hyperparameter.name} must be > 0 with budget, which tries a decade around it; got {value:g}"
        )
    return Parameter(
        hyperparameter.name, max(low, value / 10**DECADES), value * 10**DECADES, log=True, whole=hyperparameter.whole
    )
