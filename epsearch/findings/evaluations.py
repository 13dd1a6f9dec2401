"""Earlier evaluations on the same data, from the ledger and from this user's log of evaluations."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from epsearch.ledger.evaluation_log import NOT_A_CHOICE
from epsearch.loop.search import SearchLoop
from results.labels import settings_text
from results.ledger.store import Store
from results.search import EvaluatedChoice
from trainers.methods import method as declared
from trainers.streams.images.split import ReoccurringStream, SplitStream

BY_CLASSES = (SplitStream.kind, ReoccurringStream.kind)  # streams whose tasks have classes drawn by seed
# Parts of a stream's description that do not change its data: evaluations that differ in these share data.
PRESENTATION = {
    "examples_per_task": "examples per task",
    "at_most": "examples per task",
    "network": "network",
    "network_parts": "network's source",
    "pretrained": "weights",
}


class DataRange(NamedTuple):
    """Range of the data of an evaluation."""

    data: str
    """A text that identifies the full data set; equal for equal data."""
    unit: str
    """"tasks", or "classes" of images."""
    first: int
    """From 0."""
    end: float
    """Exclusive; infinite if a seed may draw any unit from the first on."""

    def overlap(self, other: "DataRange") -> tuple[float, str] | None:
        """Returns the size of the overlap, and its units in words if not all of these; None for no overlap."""
        first, end = max(self.first, other.first), min(self.end, other.end)
        if (self.data, self.unit) != (other.data, other.unit) or first >= end:
            return None
        if (first, end) == (self.first, self.end):
            return math.inf, ""
        if end == math.inf:
            return -first, f"{self.unit} from {first} on"
        return end - first, f"{self.unit} {first} to {end - 1:g}" if end - first > 1 else f"task {first}"


Choice = tuple[str, str]
"""(method and hyperparameters, presentation of the data) of a run, as texts that are equal for equal choices."""


def evaluations(loop: SearchLoop, store: Store) -> tuple[EvaluatedChoice, ...]:
    """Returns the choices of this method that were evaluated on data that this evaluation also uses, oldest first.

    Data are the tasks of a stream, or the classes that its tasks draw from, in any number, with any number of examples.
    Choices differ in a hyperparameter or in the presentation of the data, not in the seed. A baseline is no choice, as
    nothing was selected for it. In a search of ε-SOFT-GEM, A-GEM is ε = 0, but also the baseline of every search for ε:
    it counts only if this study chose it. Empty before there is a chosen point.
    """
    if (best := loop.best) is None:
        return ()
    both = [loop.evaluated_content(point) for point in (best.point, *loop.study.compared)]
    mine, *baselines = json.loads(json.dumps(both))  # tuples become lists, as in the ledger
    method, rows = loop.study.method, dict[Choice, tuple[float, EvaluatedChoice]]()
    excluded = {_choice(baseline)[0] for baseline in baselines}
    for content, created, elsewhere in _every(loop, store):
        overlap = _data_range(mine).overlap(_data_range(content))
        if overlap is None or content.get("method") not in (method, declared(method).at_zero or method):
            continue
        choice = _choice(content)
        is_mine = choice == _choice(mine)
        if is_mine or (content["method"] == method and choice[0] not in excluded):
            size, units = overlap
            row = EvaluatedChoice(_text(content, mine, loop), created, is_mine, "" if is_mine else units, elsewhere)
            largest, first = rows.get(choice, (size, row))
            # The first time counts: with other seeds, or on more data, a choice stays the same.
            rows[choice] = (max(largest, size), first._replace(part=row.part if size > largest else first.part))
    every = (row for _, row in rows.values())
    return tuple(sorted(every, key=lambda row: (row.when, row.mine)))  # of the same second, this study's is the last


def _every(loop: SearchLoop, store: Store) -> Iterator[tuple[dict[str, Any], str, bool]]:
    """Yields content, time, and whether it is missing in the ledger, of every evaluation."""
    stored = store.described("eval")
    yield from ((content, created, False) for content, created in stored)
    choices = {_choice(content) for content, _ in stored}
    yield from ((content, when, _choice(content) not in choices) for content, when in loop.evaluation_log.read())


def _data_range(content: Mapping[str, Any]) -> DataRange:
    """Returns the data that a run was evaluated on."""
    stream = content["stream"]
    first, end = stream["tasks"]
    if stream.get("kind") in BY_CLASSES:
        # The network, and the number of images or classes per task, do not change the images.
        return DataRange(str(stream["images"]), "classes", first * stream["classes_per_task"], math.inf)
    data = {name: value for name, value in stream.items() if name not in (*PRESENTATION, "tasks")}
    return DataRange(json.dumps(data, sort_keys=True), "tasks", first, end)


def _choice(content: Mapping[str, Any]) -> Choice:
    chosen = {name: value for name, value in content.items() if name not in (*NOT_A_CHOICE, "stream")}
    presentation = {name: value for name, value in content["stream"].items() if name != "tasks"}
    return json.dumps(chosen, sort_keys=True), json.dumps(presentation, sort_keys=True)


def _flat(content: Mapping[str, Any], at_zero: str) -> dict[str, Any]:
    """Returns the hyperparameters by their stored names, with ε and λ if the method has them."""
    epsilon = 0.0 if content["method"] == at_zero else content["epsilon"]
    flat = {"epsilon": epsilon, "strength": content.get("strength")} | content["config"]
    return {name: value for name, value in flat.items() if value is not None}


def _text(content: Mapping[str, Any], mine: Mapping[str, Any], loop: SearchLoop) -> str:
    """Returns the searched values of a choice, and whatever else differs from this study."""
    theirs, ours = (_flat(run, declared(loop.study.method).at_zero) for run in (content, mine))
    method, values = declared(loop.study.method), vars(loop.study.learner(loop.study.example, 0).hyperparameters)
    declarations = {hyperparameter.name: hyperparameter for hyperparameter in method.declarations(values)}
    searched = {declarations[name].key for name in loop.study.space.names}
    short = {hyperparameter.key: hyperparameter.short for hyperparameter in declarations.values()}
    differing = {name: value for name, value in theirs.items() if name in searched or value != ours.get(name)}
    named = {short.get(name, name): value for name, value in differing.items()}
    return settings_text(named | _presentation(content["stream"], mine["stream"]))


def _presentation(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the presentation of another study's data where it differs from ours."""
    titles = PRESENTATION | {"classes_per_task": "classes per task"}
    differing = (name for name in titles if theirs.get(name) != ours.get(name))
    return {titles[name]: "all" if theirs.get(name) is None else theirs[name] for name in differing}
