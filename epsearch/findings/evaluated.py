"""How often the data of an evaluation have been looked at, by the ledger and by this user's file of looks."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from epsearch.ledger.evaluation_log import NOT_A_CHOICE
from epsearch.loop.search import SearchLoop
from results.labels import settings_text
from results.ledger.store import Store
from results.search import Evaluated
from trainers.methods import method as declared
from trainers.streams.images.split import ReoccurringStream, SplitStream

BY_CLASSES = (SplitStream.kind, ReoccurringStream.kind)  # streams whose tasks are cut from classes, drawn by seed
# Of a stream's description: how its data are shown, and to what. Two evaluations that differ in these share data.
SHOWN = {
    "examples_per_task": "examples per task",
    "at_most": "examples per task",
    "network": "network",
    "network_parts": "network's source",
    "pretrained": "weights",
}


class Part(NamedTuple):
    """Which of the data an evaluation shows."""

    data: str
    """What they are cut from, the same text for the same data."""
    unit: str
    """Of what: "tasks", or "classes" of images."""
    first: int
    """Its number, from 0."""
    end: float
    """Behind the last one; infinite where a seed may draw any from the first on."""

    def shared(self, other: "Part") -> tuple[float, str] | None:
        """(how many of these the other shows too, which ones where not all of them); None for none."""
        first, end = max(self.first, other.first), min(self.end, other.end)
        if (self.data, self.unit) != (other.data, other.unit) or first >= end:
            return None
        if (first, end) == (self.first, self.end):
            return math.inf, ""
        if end == math.inf:
            return -first, f"{self.unit} from {first} on"
        return end - first, f"{self.unit} {first} to {end - 1:g}" if end - first > 1 else f"task {first}"


class _Choice(NamedTuple):
    """What of a run's content was chosen, as texts that are the same for the same choice."""

    method: str
    """Method and hyperparameters."""
    shown: str
    """How the data are shown."""


def looks(loop: SearchLoop, store: Store) -> tuple[Evaluated, ...]:
    """Every choice of this method evaluated on any of this evaluation's data, by whatever command, oldest first.

    What counts as data are a stream's tasks, and classes where tasks are cut from classes: however many of them an
    evaluation shows, and however many examples. Choices differ in any hyperparameter, or in how the data are shown, not
    in the seed. A baseline is none: nothing was selected for it. Where ε-SOFT-GEM is searched, A-GEM is one of its
    choices, ε = 0, and the baseline of every search for ε: it is none either, unless this study chose it. None before
    there is a chosen point.
    """
    if (best := loop.best) is None:
        return ()
    both = [loop.evaluated_content(point) for point in (best.point, *loop.study.compared)]
    mine, *baseline = json.loads(json.dumps(both))  # tuples as the ledger has them
    method, found = loop.study.method, dict[_Choice, tuple[float, Evaluated]]()
    never = {_choice(one).method for one in baseline}
    for content, created, elsewhere in _evaluated(loop, store):
        there = _part(mine).shared(_part(content))
        if there is None or content.get("method") not in (method, declared(method).at_zero or method):
            continue
        choice = _choice(content)
        is_mine = choice == _choice(mine)
        if is_mine or (content["method"] == method and choice.method not in never):
            how_many, which = there
            look = Evaluated(_text(content, mine, loop), created, is_mine, "" if is_mine else which, elsewhere)
            most, first = found.get(choice, (how_many, look))
            # The first time counts: with other seeds, or on more of the data, a choice is the same one.
            found[choice] = (max(most, how_many), first._replace(part=look.part if how_many > most else first.part))
    every = (look for _, look in found.values())
    return tuple(sorted(every, key=lambda look: (look.when, look.mine)))  # of the same second, this study's is the last


def _evaluated(loop: SearchLoop, store: Store) -> Iterator[tuple[dict[str, Any], str, bool]]:
    """(content, when, whether the ledger does not have it) of all that is known to have been evaluated."""
    here = store.described("eval")
    yield from ((content, created, False) for content, created in here)
    known = {_choice(content) for content, _ in here}
    yield from ((content, when, _choice(content) not in known) for content, when in loop.evaluation_log.read())


def _part(content: Mapping[str, Any]) -> Part:
    """Of the data that a run was evaluated on."""
    stream = content["stream"]
    first, end = stream["tasks"]
    if stream.get("kind") in BY_CLASSES:
        # The network, how many images and how many classes a task shows change nothing about the images.
        return Part(str(stream["images"]), "classes", first * stream["classes_per_task"], math.inf)
    data = {name: value for name, value in stream.items() if name not in (*SHOWN, "tasks")}
    return Part(json.dumps(data, sort_keys=True), "tasks", first, end)


def _choice(content: Mapping[str, Any]) -> _Choice:
    chosen = {name: value for name, value in content.items() if name not in (*NOT_A_CHOICE, "stream")}
    shown = {name: value for name, value in content["stream"].items() if name != "tasks"}
    return _Choice(*(json.dumps(one, sort_keys=True) for one in (chosen, shown)))


def _flat(content: Mapping[str, Any], at_zero: str) -> dict[str, Any]:
    """Hyperparameters by their recorded names, ε and λ among them; without those that the method does not have."""
    epsilon = 0.0 if content["method"] == at_zero else content["epsilon"]
    flat = {"epsilon": epsilon, "strength": content.get("strength")} | content["config"]
    return {name: value for name, value in flat.items() if value is not None}


def _text(content: Mapping[str, Any], mine: Mapping[str, Any], loop: SearchLoop) -> str:
    """What is searched, and whatever else is not as in this study."""
    there, here = (_flat(one, declared(loop.study.method).at_zero) for one in (content, mine))
    method, values = declared(loop.study.method), vars(loop.study.learner(loop.study.example, 0).hyperparameters)
    known = {one.name: one for one in method.declarations(values)}
    searched = {known[name].key for name in loop.study.space.names}
    short = {one.key: one.short for one in known.values()}
    shown = {name: value for name, value in there.items() if name in searched or value != here.get(name)}
    named = {short.get(name, name): value for name, value in shown.items()}
    return settings_text(named | _shown(content["stream"], mine["stream"]))


def _shown(there: Mapping[str, Any], here: Mapping[str, Any]) -> dict[str, Any]:
    """How data were shown, where that is not as in this study."""
    known = SHOWN | {"classes_per_task": "classes per task"}
    told = {name: "all" if there.get(name) is None else there[name] for name in known if name in {**there, **here}}
    return {known[name]: value for name, value in told.items() if there.get(name) != here.get(name)}
