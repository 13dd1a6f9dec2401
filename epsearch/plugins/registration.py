"""Registers plug-in metrics, figures and objectives while results are displayed."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from epsearch.failures.errors import PluginError, UsageError, as_usage_error
from epsearch.plugins.kinds import KINDS
from epsearch.plugins.loading import LoadedPlugin, load_plugin
from epsearch.plugins.names import column
from results.labels import A_T, is_objective, objective_label
from results.ledger.record import JOINT
from trainers.plugins.calls import ForeignError, blamed, number

if TYPE_CHECKING:
    from results.metrics import Metric

METRICS, FIGURES, OBJECTIVE = (KINDS[kind].option for kind in ("metric", "figure", "objective"))


@contextmanager
def add_plugins(options: Mapping[str, Any]) -> Iterator[None]:
    """Adds a study's plug-in metrics, figures and objective to tables and pages, as a context manager.

    options: of the study, by name. Raises UsageError, also for errors of plug-in code within the context.
    """
    objective = options.get(OBJECTIVE) or A_T
    beside_joint = JOINT in (options.get("methods") or ())
    if not (options.get(METRICS) or options.get(FIGURES) or objective != A_T or beside_joint):
        yield  # without imports
        return
    from results import objectives
    from results.figures import plugins as figures
    from results.metrics import BESIDE_JOINT
    from results.metrics import METRICS as KNOWN

    maximised, others = objective_label(objective), _load_plugins("metric", options)
    # One that is maximised has its column anyway.
    metrics = {
        name: _metric(name, plugin) for name, plugin in others.items() if plugin is not None or name != maximised
    }
    drawn = {
        name: _figure(plugin, figures.PARTS) for name, plugin in _load_plugins("figure", options).items() if plugin
    }
    # Not those of an outer context, which may be the same: exporting a study for a paper writes its pages, too.
    if taken := [name for name in metrics if name in KNOWN.own or name == maximised]:
        raise UsageError(f"metric {taken[0]!r} is epsearch's; give yours another name")
    if objective != A_T:
        if not is_objective(objective):
            load_plugin("objective", objective)
        metrics = {maximised: objectives.metric(objective)} | metrics
    metrics = (BESIDE_JOINT if beside_joint else {}) | metrics
    with as_usage_error(ForeignError, by=PluginError), KNOWN.with_others(metrics), figures.with_others(drawn):
        yield


def set_objective(options: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Does the same with the objective alone, which several studies have in common. Raises UsageError."""
    return add_plugins({OBJECTIVE: options.get(OBJECTIVE)})


def _load_plugins(kind: str, options: Mapping[str, Any]) -> dict[str, LoadedPlugin | None]:
    """Returns the plug-ins of a kind by their names in tables; None for those of epsearch's own."""
    references: dict[str, str] = {}
    for reference in options.get(KINDS[kind].option) or ():
        name = column(reference)
        if name in references:
            raise UsageError(f"{kind}s must have different names, got {references[name]} and {reference}")
        references[name] = reference
    return {name: load_plugin(kind, reference) if ":" in reference else None for name, reference in references.items()}


def _metric(name: str, plugin: LoadedPlugin | None) -> "Metric":
    """Returns a metric of epsearch's own, or that of a plug-in, with errors that name it."""
    from dataclasses import replace

    from results.continual_evaluation import OPTIONAL

    if plugin is None:
        return OPTIONAL[name]

    def measure(record: Any) -> Any:
        with blamed(f"metric {plugin.reference} failed with", plugin.source):
            return number(plugin.made.measure(record), f"metric {plugin.reference}")

    return replace(plugin.made, measure=measure)  # type: ignore[no-any-return]


def _figure(plugin: LoadedPlugin, parts: Iterable[str]) -> SimpleNamespace:
    """Returns the figure, with errors that name it."""
    from plotly.basedatatypes import BaseFigure  # late: most studies have no figures of others

    # What pages do with the numbers is the figure's own affair, so they may be anything.
    required = {
        "draw": (BaseFigure, "a Plotly figure"),
        "caption": (str, "text"),
        "tables": (Mapping, "tables by name"),
    }

    def wrap(part: str) -> Callable[..., Any]:
        what = f"{part} of figure {plugin.reference}"
        kind, words = required.get(part, (object, ""))

        def call(*arguments: Any) -> Any:
            with blamed(f"{what} failed with", plugin.source):
                made = getattr(plugin.made, part)(*arguments)
            if not isinstance(made, kind):
                raise ForeignError(f"{what} must return {words}, got a {type(made).__name__}")
            return made

        return call

    return SimpleNamespace(**{part: wrap(part) for part in parts})
