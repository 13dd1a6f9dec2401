"""The paper's interval search as a sampler for Optuna: `optuna.create_study(sampler=IntervalNarrowingSampler())`."""

import threading
import warnings
import zlib
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from search_spaces.adapters.study_parameter import (
    SUGGESTION,
    StudyParameter,
    finished_trial,
    narrowed_parameters,
    number_of,
    numeric,
)
from search_spaces.narrowing import IntervalNarrowing
from search_spaces.strategy import Suggestion

# One lock for all samplers: a sampler that held its own could not be pickled.
_TAKING = threading.Lock()


class IntervalNarrowingSampler(BaseSampler):
    """A sampler that narrows one float or int parameter of a study, by the rule of `IntervalNarrowing`.

    points     N values of every grid, both ends included
    repeats    M grids; the sampler stops the study when the search is over, at the latest after N × M trials
    parameter  name of the parameter; None if the study has only one numeric parameter
    seed       seed of the random values of all other parameters; a trial's values depend on its number

    The state is read from the study's trials, so a study in a database resumes in any process. The first trial of a
    suggestion to finish counts. Failed, pruned and infinite trials are failed points, unless Optuna retries them.
    Trials with another range of the parameter, and trials with an enqueued value, do not count.

    Trials of one round may run at the same time, trials of different rounds may not: when a trial starts while no
    suggestion is free, a point that is being evaluated is given out again, with one warning. So the point of a trial
    that was killed is repeated, too.

    Raises ValueError for arguments out of range; and later, when a trial asks for a value, for a study with several
    objectives, for a parameter that is not numeric or has fewer than N values, and for several numeric parameters when
    none is named.
    """

    def __init__(
        self, points: int = 11, repeats: int = 5, parameter: str | None = None, seed: int | None = None
    ) -> None:
        if points < 2 or repeats < 1:
            raise ValueError(f"points must be >= 2 and repeats >= 1, got {points} and {repeats}")
        if seed is not None and seed < 0:
            raise ValueError(f"seed must be >= 0, got {seed}")
        self._points, self._repeats, self._parameter = points, repeats, parameter
        self._seed = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
        self._warned = False

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Returns no parameter: the range of one is known only when a trial asks for its value."""
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Returns no value, as no parameter is known yet; refuses studies with several objectives."""
        self._raise_error_if_multi_objective(study)
        return {}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Returns the next point of the search for its parameter; a random value for others and after the search."""
        self._raise_error_if_multi_objective(study)
        line = self._line(param_name, param_distribution)
        if line is not None:
            with _TAKING:
                trials = _trials(study)
                self._must_be_alone(study, trials, trial, param_name)
                taken = self._take(self._search(study, line, trials), trials, trial, param_name)
                if taken is not None:
                    # In the storage, not in this object: other processes must see which suggestion is taken.
                    study._storage.set_trial_system_attr(trial._trial_id, SUGGESTION, [param_name, taken.number])
                    return line.value(taken.point)
        # By the trial's number and the name, so that neither the order of trials nor other parameters change a value.
        seed = np.random.SeedSequence([self._seed, trial.number, zlib.crc32(param_name.encode())])
        drawn = RandomSampler(seed=int(seed.generate_state(1)[0]))
        return drawn.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Stops the study when the search is over."""
        # The storage learns of the end of this trial only after this call.
        trials = [other for other in _trials(study) if other.number != trial.number] + [
            finished_trial(trial, state, values)
        ]
        for name in narrowed_parameters(trials) if self._parameter is None else {self._parameter}:
            distribution = numeric(trial.distributions.get(name))
            if distribution is not None and self._search(study, StudyParameter(name, distribution), trials).done:
                with suppress(RuntimeError):  # asked and told by hand, a study has no loop that could be stopped
                    study.stop()

    def _line(self, name: str, distribution: BaseDistribution) -> StudyParameter | None:
        """Returns the searched parameter; None for a parameter that is not searched."""
        numbers = numeric(distribution)
        if self._parameter == name and numbers is None:
            raise ValueError(f"parameter {name!r} must be a float or an int to be narrowed, got {distribution}")
        return None if numbers is None or self._parameter not in (None, name) else StudyParameter(name, numbers)

    def _must_be_alone(self, study: Study, trials: Sequence[FrozenTrial], trial: FrozenTrial, name: str) -> None:
        """Raises ValueError when no parameter was named and the study has a second numeric one."""
        others = narrowed_parameters(trials) - {name}
        if self._parameter is None and others:
            # The suggestion that this trial has taken must not count as failed when the study resumes with a name.
            study._storage.set_trial_system_attr(trial._trial_id, SUGGESTION, None)
            raise ValueError(
                f"study must have one numeric parameter, got {', '.join(sorted({*others, name}))}; "
                f"say which: parameter={name!r}"
            )

    def _search(self, study: Study, line: StudyParameter, trials: Sequence[FrozenTrial]) -> IntervalNarrowing:
        sign = 1.0 if study.direction == StudyDirection.MAXIMIZE else -1.0
        return line.search(self._points, self._repeats, trials, sign)

    def _take(
        self, search: IntervalNarrowing, trials: Sequence[FrozenTrial], trial: FrozenTrial, name: str
    ) -> Suggestion | None:
        """Returns an open suggestion that the fewest other trials are evaluating; None when the search is over."""
        others = (other for other in trials if not other.state.is_finished() and other.number != trial.number)
        held = Counter(number_of(other, name) for other in others)
        taken = min(search.ask(), key=lambda suggestion: (held[suggestion.number], suggestion.number), default=None)
        if taken is not None and held[taken.number] and not self._warned:
            self._warned = True
            warnings.warn(
                "all open points of this round are being evaluated by other trials, or by trials that were killed: one "
                "of them is evaluated again, because the next round needs all scores of this one",
                stacklevel=2,
            )
        return taken


def _trials(study: Study) -> list[FrozenTrial]:
    # Not study.get_trials(), which pruners such as Hyperband's filter; and no copies, as trials are only read.
    return study._storage.get_all_trials(study._study_id, deepcopy=False)
