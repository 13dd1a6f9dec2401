"""How often the evaluation stream has been looked at: every choice that was ever trained on it is in the ledger."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from epsearch.loop.search import SearchLoop
from results.labels import settings_text
from results.ledger.store import Store
from results.search import Evaluated
from trainers.methods import METHODS, hyperparameters

NOT_A_CHOICE = ("seed", "numeric_path", "transfer", "protocol", "stream")


def looks(loop: SearchLoop, store: Store) -> tuple[Evaluated, ...]:
    """Every choice of this method evaluated on this very stream, by whatever command, oldest first.

    Choices differ in any hyperparameter, not in the seed. A baseline is none: nothing was selected for it. Where
    ε-SOFT-GEM is searched, A-GEM is one of its choices, ε = 0, and the baseline of every search for ε: it is none
    either, unless this study chose it.
    """
    mine, baseline = (json.loads(json.dumps(content)) for content in loop.contents())  # tuples as the ledger has them
    if mine is None:
        return ()
    method = loop.study.method
    methods = tuple(name for name in (method, METHODS[method].at_zero) if name)
    found: dict[str, tuple[dict[str, Any], str]] = {}
    for content, created in store.described("eval"):
        same = content.get("stream") == mine["stream"] and content.get("method") in methods
        if same and (_choice(content) == _choice(mine) or not _is_baseline(content, baseline, methods)):
            found.setdefault(_choice(content), (content, created))
    return tuple(
        Evaluated(_text(content, mine, loop), created, choice == _choice(mine))
        for choice, (content, created) in found.items()
    )


def _choice(content: Mapping[str, Any]) -> str:
    return json.dumps({name: value for name, value in content.items() if name not in NOT_A_CHOICE}, sort_keys=True)


def _is_baseline(content: Mapping[str, Any], baseline: Mapping[str, Any], methods: Sequence[str]) -> bool:
    return content.get("method") in methods[1:] or _choice(content) == _choice(baseline)


def _flat(content: Mapping[str, Any], at_zero: str) -> dict[str, Any]:
    epsilon = 0.0 if content["method"] == at_zero else content["epsilon"]
    flat = {**content["config"], "epsilon": epsilon, "strength": content.get("strength")}
    return {name: value for name, value in flat.items() if value is not None}


def _text(content: Mapping[str, Any], mine: Mapping[str, Any], loop: SearchLoop) -> str:
    """What is searched, and whatever else is not as in this study."""
    there, here = (_flat(one, METHODS[loop.study.method].at_zero) for one in (content, mine))
    known = hyperparameters()
    searched = {known[name].key for name in loop.study.space.names}
    short = {one.key: one.short for one in known.values()}
    shown = {name: value for name, value in there.items() if name in searched or value != here.get(name)}
    return settings_text({short.get(name, name): value for name, value in shown.items()})
