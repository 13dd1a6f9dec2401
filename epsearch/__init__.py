"""Joins trainers, search_spaces and results: from a command line to a report.

In Python, `run(Search(points=5))` is `epsearch run --points 5`; what it returns has tables and figures, and the report
is written (docs/python.md). Names are imported when they are first used: importing epsearch alone takes no time.

ROOMS lists the modules and folders from the doors down; each imports only what stands behind it.

cli, commands, arguments           the command line
doors                              the same verbs on a ledger and on a service
service                            studies over HTTP: an API, pages, a queue
terminal, doctor                   output for people; only terminal knows rich
testing                            contract suites for authors of plug-ins
api                                run, extend, report, compare, publish: functions for Python
control                            cancelling, watching, resuming and deleting of stored studies
reuse                              verification, export, import and networks of stored studies
publishing                         studies in Optuna, MLflow, TensorBoard, at the end and while they train
findings                           lists of studies, and results for reports
session                            one training: ledger, runner, progress; the plan before it
checking                           checks of plug-in trainers
preparation                        from options to a study that can start
runners                            threads, Ray Tune; progress and time to go
slurm                              job scripts of Slurm, and the time that it leaves a job
notice                             messages at the end of a study
status                             how a study stands: one value
events                             events of a training, and listeners
loop                               members that a study needs, and their results
study                              the description of a study: kinds, options, parsers
plugins                            plug-ins by name: loading, registering
ledger                             location of the ledger, its damaged rows, the log of evaluations
service_url                        the URL of a service
failures                           one-line errors; signals
gpu_check                          check of a GPU before it is trusted
machine, cache, titles             facts about this machine; the cache folder; titles of names
import_guard                       checks where trainers, search_spaces and results are imported from
operating_system                   calls that not every operating system has, with fallbacks
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from epsearch.import_guard import ensure_own_packages

ensure_own_packages()  # before anything below is imported

from epsearch.study.filling import fill_with  # noqa: E402
from epsearch.titles import register_titles  # noqa: E402

if TYPE_CHECKING:
    from epsearch.api import Outcome as Outcome
    from epsearch.api import compare as compare
    from epsearch.api import load as load
    from epsearch.api import publish as publish
    from epsearch.api import run as run
    from epsearch.events import Began as Began
    from epsearch.events import Event as Event
    from epsearch.events import Listener as Listener
    from epsearch.events import Note as Note
    from epsearch.events import Planned as Planned
    from epsearch.events import Progress as Progress
    from epsearch.events import Stored as Stored
    from epsearch.events import Tick as Tick
    from epsearch.events import Warned as Warned
    from epsearch.events import together as together
    from epsearch.failures.errors import Cancelled as Cancelled
    from epsearch.failures.errors import Interrupted as Interrupted
    from epsearch.failures.errors import TrainingFailed as TrainingFailed
    from epsearch.failures.errors import Unavailable as Unavailable
    from epsearch.failures.errors import UsageError as UsageError
    from epsearch.findings.notebook import notebook_listener as notebook_listener
    from epsearch.preparation.build import build as build
    from epsearch.publishing.targets import live as live
    from epsearch.study.description import Study as Study
    from epsearch.study.kinds import Comparison as Comparison
    from epsearch.study.kinds import MemoryStudy as MemoryStudy
    from epsearch.study.kinds import ProtocolStudy as ProtocolStudy
    from epsearch.study.kinds import Search as Search
    from results.figures.paper import paper_style as paper_style

ROOMS = (
    *(
        "__main__",
        "cli",
        "commands",
        "arguments",
        "doors",
        "service",
        "terminal",
        "doctor",
        "testing",
        "api",
        "control",
        "reuse",
        "publishing",
        "findings",
        "session",
        "checking",
        "preparation",
        "runners",
        "slurm",
        "notice",
        "status",
        "events",
    ),
    *(
        "loop",
        "study",
        "plugins",
        "protocols",
        "ledger",
        "service_url",
        "failures",
        "gpu_check",
        "machine",
        "cache",
        "titles",
        "import_guard",
        "operating_system",
    ),
)

_HOMES = {
    "epsearch.api": ("Outcome", "compare", "load", "publish", "run"),
    "epsearch.events": (
        *("Began", "Event", "Listener", "Note", "Planned", "Progress", "Stored", "Tick", "Warned", "together"),
    ),
    "epsearch.failures.errors": ("Cancelled", "Interrupted", "TrainingFailed", "Unavailable", "UsageError"),
    "epsearch.findings.notebook": ("notebook_listener",),
    "epsearch.preparation.build": ("build",),
    "epsearch.publishing.targets": ("live",),
    "epsearch.study.description": ("Study",),
    "epsearch.study.kinds": ("Comparison", "MemoryStudy", "ProtocolStudy", "Search"),
    "results.figures.paper": ("paper_style",),
}
__all__ = sorted(name for names in _HOMES.values() for name in names)


def __dir__() -> list[str]:
    """Returns the names that a shell completes."""
    return __all__


def __getattr__(name: str) -> Any:
    """A name of the Python API, from where it lives."""
    from importlib import import_module

    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def _build(kind: type[Any], options: Mapping[str, Any]) -> Any:
    from epsearch.failures.errors import UsageError
    from epsearch.preparation.build import build  # late: it brings torch along

    study = build(kind, options)
    if not isinstance(study, kind):  # a Search of a protocol that is no search
        (name,) = study.protocols
        raise UsageError(
            f"protocol {name} makes no Search; use ProtocolStudy(protocols={name!r}), with the same options"
        )
    return study


register_titles()
fill_with(_build)
