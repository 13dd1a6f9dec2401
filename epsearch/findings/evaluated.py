"""How often the evaluation stream has been looked at: every choice that was ever trained on it is in the ledger."""

import json
from collections.abc import Mapping
from typing import Any

from epsearch.loop.search import SearchLoop
from results.labels import settings_text
from results.ledger.store import Store
from results.search import Evaluated
from trainers.methods import method as declared

NOT_A_CHOICE = ("seed", "numeric_path", "transfer", "protocol", "stream")


def looks(loop: SearchLoop, store: Store) -> tuple[Evaluated, ...]:
    """Every choice of this method evaluated on this very stream, by whatever command, oldest first.

    Choices differ in any hyperparameter, not in the seed. A baseline is none: nothing was selected for it. Where
    ε-SOFT-GEM is searched, A-GEM is one of its choices, ε = 0, and the baseline of every search for ε: it is none
    either, unless this study chose it. None before there is a chosen point.
    """
    if (best := loop.best) is None:
        return ()
    both = [loop.evaluated_content(point) for point in (best.point, *loop.study.compared)]
    mine, *baseline = json.loads(json.dumps(both))  # tuples as the ledger has them
    method, choices = loop.study.method, dict[str, Evaluated]()
    for content, created in store.described("eval"):
        same_stream = content.get("stream") == mine["stream"]
        if same_stream and content.get("method") in (method, declared(method).at_zero or method):
            choice, is_mine = _choice(content), _choice(content) == _choice(mine)
            if is_mine or (content["method"] == method and choice not in map(_choice, baseline)):
                # The first time counts: with other seeds a choice is the same one.
                choices.setdefault(choice, Evaluated(_text(content, mine, loop), created, is_mine))
    return tuple(choices.values())


def _choice(content: Mapping[str, Any]) -> str:
    """What of a run's content was chosen, as text that is the same for the same choice."""
    return json.dumps({name: value for name, value in content.items() if name not in NOT_A_CHOICE}, sort_keys=True)


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
    return settings_text({short.get(name, name): value for name, value in shown.items()})
