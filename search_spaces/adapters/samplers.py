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
"""Random points before the model of TPE and GP; Optuna's own default."""


class _Qmc(QMCSampler):
    """Sobol points from the first one on: Optuna learns the space from trials, and would draw the first at random."""

    def __init__(self, space: Space, seed: int) -> None:
        super().__init__(qmc_type="sobol", scramble=True, seed=seed)
        self._space = distributions(space)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> Distributions:
        """Returns the space of the search, also before the first trial."""
        return dict(self._space)


class _CmaEs(CmaEsSampler):
    """CMA-ES from the first point on, where Optuna would draw the first batch at random.

    A population is one batch, or several where a batch is smaller than the population that CMA-ES needs: 4 + ⌊3·ln d⌋
    points in d dimensions (Hansen, arXiv 1604.00772, table 1).
    """

    def __init__(self, space: Space, batch: int, seed: int) -> None:
        self._space = {name: one for name, one in distributions(space).items() if not one.single()}
        least = 4 + math.floor(3 * math.log(max(len(self._space), 1)))
        population = batch * math.ceil(least / batch)
        super().__init__(popsize=population, n_startup_trials=0, seed=seed, warn_independent_sampling=False)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> Distributions:
        """Returns the space of the search, also before the first trial."""
        return dict(self._space)


def _random(space: Space, budget: Budget) -> BaseSampler:
    return RandomSampler(seed=budget.seed)


def _qmc(space: Space, budget: Budget) -> BaseSampler:
    with warnings.catch_warnings():
        # Users chose this strategy by name; that Optuna may still change the class does not concern them.
        warnings.simplefilter("ignore", ExperimentalWarning)
        return _Qmc(space, budget.seed)


def _tpe(space: Space, budget: Budget) -> BaseSampler:
    # At most one batch: its points are drawn before any score is known, so the model cannot be used for them.
    return TPESampler(seed=budget.seed, n_startup_trials=min(STARTUP, budget.points))


def _gp(space: Space, budget: Budget) -> BaseSampler:
    startup = min(STARTUP, budget.points)
    return GPSampler(seed=budget.seed, n_startup_trials=startup, warn_independent_sampling=False)


def _cmaes(space: Space, budget: Budget) -> BaseSampler:
    for parameter in space.parameters:
        if len(parameter.choices) > 1:  # a single choice is a constant, which CMA-ES leaves out
            raise ValueError(f"strategy cmaes cannot search choices, got {parameter}; grid, random, qmc, tpe, gp can")
    return _CmaEs(space, budget.points, budget.seed)


SAMPLERS: dict[str, Callable[[Space, Budget], BaseSampler]] = {
    "random": _random,
    "qmc": _qmc,
    "tpe": _tpe,
    "gp": _gp,
    "cmaes": _cmaes,
}
"""Name -> what builds the sampler for a space and a budget; ValueError for a space that it cannot search."""


def distributions(space: Space) -> Distributions:
    """Returns the parameters of a space as Optuna's distributions, by name."""
    return {one.name: _distribution(one) for one in space.parameters}


def _distribution(parameter: Parameter) -> BaseDistribution:
    if parameter.low is None or parameter.high is None or parameter.choices:
        return CategoricalDistribution(parameter.choices)
    if parameter.whole:
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.log)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.log)
