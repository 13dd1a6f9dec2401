"""Kinds of plug-ins: the type of their attribute, and its registration."""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, NamedTuple

from epsearch.failures.errors import brief
from trainers.plugins.calls import call_fault
from trainers.plugins.source import Source

Plug = Callable[[str, Any, Source], bool]


class Kind(NamedTuple):
    """A kind of plug-in."""

    option: str
    """The option that names a plug-in."""
    group: str
    """Group of entry points of installed packages."""
    what: str
    """Required type of the attribute, in words."""
    ours: Callable[[], Collection[str]]
    """Names of epsearch's own, which no package can take."""
    plug: Plug
    """plug(reference, attribute, files): registers it in this process; False for another type. Raises ValueError for an
    invalid one.
    """


def _method(name: str, made: Any, source: Source) -> bool:
    from trainers.methods import plug
    from trainers.methods.rules import Method, Mixing

    if not isinstance(made, Method):
        return False
    if isinstance(made.rule, Mixing):
        made = replace(made, rule=made.rule._replace(mix=_check_mix(name, made.rule.mix)))
    plug(name, made)
    return True


def _check_mix(name: str, mix: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method's `mix` with a check of what it returns. Raises ValueError where it takes other arguments."""
    from trainers.methods.rules import Mix
    from trainers.plugins.calls import ForeignError

    if fault := call_fault(mix, ("products", "values")):
        raise ValueError(f"mix of method {name!r} {fault}")

    def call(products: Any, values: Any) -> Any:
        mixed = mix(products, values)
        if not isinstance(mixed, Mix):
            raise ForeignError(f"mix of method {name!r} must return a Mix, as choose does; got {brief(mixed)}")
        return mixed

    return call


def _strategy(name: str, made: Any, source: Source) -> bool:
    from epsearch.plugins.guards import guard_strategy
    from search_spaces.strategies import PLUGGED, StrategyKind

    if isinstance(made, StrategyKind):
        PLUGGED[name] = guard_strategy(name, made, source)
    return isinstance(made, StrategyKind)


def _network(name: str, made: Any, source: Source) -> bool:
    from trainers.cohort import plug

    if callable(made):
        plug(name, made, source)
    return callable(made)


def _metric(name: str, made: Any, source: Source) -> bool:
    from results.metrics import Metric

    return isinstance(made, Metric)


def _figure(name: str, made: Any, source: Source) -> bool:
    from results.figures.plugins import PARTS

    return all(callable(getattr(made, part, None)) for part in PARTS)


def _protocol(name: str, made: Any, source: Source) -> bool:
    from epsearch.plugins.guards import guard_protocol
    from epsearch.protocols.protocol import Protocol
    from epsearch.protocols.registry import PLUGGED

    if isinstance(made, Protocol):
        PLUGGED[name] = guard_protocol(name, made, source)
    return isinstance(made, Protocol)


def _objective(name: str, made: Any, source: Source) -> bool:
    from results.objectives import PLUGGED
    from trainers.plugins.calls import blamed, number

    def score(accuracies: Any) -> float:
        with blamed(f"objective {name} failed with", source):
            return number(made(accuracies), f"objective {name}", finite=True)

    if callable(made):
        PLUGGED[name] = score
    return callable(made)


def _callable(name: str, made: Any, source: Source) -> bool:
    return callable(made)


def _methods() -> Collection[str]:
    from trainers.methods import METHODS

    return METHODS


def _networks() -> Collection[str]:
    from trainers.cohort import NETWORKS

    return NETWORKS


def _streams() -> Collection[str]:
    from search_spaces.published.definition import definitions

    return definitions()


def _strategies() -> Collection[str]:
    from search_spaces.strategies import STRATEGIES

    return STRATEGIES


def _protocols() -> Collection[str]:
    from epsearch.protocols.registry import PROTOCOLS

    return PROTOCOLS


def _objectives() -> Collection[str]:
    from results.labels import OBJECTIVES

    return OBJECTIVES


def _metrics() -> Collection[str]:
    from results.continual_evaluation import BY_NAME

    return BY_NAME


def _none() -> Collection[str]:
    return ()


def _kind(option: str, kind: str, what: str, ours: Callable[[], Collection[str]], plug: Plug) -> Kind:
    return Kind(option, f"epsearch.{kind}", what, ours, plug)


KINDS: dict[str, Kind] = {
    "method": _kind("method", "methods", "a Method of trainers.methods.rules", _methods, _method),
    "network": _kind("network", "networks", "a function (inputs, outputs) -> torch.nn.Module", _networks, _network),
    "stream": _kind("dataset", "streams", "a function (tasks, examples_per_task) -> stream", _streams, _callable),
    "strategy": _kind("strategy", "strategies", "a StrategyKind of search_spaces.strategies", _strategies, _strategy),
    "protocol": _kind("protocols", "protocols", "a Protocol of epsearch.protocols.protocol", _protocols, _protocol),
    "objective": _kind("objective", "objectives", "a function (accuracies) -> number", _objectives, _objective),
    "metric": _kind("add_metrics", "metrics", "a Metric of results.metrics", _metrics, _metric),
    "figure": _kind("add_figures", "figures", "an object with numbers, draw, caption and tables", _none, _figure),
    "trainer": _kind("trainer", "trainers", "a function (values, stream, seed, report)", _none, _callable),
}

# Options besides `dataset` that name code; those of `compare` name several methods.
NAMING = ("methods", "settings", "protocol", *(kind.option for kind in KINDS.values() if kind.option != "dataset"))
