"""Optuna's samplers, configured for searches of a few dozen points in batches."""

import math
import warnings
from collections.abc import Callable

from optuna import Study
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, QMCSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial

from search_spaces.space import Parameter, Space
from search_spaces.strategy import Budget

Distributions = dict[str, BaseDistribution]
STARTUP = 10
"""Random points before the model of TPE and GP; Optuna's own default. At most one batch, as its points are drawn before
any score is known, so that no model can be used for them."""


def _with_space(sampler: BaseSampler, space: Distributions) -> BaseSampler:
    """Returns the sampler with this space: Optuna learns it from trials, and draws the first ones at random."""

    def infer_relative_search_space(study: Study, trial: FrozenTrial) -> Distributions:
        return dict(space)

    sampler.infer_relative_search_space = infer_relative_search_space  # type: ignore[method-assign]
    return sampler


def _qmc(space: Space, budget: Budget) -> BaseSampler:
    """Returns Sobol points from the first one on."""
    with warnings.catch_warnings():
        # Users chose this strategy by name; that Optuna may still change the class does not concern them.
        warnings.simplefilter("ignore", ExperimentalWarning)
        sampler = QMCSampler(qmc_type="sobol", scramble=True, seed=budget.seed)
    return _with_space(sampler, distributions(space))


def _cmaes(space: Space, budget: Budget) -> BaseSampler:
    """Returns CMA-ES from the first point on.

    A population is one batch, or several where a batch is smaller than the population that CMA-ES needs: 4 + ⌊3·ln d⌋
    points in d dimensions (Hansen, arXiv 1604.00772, table 1). Raises ValueError for a space with choices.
    """
    for parameter in space.parameters:
        if len(parameter.choices) > 1:  # a single choice is a constant, which CMA-ES leaves out
            raise ValueError(f"strategy cmaes cannot search choices, got {parameter}; grid, random, qmc, tpe, gp can")
    searched = {name: distribution for name, distribution in distributions(space).items() if not distribution.single()}
    least = 4 + math.floor(3 * math.log(max(len(searched), 1)))
    population = budget.points * math.ceil(least / budget.points)
    sampler = CmaEsSampler(popsize=population, n_startup_trials=0, seed=budget.seed, warn_independent_sampling=False)
    return _with_space(sampler, searched)


SAMPLERS: dict[str, Callable[[Space, Budget], BaseSampler]] = {
    "random": lambda space, budget: RandomSampler(seed=budget.seed),
    "qmc": _qmc,
    "tpe": lambda space, budget: TPESampler(seed=budget.seed, n_startup_trials=min(STARTUP, budget.points)),
    "gp": lambda space, budget: GPSampler(
        seed=budget.seed, n_startup_trials=min(STARTUP, budget.points), warn_independent_sampling=False
    ),
    "cmaes": _cmaes,
}
"""Name -> what builds the sampler for a space and a budget; ValueError for a space that it cannot search."""


def distributions(space: Space) -> Distributions:
    """Returns the parameters of a space as Optuna's distributions, by name."""
    return {parameter.name: _distribution(parameter) for parameter in space.parameters}


def _distribution(parameter: Parameter) -> BaseDistribution:
    if parameter.low is None or parameter.high is None or parameter.choices:
        return CategoricalDistribution(parameter.choices)
    if parameter.whole:
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.log)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.log)
