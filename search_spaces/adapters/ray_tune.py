"""Ray Tune as the executor of an ask/tell source.

It only translates; the source decides and holds the state.
"""

import math
from collections.abc import Callable, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, Generic, TypeVar

from ray.tune.search import Searcher
from ray.tune.utils import flatten_dict

from search_spaces.strategy import AskTell, Observation, Strategy, Suggestion

W = TypeVar("W")
R = TypeVar("R")
Values = dict[str, Any]


class AskTellSearcher(Searcher, Generic[W, R]):
    """A searcher that makes one Tune trial of each piece of work of `source.ask()` and tells the source its result.

    to_config    returns the config of a trial; pieces of work that are open together must have different configs
    from_result  returns what to tell; its second argument is the trial's last result, None when the trial failed
    room         returns how many trials may run, whatever Tune would take; None for any number

    A pickle of the searcher does not contain the source, and such a copy hands out no work: resume by replay in a new
    Tuner.
    """

    def __init__(
        self,
        source: AskTell[W, R],
        to_config: Callable[[W], Values],
        from_result: Callable[[W, Values | None], R],
        metric: str | None = None,
        mode: str = "max",
        room: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(metric=metric, mode=mode)
        self._source: AskTell[W, R] | None = source
        self._to_config, self._from_result, self._room = to_config, from_result, room
        self._running: dict[str, Values] = {}
        self._works: dict[str, W] = {}  # of these trials

    def suggest(self, trial_id: str) -> Values | None:
        """Returns a config; None where there is nothing to begin, or no room; FINISHED when the source is done."""
        if self._source is None or self._source.done:
            return Searcher.FINISHED  # type: ignore[return-value]  # a text, whatever Ray's annotation says
        if self._room is not None and len(self._running) >= self._room():
            return None
        # `ask` also returns work whose trial is running; the config is what tells pieces of work apart.
        # Most of it is the very same object as before, and then needs no look at the configs of all others.
        same, running = set(map(id, self._works.values())), self._running.values()
        for work in self._source.ask():
            if id(work) not in same and (config := self._to_config(work)) not in running:
                self._running[trial_id], self._works[trial_id] = config, work
                return dict(config)
        return None

    def on_trial_complete(self, trial_id: str, result: Values | None = None, error: bool = False) -> None:
        """Tells the source. A trial with an unknown id is found by its config; work that is not open is ignored."""
        config = self._running.pop(trial_id, None)
        self._works.pop(trial_id, None)
        if self._source is None:
            return
        # Matched with the open work again: the source may have been told the result in another way meanwhile.
        for work in self._source.ask():
            config_of_work = self._to_config(work)
            if config_of_work == config if config is not None else _is_result_of(config_of_work, result or {}):
                self._source.tell([self._from_result(work, None if error else result)])
                return

    def fail_running(self) -> None:
        """Tells the source that all running work failed: after a Tuner broke off and before the next one starts."""
        for trial_id in list(self._running):
            self.on_trial_complete(trial_id, error=True)

    def save(self, checkpoint_path: str) -> None:
        """Writes a mark, without which Tune warns; the state is in the source's own records."""
        Path(checkpoint_path).write_text("resume by replay\n", encoding="utf-8")

    def restore(self, checkpoint_path: str) -> None:
        """Forgets what was running, so that all open work is handed out again."""
        self._running, self._works = {}, {}

    def __getstate__(self) -> Values:
        # A source may hold locks and database handles, and its callables may hold the source.
        return {
            "_metric": self._metric,
            "_mode": self._mode,
            "_source": None,
            "_running": {},
            "_works": {},
            "_room": None,
        }


def _is_result_of(config: Values, result: Values) -> bool:
    """Returns whether a trial's result is that of a config, which Tune puts into every result."""
    return bool(flatten_dict({"config": config}).items() <= result.items())


Searches = AskTellSearcher[Suggestion, Observation]


def strategy_searcher(strategy: Strategy, names: Sequence[str], metric: str, mode: str = "max") -> Searches:
    """Returns a searcher with one trial per suggestion and config {"number", a value for each of `names`}.

    `metric` is the name of the reported score. A trial that fails, or reports no finite number, is a failed
    observation. Mode "min" negates the scores.
    """
    sign = -1.0 if mode == "min" else 1.0

    def observe(work: Suggestion, result: Values | None) -> Observation:
        value: Any = (result or {}).get(metric)
        finite = isinstance(value, Real) and math.isfinite(value)
        return Observation(work.number, sign * float(value) if finite else None)

    def to_config(work: Suggestion) -> Values:
        return {"number": work.number, **dict(zip(names, work.point, strict=True))}

    return AskTellSearcher(strategy, to_config, observe, metric, mode)
