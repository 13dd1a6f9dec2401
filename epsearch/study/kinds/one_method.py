"""Studies in which values of one method's hyperparameters are chosen."""

from dataclasses import dataclass, replace
from typing import Any

from epsearch.study import values
from epsearch.study.description import Study
from epsearch.study.hyperparameters import EPSILON
from epsearch.study.option import BASIC, LEARNING, METHOD, SEARCHED, option
from search_spaces.space import Parameter, Point, Space
from trainers.cohort import Learner
from trainers.hyperparameters import Value
from trainers.methods import METHODS, PLUGGED, hyperparameters, method


@dataclass(frozen=True, init=False, kw_only=True)
class OneMethod(Study):
    """Base of studies in which values of one method's hyperparameters are chosen."""

    # fmt: off
    method: str = option(
        values.METHOD_NAME, f"Method whose hyperparameter is searched: {', '.join(METHODS)}; or module:attribute.",
        LEARNING, "soft_agem", level=BASIC, part=METHOD, after="dataset",
    )
    search: Space | None = option(
        values.SPACE, "What is searched, like epsilon=0..1 or lr=log:0.003..0.3 memory=10,25,50.", SEARCHED,
        usual="ε over --interval", level=BASIC, later=True, extendable=True,
    )
    set: tuple[tuple[str, Value], ...] = option(
        values.METHOD_VALUES, "Hyperparameters of a plug-in method, e.g. pull=0.5 when=odd.", SEARCHED, (),
        usual="the method's", later=True,
    )
    """(name, value) of all of them."""
    interval: tuple[float, float] = option(
        values.INTERVAL, "Interval in which ε is searched, LOW HIGH.", SEARCHED, usual="0 1", part=METHOD,
        extendable=True, after="hyperparameters",
    )
    # fmt: on

    @property
    def space(self) -> Space:
        """The search space. ε = 0 of ε-SOFT-GEM stands apart: it is A-GEM, another formula."""
        # No curve over ε must be fitted through a point of another formula.
        space = self.search or Space((Parameter(EPSILON, *self.interval),))
        declared = (METHODS | PLUGGED).get(self.method)
        apart = (0.0,) if declared is not None and declared.at_zero else ()
        return Space(
            tuple(
                replace(parameter, apart=apart) if parameter.name == EPSILON else parameter
                for parameter in space.parameters
            )
        )

    def value(self, name: str) -> Any:
        """Returns the value of an option, or of a plug-in method's own hyperparameter."""
        set_values = dict(self.set)
        return set_values[name] if name in set_values else super().value(name)

    @property
    def largest_batch(self) -> int:
        """Examples of the largest SGD step, searched batch sizes included."""
        if self.foreign:
            return 1
        ends = [
            (parameter.high, *parameter.choices)
            for parameter in self.space.parameters
            if parameter.name == "batch_size"
        ]
        return max([super().largest_batch, *(int(end) for row in ends for end in row if end is not None)])

    def idle(self, name: str) -> str:
        """Returns why an option has no effect: ε or λ of another method, or ε while it is searched.

        Options that a cohort shares, such as the memory, are accepted, as scripts set them for all methods.
        """
        if name not in hyperparameters() or not hyperparameters()[name].per_learner:
            return ""
        if name not in {hyperparameter.name for hyperparameter in method(self.method).hyperparameters}:
            return f"{self.method} does not have it"
        return "it is searched, and compared with 0" if name == EPSILON and name in self.space.names else ""

    @property
    def first_task_alone(self) -> bool:
        """True if a searched hyperparameter affects the first task."""
        return not {*method(self.method).in_first_task}.isdisjoint(self.space.names)

    def learner(self, point: Point, seed: int) -> Learner:
        """Returns the learner of a point, with the study's values of other hyperparameters.

        Raises ValueError for unknown hyperparameters and invalid values.
        """
        own = self._values_of(self.method)
        searched = dict(zip(self.space.names, point, strict=True))
        return Learner.of(self.method, seed, **own | dict(self.set) | searched)

    def _values_of(self, name: str) -> dict[str, Any]:
        """Returns the study's values of a method's hyperparameters; none of a trainer's."""
        declared = () if self.foreign else method(name).hyperparameters
        return {hyperparameter.name: self.value(hyperparameter.name) for hyperparameter in declared}
