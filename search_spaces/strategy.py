"""The contract between a search and whoever evaluates what it suggests.

A strategy is a fold over observations: two strategies built alike and told the same are in the same state. It
is therefore restarted by `replay`, not by pickling.
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
    """A point of the space to evaluate. `number` counts the suggestions of one strategy from 0."""

    number: int
    point: Point


@dataclass(frozen=True)
class Observation:
    """The score of a suggestion, higher is better (such as the average accuracy A_T).

    value None: the evaluation failed or diverged. scores: those of its runs in the order of the seeds, None where a
    seed was not run; empty where only the mean is known. Raises ValueError when a number is not finite: NaN would
    compare as neither better nor worse.
    """

    number: int
    value: float | None
    scores: tuple[float | None, ...] = ()

    def __post_init__(self) -> None:
        for value in (self.value, *self.scores):
            if value is not None and not math.isfinite(value):
                raise ValueError(f"value of {self.number} must be finite, or None if it failed, got {value}")


@dataclass(frozen=True)
class Best:
    """The best observation so far and its point."""

    point: Point
    value: float
    number: int


@dataclass(frozen=True)
class Round:
    """Suggestions that are open together.

    number   from 1
    points   in the order of their numbers
    scores   one per point; None where it failed or is still open
    span     smallest and largest value of the interval that is searched; None where the strategy has none
    winners  indices of the best two points, ascending; None where the strategy knows no winners, while open, or when
             fewer than two succeeded
    note     where the search departed from its plain rule or stopped early, and why; empty otherwise
    """

    number: int
    points: tuple[Point, ...]
    scores: tuple[float | None, ...]
    span: tuple[float, float] | None = None
    winners: tuple[int, int] | None = None
    note: str = ""


# From ascending coordinates on the axis of one parameter (log10 of its values on a logarithmic one), the scores of each
# by seed (None = not run, rows of one length) and the ends of the axis: between which coordinates the maximum of the
# curve may lie. None where the scores cannot say.
Confidence = Callable[[Sequence[float], Sequence[Sequence[float | None]], float, float], tuple[float, float] | None]


@dataclass(frozen=True)
class Budget:
    """What a strategy may spend, and what it is told besides the space.

    points      N suggestions a round
    repeats     M rounds at most
    seed        of strategies that draw, 0…2³²−1
    confidence  of strategies that narrow by what the scores can tell apart
    """

    points: int
    repeats: int
    seed: int = 0
    confidence: Confidence | None = None

    def __post_init__(self) -> None:
        for name, value in (("points", self.points), ("repeats", self.repeats)):
            if value < 1:
                raise ValueError(f"{name} must be >= 1, got {value}")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed must lie in 0…2³²−1, got {self.seed}")


class AskTell(Protocol[W_co, R_contra]):
    """A source of work: a piece stays in `ask()` until its result is told; `done` when none will come."""

    @property
    def done(self) -> bool: ...

    def ask(self) -> Sequence[W_co]: ...

    def tell(self, results: Sequence[R_contra], /) -> None: ...


class Strategy(AskTell[Suggestion, Observation], Protocol):
    """A search that is asked for points and told their scores.

    ask    the suggestions of the current round that are still open; asked again before tell, the same ones.
           Empty exactly when done.
    tell   any of what was ever suggested, in any order and in parts. Telling a value again is no error.
           Raises ValueError, taking nothing in, when a number was never suggested or was told another value.
    done   no suggestion is open and none will be.
    best   over everything told so far, one of the points that succeeded; None before the first success. The highest
           score, unless the strategy says which points it rules out.
    rounds the finished rounds and, unless done, the open one.
    """

    @property
    def best(self) -> Best | None: ...

    @property
    def rounds(self) -> tuple[Round, ...]: ...

    def ask(self) -> list[Suggestion]: ...


def take_in(
    told: Mapping[int, Observation], observations: Iterable[Observation], suggested: Container[int]
) -> dict[int, Observation]:
    """`told` (by number) with the observations added, after the checks that every strategy's tell owes.

    Raises ValueError as `Strategy.tell` does; `told` itself is left as it was.
    """
    merged = dict(told)
    for observation in observations:
        number = observation.number
        if number not in suggested:
            raise ValueError(f"observation must be of a number that was suggested, got {number}")
        known = merged.setdefault(number, observation)
        if known != observation:
            new, old = _differing(observation, known)
            raise ValueError(f"observation {number} must not change, got {new} after {old}")
    return merged


def _differing(new: Observation, old: Observation) -> tuple[str, str]:
    """Both as text: the values, or the scores where only these differ."""
    if new.value != old.value:
        return str(new.value), str(old.value)
    return f"the scores {list(new.scores)}", f"{list(old.scores)}"


def replay(strategy: Strategy, observations: Iterable[Observation]) -> None:
    """Tell a strategy what an earlier one like it was told, in any order: it is then in the same state.

    Raises ValueError when observations are left over: they belong to a strategy that was built differently.
    """
    listed = list(observations)
    waiting = take_in({}, listed, suggested={one.number for one in listed})
    while known := [one.number for one in strategy.ask() if one.number in waiting]:
        strategy.tell([waiting.pop(number) for number in known])
    if waiting:
        numbers = ", ".join(map(str, sorted(waiting)))
        raise ValueError(f"observations must be of numbers that this search suggests, got {numbers}")
