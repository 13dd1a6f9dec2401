"""The registry of methods: declarations, without torch."""

from trainers.hyperparameters import OF_EVERY_METHOD, Hyperparameter, Hyperparameters
from trainers.methods import (
    a_agem,
    agem,
    agem_r,
    der,
    er,
    er_ace,
    er_agem,
    ewc,
    gem,
    gpm,
    lwf,
    mas,
    mega,
    pi,
    prognn,
    reference_rows,
    rwalk,
    si,
    soft_agem,
    van,
)
from trainers.methods.losses import Losses
from trainers.methods.penalty import Penalty
from trainers.methods.rules import PER_TASK, RESERVOIR, Columns, Foreign, Method, Mixing, Products, Projection
from trainers.methods.subspaces import Subspaces
from trainers.spelling import unknown

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
    "agem_r": agem_r.AGEM_R,
    "er_agem": er_agem.ER_AGEM,
    "mega1": mega.MEGA_I,
    "mega2": mega.MEGA_II,
    "si": si.SI,
    "der": der.DER,
    "derpp": der.DERPP,
    "er_ace": er_ace.ER_ACE,
    "lwf": lwf.LWF,
    "gpm": gpm.GPM,
    "joint": reference_rows.JOINT_TRAINING,
    "iid": reference_rows.IID_TRAINING,
}


PLUGGED: dict[str, Method] = {}
"""Methods of others, by module:attribute, which this process has loaded."""


def method(name: str) -> Method:
    """Returns the method of a name, ours or plugged. Raises ValueError, in one line, where there is none."""
    if name in PLUGGED:
        return PLUGGED[name]
    if name not in METHODS:
        raise ValueError(unknown("method", name, METHODS))
    return METHODS[name]


def plug(name: str, method: Method) -> None:
    """Makes a method of others known to this process. Raises ValueError where a hyperparameter is ours, and another.

    Those that it shares with our methods are options of every study; its own ones are known by its name alone.
    """
    ours = {} if method.foreign else hyperparameters()
    for hyperparameter in method.own:
        if ours.get(hyperparameter.name, hyperparameter) != hyperparameter:
            raise ValueError(
                f"method {name!r} declares {hyperparameter.name!r} otherwise than epsearch does; import that "
                "declaration from trainers.methods.rules, or give yours another name"
            )
    PLUGGED[name] = method


def hyperparameters() -> dict[str, Hyperparameter]:
    """Returns every hyperparameter of any built-in method, by name: those that are options."""
    return {
        hyperparameter.name: hyperparameter
        for hyperparameter in (
            *OF_EVERY_METHOD,
            *(hyperparameter for method in METHODS.values() for hyperparameter in method.own),
        )
    }


def optimizer_fault(method: Method, values: Hyperparameters) -> str:
    """Returns the reason why a method cannot have these values of an optimizer, in one line; "" where it can."""
    if values.optimizer == "sgd":
        return ""
    if values.momentum:
        return f"momentum is for optimizer sgd, as adam has its own; got momentum {values.momentum:g} with adam"
    if values.weight_decay and isinstance(method.rule, Columns):
        # Adam's step is not linear in the gradient, and matrices that are stored as a sum decay each by itself.
        return f"{method.title} has no weight-decay with optimizer adam, got {values.weight_decay:g}"
    return ""


def own_hyperparameters(name: str) -> dict[str, Hyperparameter]:
    """Returns a method's hyperparameters that are not options, by name: none if it is built in, all for a trainer."""
    declared = method(name)
    ours = {} if declared.foreign else hyperparameters()
    return {hyperparameter.name: hyperparameter for hyperparameter in declared.own if hyperparameter.name not in ours}


__all__ = [
    "METHODS",
    "PER_TASK",
    "PLUGGED",
    "RESERVOIR",
    "Columns",
    "Foreign",
    "Losses",
    "Method",
    "Mixing",
    "Penalty",
    "Products",
    "Projection",
    "Subspaces",
    "hyperparameters",
    "method",
    "optimizer_fault",
    "own_hyperparameters",
    "plug",
]
