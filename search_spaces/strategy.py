"""The contract between a search and whoever evaluates what it suggests.

A strategy is a fold over observations: two strategies built alike and told the same are in the same state. It
is therefore restarted by `replay`, not by pickling.
"""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

W_co = TypeVar("W_co", covariant=True)
R_contra = TypeVar("R_contra", contravariant=True)


@dataclass(frozen=True)
class Suggestion:
    """An ε to evaluate. `number` counts the suggestions of one strategy from 0."""

    number: int
    epsilon: float


@dataclass(frozen=True)
class Observation:
    """The score of a suggestion, higher is better (such as the average accuracy A_T).

    value None: the evaluation failed or diverged. Raises ValueError when the value is not finite: NaN would
    compare as neither better nor worse.
    """

    number: int
    value: float | None

    def __post_init__(self) -> None:
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"value of {self.number} must be finite, or None if it failed, got {self.value}")


@dataclass(frozen=True)
class Best:
    """The best observation so far and its ε; equal values: the smaller ε, then the smaller number."""

    epsilon: float
    value: float
    number: int


class AskTell(Protocol[W_co, R_contra]):
    """A source of work: a piece stays in `ask()` until its result is told; `done` when none will come."""

    @property
    def done(self) -> bool: ...

    def ask(self) -> Sequence[W_co]: ...

    def tell(self, results: Sequence[R_contra], /) -> None: ...


class Strategy(AskTell[Suggestion, Observation], Protocol):
    """A search that is asked for values of ε and told their scores.

    ask    the suggestions of the current round that are still open; asked again before tell, the same ones.
           Empty exactly when done.
    tell   any of what was ever suggested, in any order and in parts. Telling a value again is no error.
           Raises ValueError, taking nothing in, when a number was never suggested or was told another value.
    done   no suggestion is open and none will be.
    best   over everything told so far; None before the first success.
    """

    @property
    def best(self) -> Best | None: ...

    def ask(self) -> list[Suggestion]: ...


def take_in(
    told: Mapping[int, float | None], observations: Iterable[Observation], suggested: Container[int]
) -> dict[int, float | None]:
    """`told` (number -> value) with the observations added, after the checks that every strategy's tell owes.

    Raises ValueError as `Strategy.tell` does; `told` itself is left as it was.
    """
    merged = dict(told)
    for observation in observations:
        number, value = observation.number, observation.value
        if number not in suggested:
            raise ValueError(f"observation must be of a number that was suggested, got {number}")
        if number in merged and merged[number] != value:
            raise ValueError(f"observation {number} must not change, got {value} after {merged[number]}")
        merged[number] = value
    return merged


def replay(strategy: Strategy, observations: Iterable[Observation]) -> None:
    """Tell a strategy what an earlier one like it was told, in any order: it is then in the same state.

    Raises ValueError when observations are left over: they belong to a strategy that was built differently.
    """
    listed = list(observations)
    waiting = take_in({}, listed, suggested={one.number for one in listed})
    while known := [one.number for one in strategy.ask() if one.number in waiting]:
        strategy.tell([Observation(number, waiting.pop(number)) for number in known])
    if waiting:
        numbers = ", ".join(map(str, sorted(waiting)))
        raise ValueError(f"observations must be of numbers that this search suggests, got {numbers}")
