"""Metrics and figures of others, known while the results of a study that names them are shown."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from epsearch.failures.errors import CodeOfOthers, UsageError, refused
from epsearch.plugins.kinds import KINDS
from epsearch.plugins.loading import Loaded, loaded
from results.labels import A_T, is_objective, objective_label
from trainers.plugins.calls import ForeignError, blamed

if TYPE_CHECKING:
    from results.metrics import Metric

METRICS, FIGURES, OBJECTIVE = (KINDS[kind].option for kind in ("metric", "figure", "objective"))


@contextmanager
def added(options: Mapping[str, Any]) -> Iterator[None]:
    """Within it, tables and pages have what a study adds to ours.

    options: of the study, by name. Raises UsageError, also for what the code of others raises meanwhile.
    """
    objective = options.get(OBJECTIVE) or A_T
    if not (options.get(METRICS) or options.get(FIGURES) or objective != A_T):
        yield  # nothing is imported that is not needed
        return
    from results import objectives
    from results.figures import added as figures
    from results.metrics import METRICS as KNOWN

    metrics = {name: _metric(reference, one) for name, (reference, one) in _loaded("metric", options).items()}
    drawn = {name: _Figure(reference, one) for name, (reference, one) in _loaded("figure", options).items()}
    if taken := [name for name in metrics if name in KNOWN or name == objective_label(objective)]:
        raise UsageError(f"metric {taken[0]!r} is epsearch's; give yours another name")
    if objective != A_T:
        if not is_objective(objective):
            loaded("objective", objective)
        metrics = {objective_label(objective): objectives.metric(objective)} | metrics
    with refused(ForeignError, by=CodeOfOthers), KNOWN.with_others(metrics), figures.with_others(drawn):
        yield


def maximising(options: Mapping[str, Any]) -> AbstractContextManager[None]:
    """The same with the objective alone, which several studies have in common. Raises UsageError."""
    return added({OBJECTIVE: options.get(OBJECTIVE)})


def _loaded(kind: str, options: Mapping[str, Any]) -> dict[str, tuple[str, Loaded]]:
    """Name, which is the attribute's, -> (reference, plug-in)."""
    found: dict[str, tuple[str, Loaded]] = {}
    for reference in options.get(KINDS[kind].option) or ():
        name = reference.partition(":")[2]
        if name in found:
            raise UsageError(f"{kind}s must have different names, got {found[name][0]} and {reference}")
        found[name] = (reference, loaded(kind, reference))
    return found


def _metric(reference: str, one: Loaded) -> "Metric":
    """The metric, whose faults are its own."""
    from dataclasses import replace

    def measure(record: Any) -> Any:
        with blamed(f"metric {reference} failed with", one.source):
            return float(one.made.measure(record))

    return replace(one.made, measure=measure)  # type: ignore[no-any-return]


class _Figure:
    """A figure whose faults are its own."""

    def __init__(self, reference: str, one: Loaded) -> None:
        self._reference, self._one = reference, one

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            with blamed(f"{name} of figure {self._reference} failed with", self._one.source):
                return getattr(self._one.made, name)(*given)

        return call
