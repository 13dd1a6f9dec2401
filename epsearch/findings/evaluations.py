"""Earlier evaluations on the same data, from the ledger and from this user's log of evaluations."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from epsearch.ledger.evaluation_log import NOT_A_CHOICE
from epsearch.loop.search import SearchLoop
from results.labels import settings_text
from results.ledger.record import ORDER
from results.ledger.store import Store
from results.points import LEFT_OUT
from results.search import EvaluatedChoice
from trainers.methods import method as declared

# Parts of a stream's description that change neither its images nor their number: they make other choices, not data.
PRESENTATION = {"network": "network", "network_parts": "network's source", "pretrained": "weights"}

Choice = tuple[str, str]
"""(method and hyperparameters, presentation of the data) of a run, as texts that are equal for equal choices."""


def evaluations(loop: SearchLoop, store: Store) -> tuple[EvaluatedChoice, ...]:
    """Returns the choices of this method that were evaluated on the same images, tasks and sizes, oldest first.

    Choices differ in a hyperparameter or in the network, not in the seed. A baseline is no choice, as
    nothing was selected for it. In a search of ε-SOFT-GEM, A-GEM is ε = 0, but also the baseline of every search for ε:
    it counts only if this study chose it. Empty before there is a chosen point.
    """
    if (best := loop.best) is None:
        return ()
    both = [loop.evaluated_content(point) for point in (best.point, *loop.study.compared)]
    mine, *baselines = json.loads(json.dumps(both))  # tuples become lists, as in the ledger
    method, rows = loop.study.method, dict[Choice, EvaluatedChoice]()
    excluded = {_choice(baseline)[0] for baseline in baselines}
    for content, created, elsewhere in _every(loop, store):
        if _data(mine) != _data(content) or content.get("method") not in (method, declared(method).at_zero or method):
            continue
        choice = _choice(content)
        is_mine = choice == _choice(mine)
        if is_mine or (content["method"] == method and choice[0] not in excluded):
            # The first time counts: with other seeds a choice stays the same.
            rows.setdefault(choice, EvaluatedChoice(_text(content, mine, loop), created, is_mine, elsewhere))
    # Of the same second, this study's is the last.
    return tuple(sorted(rows.values(), key=lambda row: (row.when, row.mine)))


def _every(loop: SearchLoop, store: Store) -> Iterator[tuple[dict[str, Any], str, bool]]:
    """Yields content, time, and whether it is missing in the ledger, of every evaluation."""
    stored = store.contents("eval")
    yield from ((content, created, False) for content, created in stored)
    choices = {_choice(content) for content, _ in stored}
    yield from ((content, when, _choice(content) not in choices) for content, when in loop.evaluation_log.read())


def _data(content: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what says which images a run was evaluated on: its stream, with tasks and sizes."""
    return {name: value for name, value in content["stream"].items() if name not in (*PRESENTATION, ORDER)}


def _choice(content: Mapping[str, Any]) -> Choice:
    chosen = {name: value for name, value in content.items() if name not in (*NOT_A_CHOICE, "stream")}
    presentation = {name: value for name, value in content["stream"].items() if name not in ("tasks", ORDER)}
    return json.dumps(chosen, sort_keys=True), json.dumps(presentation, sort_keys=True)


def _flat(content: Mapping[str, Any], at_zero: str) -> dict[str, Any]:
    """Returns the hyperparameters by their stored names, with ε and λ if the method has them."""
    epsilon = 0.0 if content["method"] == at_zero else content["epsilon"]
    flat = {"epsilon": epsilon, "strength": content.get("strength")} | LEFT_OUT | content["config"]
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
    differing = (name for name in PRESENTATION if theirs.get(name) != ours.get(name))
    return {PRESENTATION[name]: "none" if theirs.get(name) is None else theirs[name] for name in differing}
