"""The registry of methods: their declarations, without torch."""

import difflib

from trainers.hyperparameters import OF_EVERY_METHOD, Hyperparameter
from trainers.methods.a_agem import A_AGEM
from trainers.methods.agem import AGEM
from trainers.methods.er import ER
from trainers.methods.ewc import EWC
from trainers.methods.gem import GEM
from trainers.methods.mas import MAS
from trainers.methods.penalty import Penalty
from trainers.methods.pi import PI
from trainers.methods.prognn import PROGNN
from trainers.methods.rules import Columns, Method, Mixing, Products, Projection
from trainers.methods.rwalk import RWALK
from trainers.methods.soft_agem import SOFT_AGEM
from trainers.methods.van import VAN

METHODS: dict[str, Method] = {
    "van": VAN,
    "ewc": EWC,
    "pi": PI,
    "mas": MAS,
    "rwalk": RWALK,
    "er": ER,
    "gem": GEM,
    "agem": AGEM,
    "a_agem": A_AGEM,
    "soft_agem": SOFT_AGEM,
    "prognn": PROGNN,
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


__all__ = ["METHODS", "Columns", "Method", "Mixing", "Penalty", "Products", "Projection", "hyperparameters", "method"]
