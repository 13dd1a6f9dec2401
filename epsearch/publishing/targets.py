"""Tools to publish a study to, and to log to while it trains."""

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from epsearch.failures.errors import UsageError
from epsearch.findings.facts import facts, verification
from epsearch.findings.reports import REPORTS
from epsearch.loop.base import Loop
from epsearch.plugins.registration import add_plugins
from epsearch.publishing.live import Live
from epsearch.publishing.points import publication
from epsearch.publishing.report import PublishReport
from results.files import write_atomically
from trainers.spelling import unknown

OPTUNA, MLFLOW, TENSORBOARD = TOOLS = ("optuna", "mlflow", "tensorboard")
LIVE = (MLFLOW, TENSORBOARD)


def publish(loop: Loop, tool: str, where: str, artifacts: Path) -> PublishReport:
    """Publishes a study, finished or not, without what the tool has already.

    tool: of TOOLS; where: URL, URI or folder; artifacts: folder of Optuna's artifact store. Each tool is imported only
    when it is used. Raises UsageError.
    """
    if tool not in TOOLS:
        raise UsageError(unknown("tool", tool, TOOLS))
    with add_plugins(loop.study.to_dict()):
        content = publication(loop)
        if tool == TENSORBOARD:
            from epsearch.publishing import tensorboard

            return tensorboard.publish(content, Path(where))
        with tempfile.TemporaryDirectory() as folder:
            files = _report(loop, Path(folder) / loop.study.name)
            if tool == MLFLOW:
                from epsearch.publishing import mlflow

                return mlflow.publish(content, where, files)
            from epsearch.publishing import optuna

            return optuna.publish(content, where, files, artifacts)


def live(target: str, tell: Callable[[str], None] = lambda line: None) -> Live:
    """Returns a listener, also a context manager, that logs to mlflow:URI or tensorboard:FOLDER during training.

    tell: called with one line if logging fails. Raises UsageError for another target, or a missing package.
    """
    tool, _, where = target.partition(":")
    if tool not in LIVE or not where:
        raise UsageError(f"live must be mlflow:URI or tensorboard:FOLDER, got {target!r}")
    if tool == MLFLOW:
        from epsearch.publishing import mlflow

        return Live(target, mlflow.live_log(where), tell)
    from epsearch.publishing import tensorboard

    return Live(target, tensorboard.live_log(Path(where)), tell)


def _report(loop: Loop, folder: Path) -> Path:
    """Writes the current report, if a round has finished, and study.yaml into a folder."""
    reporting = REPORTS[loop.study.kind]
    with suppress(UsageError):
        reporting.write(reporting.results(loop, facts(loop, None) | verification(loop), None), folder)
    write_atomically(folder / "study.yaml", loop.study.to_yaml().encode())
    return folder
