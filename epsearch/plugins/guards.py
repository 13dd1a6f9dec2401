"""Guards of protocols and strategies of users: whatever these raise, or return of a wrong type, is one line."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, fields, replace
from reprlib import repr
from typing import Any

from epsearch.failures.errors import PluginError, as_usage_error
from epsearch.protocols.protocol import Protocol, Question, Trial
from search_spaces.space import Parameter, Space
from search_spaces.strategies import StrategyKind
from search_spaces.strategy import Best, Budget, Observation, Round, Strategy, Suggestion
from trainers.plugins.calls import ForeignError, blamed, number
from trainers.plugins.source import Source


@contextmanager
def _blame(what: str, source: Source, clear: type[Exception] = ForeignError) -> Iterator[None]:
    """Raises whatever is raised in here as PluginError, which says what has failed; clear: errors that pass."""
    with as_usage_error(ForeignError, by=PluginError), blamed(f"{what} failed with", source, clear):
        yield


@dataclass(frozen=True, kw_only=True)
class GuardedProtocol(Protocol):
    """A user's protocol, whose errors are raised as PluginError. `choose` may still raise ValueError."""

    name: str
    """Its module:attribute."""
    made: Protocol = field(compare=False)
    """The protocol itself."""
    files: Source = field(compare=False)
    """Its files."""

    def needs(self, question: Question) -> str:
        """Returns why it cannot choose; "" where it can."""
        with self._guard("needs"):
            return self.made.needs(question)

    def propose(self, question: Question, trials: Sequence[Trial]) -> tuple[float, ...]:
        """Returns the numbers to try next."""
        with self._guard("propose"):
            values: Any = self.made.propose(question, trials)
            if not isinstance(values, (tuple, list)):
                raise ForeignError(f"{self._part('propose')} must return a tuple of numbers, got {repr(values)}")
            return tuple(number(value, self._part("each value of propose"), finite=True) for value in values)

    def score(self, trial: Trial) -> float:
        """Returns the score of a trial."""
        with self._guard("score"):
            return number(self.made.score(trial), self._part("score"))

    def choose(self, question: Question, trials: Sequence[Trial]) -> float:
        """Returns the number to train with."""
        if type(self.made).choose is Protocol.choose:
            return super().choose(question, trials)  # by scores, each of which is guarded
        with self._guard("choose", ValueError):
            return number(self.made.choose(question, trials), self._part("choose"), finite=True)

    def _part(self, part: str) -> str:
        return f"{part} of protocol {self.name}"

    def _guard(self, part: str, clear: type[Exception] = ForeignError) -> AbstractContextManager[None]:
        return _blame(self._part(part), self.files, clear)


def guard_protocol(name: str, made: Protocol, source: Source) -> Protocol:
    """Returns a protocol with the guard; one of a class of epsearch's own as it is, as its type says how it chooses."""
    if type(made).__module__.startswith("epsearch."):
        return made
    with _blame(f"protocol {name}", source):
        declared = {one.name: getattr(made, one.name) for one in fields(Protocol)}
    return GuardedProtocol(**declared, name=name, made=made, files=source)


class GuardedStrategy:
    """A user's strategy, whose errors are raised as PluginError, and which must come to an end within its budget.

    make: builds it; most: suggestions that it may make.
    """

    def __init__(self, name: str, source: Source, space: Space, most: int, make: Callable[[], Strategy]) -> None:
        self._what, self._source, self._space, self._most = f"strategy {name}", source, space, most
        with self._guard():
            self._made = make()
        self._check()

    @property
    def done(self) -> bool:
        """True if no work is open and none will be."""
        with self._guard("done"):
            return bool(self._made.done)

    @property
    def best(self) -> Best | None:
        """The best of all points told so far."""
        with self._guard("best"):
            return self._made.best

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The finished rounds and, unless done, the open one."""
        with self._guard("rounds"):
            return self._made.rounds

    def ask(self) -> list[Suggestion]:
        """Returns the open suggestions."""
        with self._guard("ask"):
            return self._made.ask()

    def tell(self, observations: Sequence[Observation]) -> None:
        """Takes scores."""
        with self._guard("tell"):
            self._made.tell(observations)
        self._check()

    def _check(self) -> None:
        """Raises PluginError for open points outside of the space, and where the search would never end."""
        with self._guard():
            suggestions, space = self._made.ask(), self._space
            wrong = next((one.point for one in suggestions if not _lies_in(space, one.point)), None)
            if wrong is not None:
                raise ForeignError(f"{self._what} must suggest tuples of values in {space}, got {repr(wrong)}")
            if not suggestions and not self._made.done:
                raise ForeignError(f"{self._what} suggests nothing more, and is not done")
            if sum(len(one.points) for one in self._made.rounds) > self._most:
                raise ForeignError(f"{self._what} may make {self._most} suggestions, points × repeats, and makes more")

    def _guard(self, part: str = "") -> AbstractContextManager[None]:
        return _blame(f"{part} of {self._what}" if part else self._what, self._source)


def guard_strategy(name: str, kind: StrategyKind, source: Source) -> StrategyKind:
    """Returns the declaration of a strategy that is built with the guard."""

    def planned(space: Space, budget: Budget) -> int:
        with _blame(f"planned of strategy {name}", source):
            assert kind.planned is not None
            return round(number(kind.planned(space, budget), f"planned of strategy {name}", finite=True))

    def make(space: Space, budget: Budget) -> Strategy:
        most = budget.points * budget.repeats
        if kind.planned is not None:
            most = max(most, planned(space, budget))
        return GuardedStrategy(name, source, space, most, lambda: kind(space, budget))

    return replace(kind, make=make, planned=kind.planned and planned)


def _lies_in(space: Space, point: Any) -> bool:
    """Returns whether something is a point of a space."""
    if not isinstance(point, tuple) or len(point) != len(space.parameters):
        return False
    return all(map(_is_value, space.parameters, point))


def _is_value(parameter: Parameter, value: Any) -> bool:
    """Returns whether something is a value of a parameter, of a type that can be stored."""
    if parameter.choices:
        return value in parameter.choices
    assert parameter.low is not None and parameter.high is not None
    typed = isinstance(value, int if parameter.whole else (int, float)) and not isinstance(value, bool)
    # An end that went through a logarithm may be off by a rounding.
    at_an_end = typed and any(math.isclose(value, end, rel_tol=1e-12) for end in (parameter.low, parameter.high))
    return typed and (at_an_end or bool(parameter.low <= value <= parameter.high))
