"""The registry of methods: their declarations, without torch."""

import difflib

from trainers.hyperparameters import OF_EVERY_METHOD, Hyperparameter
from trainers.methods import a_agem, agem, er, ewc, gem, mas, pi, prognn, rwalk, soft_agem, van
from trainers.methods.penalty import Penalty
from trainers.methods.rules import PER_TASK, RESERVOIR, Columns, Method, Mixing, Products, Projection

METHODS: dict[str, Method] = {
    "van": van.VAN,
    "ewc": ewc.EWC,
    "pi": pi.PI,
    "mas": mas.MAS,
    "rwalk": rwalk.RWALK,
    "er": er.ER,
    "gem": gem.GEM,
    "agem": agem.AGEM,
    "a_agem": a_agem.A_AGEM,
    "soft_agem": soft_agem.SOFT_AGEM,
    "prognn": prognn.PROGNN,
}


def method(name: str) -> Method:
    """The method of a name. Raises ValueError, in one line, where there is none."""
    if name not in METHODS:
        near = difflib.get_close_matches(name, METHODS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"no method {name!r}; known: {', '.join(METHODS)}{hint}")
    return METHODS[name]


def hyperparameters() -> dict[str, Hyperparameter]:
    """Every hyperparameter of any method, by name."""
    return {one.name: one for one in (*OF_EVERY_METHOD, *(own for method in METHODS.values() for own in method.own))}


__all__ = [
    "METHODS",
    "PER_TASK",
    "RESERVOIR",
    "Columns",
    "Method",
    "Mixing",
    "Penalty",
    "Products",
    "Projection",
    "hyperparameters",
    "method",
]
