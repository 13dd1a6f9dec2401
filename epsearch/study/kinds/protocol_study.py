"""A study of search protocols."""

from dataclasses import dataclass

from epsearch.study import limits, values
from epsearch.study.kinds.one_method import OneMethod
from epsearch.study.kinds.options import allow_shared_option
from epsearch.study.option import BASIC, DATASETS, SEARCHED, STREAM, option
from search_spaces.grid import grid
from search_spaces.space import Parameter, Point
from trainers.hyperparameters import Hyperparameter
from trainers.methods import method

PROTOCOLS = (
    *("cv-tasks", "extrapolated", "first-k", "end-of-training"),
    *("current-task", "seen-tasks", "hindsight"),
)
"""Usual protocols of a study of protocols: those that can choose of every method."""


@dataclass(frozen=True, init=False, kw_only=True)
class ProtocolStudy(OneMethod):
    """Several search protocols on one stream, judged alike: `epsearch protocols`."""

    kind = "protocols"
    chooses = True

    # fmt: off
    protocols: tuple[str, ...] = option(
        values.PROTOCOL_NAMES,
        "Search protocols with commas between, also first-3 or 25-percent; or module:attribute.",
        SEARCHED, PROTOCOLS, level=BASIC,
    )
    points: int = option(values.whole(2, limits.VALUES), "Values that may be chosen.", SEARCHED, usual=DATASETS)
    """An even grid over the searched interval."""
    validation: float = option(
        values.SHARE, "Share of each task's training examples to choose by, which is held out of training.", STREAM,
        0.1,
    )
    allow_shared: bool = allow_shared_option()
    # fmt: on

    @property
    def declared(self) -> Hyperparameter:
        """The declaration of the hyperparameter that is chosen."""
        return next(
            hyperparameter
            for hyperparameter in method(self.method).hyperparameters
            if hyperparameter.name == self.space.names[0]
        )

    @property
    def candidates(self) -> tuple[float, ...]:
        """The numbers that may be chosen, ascending. Raises ValueError as `grid`."""
        values = (point[0] for point in grid(self.space, self.points))
        return tuple(sorted(value for value in values if isinstance(value, (int, float))))

    @property
    def places(self) -> tuple[float, ...]:
        """Positions of these values on the searched axis, from 0 to 1."""
        (parameter,) = self.space.parameters
        if parameter.choices:
            parameter = Parameter(parameter.name, float(self.candidates[0]), float(self.candidates[-1]))
        axis = parameter.axis()
        return tuple(
            (parameter.coordinate(float(value)) - axis.low) / (axis.high - axis.low) for value in self.candidates
        )

    @property
    def tried(self) -> int:
        """Largest number of tried values."""
        return len(self.candidates)

    @property
    def compared_on(self) -> tuple[int, ...]:
        """Number of orders, or of seeds where there is one order: seeds of an order say nothing about others."""
        return (self.orders if self.orders > 1 else len(self.seeds),)

    @property
    def compared_unit(self) -> str:
        """The unit of these numbers."""
        return "order" if self.orders > 1 else super().compared_unit

    @property
    def example(self) -> Point:
        """An example of a point."""
        return self.candidates[-1:]

    @property
    def searches(self) -> bool:
        """True if a protocol chooses by tasks that are not judged."""
        from epsearch.protocols.protocol import SEARCH
        from epsearch.protocols.registry import protocol

        views = (protocol(name).view for name in self.protocols)
        return any(view is not None and view.stream == SEARCH for view in views)

    def holds_tests(self, phase: str) -> bool:
        """Returns whether a phase is tested by the examples that are held out: nobody is judged on D^CV."""
        return phase != "cv" and super().holds_tests(phase)

    def code(self) -> dict[str, str]:
        """Returns possible plug-ins: network, method, protocols."""
        return super().code() | {self.method: "method"} | dict.fromkeys(self.protocols, "protocol")
