"""The contract between a strategy and the loop that evaluates its suggestions.

A strategy is a fold over observations: two strategies that are built in the same way and told the same scores are in
the same state. So a strategy is resumed by `replay`, and is never pickled.
"""

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from search_spaces.space import Point

W_co = TypeVar("W_co", covariant=True)
R_contra = TypeVar("R_contra", contravariant=True)


@dataclass(frozen=True)
class Suggestion:
    """A point to evaluate."""

    number: int
    """Counts the suggestions of one strategy from 0."""
    point: Point
    """One value for each parameter of the space."""


@dataclass(frozen=True)
class Observation:
    """The score of a suggestion, higher is better (such as the average accuracy A_T).

    Raises ValueError when a number is not finite: NaN would compare as neither better nor worse.
    """

    number: int
    """The number of the suggestion."""
    value: float | None
    """The score; None where the evaluation failed or diverged."""
    scores: tuple[float | None, ...] = ()
    """The score of each seed, in the order of the seeds; None for a seed that was not run. Empty where only `value` is
    known."""

    def __post_init__(self) -> None:
        for value in (self.value, *self.scores):
            if value is not None and not math.isfinite(value):
                raise ValueError(f"value of {self.number} must be finite, or None if it failed, got {value}")


@dataclass(frozen=True)
class Best:
    """The best observation so far and its point."""

    point: Point
    """The point that was evaluated."""
    value: float
    """Its score."""
    number: int
    """The number of its suggestion."""


@dataclass(frozen=True)
class Round:
    """Suggestions that are open at the same time."""

    number: int
    """Counts the rounds from 1."""
    points: tuple[Point, ...]
    """In the order of the suggestions' numbers."""
    scores: tuple[float | None, ...]
    """One for each point; None where it failed or is still open."""
    span: tuple[float, float] | None = None
    """Smallest and largest value of the searched interval; None for a strategy without intervals."""
    winners: tuple[int, int] | None = None
    """Indices of the best two points, ascending; None for a strategy without winners, while the round is open, and when
    fewer than two points succeeded."""
    note: str = ""
    """Why the search departed from its plain rule or stopped early; empty otherwise."""
    named: bool = False
    """Whether its one point is the one that a curve through all other scores names."""


Confidence = Callable[[Sequence[float], Sequence[Sequence[float | None]], float, float], tuple[float, float] | None]
"""Returns the ends of the confidence set of a curve's maximum, or None where the scores do not determine one.

Its arguments: ascending coordinates [K] on the axis of one parameter (log10 of the values on a logarithmic axis), the
scores [K][R] by seed (None = not run), and the low and high end of the axis. The fit is handed to a strategy as a
function, so that this package needs no statistics.
"""

Model = Callable[
    [Sequence[Sequence[float]], Sequence[Sequence[float | None]], Sequence[Sequence[float]], Sequence[bool], int],
    tuple[list[int], float] | None,
]
"""Returns which points to try next, and by how much the best expected score is then expected to rise.

Its arguments: the places [K][d] of the tried points, their scores [K][R] by seed (None = not run), the places [C][d] of
points among which the best one is, whether each of these may be tried, and how many are to be. None where the scores do
not determine a model. Handed to a strategy as a function, like `Confidence`.
"""


@dataclass(frozen=True)
class Budget:
    """The budget of a strategy, and its other arguments besides the space.

    Raises ValueError for points or repeats below 1 and for a seed out of range.
    """

    points: int
    """N suggestions a round."""
    repeats: int
    """M rounds at most."""
    seed: int = 0
    """Seed of strategies that draw at random, 0…2³²−1."""
    confidence: Confidence | None = None
    """The confidence set by which `interval-ci` narrows; other strategies do not use it."""
    model: Model | None = None
    """The model by which `kg` chooses its batches; other strategies do not use it."""

    def __post_init__(self) -> None:
        for name, value in (("points", self.points), ("repeats", self.repeats)):
            if value < 1:
                raise ValueError(f"{name} must be >= 1, got {value}")
        # 32 bits, because Optuna's samplers take no longer seed.
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed must lie in 0…2³²−1, got {self.seed}")


class AskTell(Protocol[W_co, R_contra]):
    """A source of work: `ask` returns a piece of work until its result is told."""

    @property
    def done(self) -> bool:
        """True if no work is open and none will be."""

    def ask(self) -> Sequence[W_co]:
        """Returns the open pieces of work; asked again before `tell`, the same ones."""

    def tell(self, results: Sequence[R_contra], /) -> None:
        """Takes results of any of the work that was ever returned by `ask`."""


class Strategy(AskTell[Suggestion, Observation], Protocol):
    """A search that is asked for points and told their scores.

    `tell` takes the observations of any suggestions that were ever made, in any order and in one call or several.
    Telling the same value again is no error. It raises ValueError, and takes nothing, for a number that was never
    suggested or was told another value.
    """

    @property
    def best(self) -> Best | None:
        """The best of all points told so far; None before the first success.

        It has the highest score, unless the strategy says which points it rules out.
        """

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The finished rounds and, unless done, the open one."""

    def ask(self) -> list[Suggestion]:
        """Returns the suggestions of the current round that have no score yet; none exactly when done."""


def take_in(
    before: Mapping[int, Observation], observations: Iterable[Observation], suggested: Container[int]
) -> dict[int, Observation]:
    """Returns `before` (by number) with the observations added, after the checks that `Strategy` promises.

    Raises ValueError as `Strategy.tell` does. `before` itself is not changed, so a refused call leaves no trace.
    """
    merged = dict(before)
    for observation in observations:
        number = observation.number
        if number not in suggested:
            raise ValueError(f"observation must be of a number that was suggested, got {number}")
        earlier = merged.setdefault(number, observation)
        if earlier.value != observation.value:
            raise ValueError(f"observation {number} must not change, got {observation.value} after {earlier.value}")
        if earlier != observation:
            raise ValueError(
                f"observation {number} must not change, got the scores {list(observation.scores)} "
                f"after {list(earlier.scores)}"
            )
    return merged


def replay(strategy: Strategy, observations: Iterable[Observation]) -> None:
    """Tells a strategy the observations of an earlier one, in any order; then both are in the same state.

    Raises ValueError when observations are left over, because then the earlier strategy was built differently.
    """
    listed = list(observations)
    # Only what is asked for is told: a later round exists only after the scores of the one before.
    waiting = take_in({}, listed, suggested={observation.number for observation in listed})
    while numbers := [suggestion.number for suggestion in strategy.ask() if suggestion.number in waiting]:
        strategy.tell([waiting.pop(number) for number in numbers])
    if waiting:
        raise ValueError(
            f"observations must be of numbers that this search suggests, got {', '.join(map(str, sorted(waiting)))}"
        )
