"""A study as an experiment of MLflow: a run for each point, with means, and in it a run for each seed.

One more run, named as the study, has what is known of the whole, and the report as artifacts.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from epsearch.events import Progress
from epsearch.failures.errors import UsageError
from epsearch.publishing.live import Live
from epsearch.publishing.points import DIVERGED, DROPPED, OPEN, Place, Published, Tried, curve, metrics
from epsearch.publishing.report import PublishReport, masked
from epsearch.study.description import Study
from results.ledger.record import RunRecord

MARK, PLACE, KEY, FILES = "epsearch", "epsearch.place", "epsearch.key", "epsearch.files"
PARENT, NAME = "mlflow.parentRunId", "mlflow.runName"
STUDY = "study"  # the place of the study's own run
STATUS = {OPEN: "RUNNING", DROPPED: "KILLED", DIVERGED: "FAILED"}
# Unless the user says otherwise: a server that is gone is not waited for all night, and nobody is told who uses what.
USUAL = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3", "MLFLOW_DISABLE_TELEMETRY": "true"}
LONGEST = 5000  # characters of a tag


def publish(found: Published, uri: str, files: Path) -> PublishReport:
    """Writes a study into the tracking server, or database, at a URI; runs that are there already stay as they are.

    files: the report. Raises UsageError where mlflow is missing, the server cannot be used, or has an experiment of the
    study's name that is not ours.
    """
    client = _mlflow(uri)
    with _refused(uri):
        runs = Runs(client, uri, found.study)
        added = sum(runs.write(one) for one in found.tried)
        runs.tell(found.facts)
        return PublishReport(
            len(found.tried), added, runs.attach(files), f"{masked(uri, uri)}, experiment {found.study.name}"
        )


def _mlflow(uri: str) -> Any:
    """A client. Raises UsageError where there is none, or the URI cannot be one."""
    for name, value in USUAL.items():
        os.environ.setdefault(name, value)
    try:
        from mlflow import MlflowClient
    except ImportError:
        raise UsageError("MLflow needs its client: pip install 'epsearch[mlflow]'") from None
    with _refused(uri):
        return MlflowClient(tracking_uri=uri)


@contextmanager
def _refused(uri: str) -> Iterator[None]:
    """Within it, what MLflow says is one line, without the password of the URI."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except (MlflowException, SQLAlchemyError, ImportError) as error:
        raise UsageError(masked(f"cannot publish to MLflow at {uri}: {error}", uri)) from error


class Runs:
    """The runs of a study's experiment, which is made if needed; each is known by a tag.

    Raises UsageError where there is an experiment of that name that is not ours.
    """

    def __init__(self, client: Any, uri: str, study: Study) -> None:
        self._client, name = client, study.name
        experiment = client.get_experiment_by_name(name)
        if experiment is not None and (MARK not in experiment.tags or experiment.lifecycle_stage != "active"):
            state = "that epsearch has not published" if MARK not in experiment.tags else "that was deleted there"
            raise UsageError(masked(f"MLflow at {uri} has an experiment {name!r} {state}", uri))
        self._experiment = experiment and experiment.experiment_id
        self._experiment = self._experiment or client.create_experiment(name, tags={MARK: study.kind})
        self._known: dict[str, tuple[str, Mapping[str, str]]] = {
            run.data.tags[PLACE]: (run.info.run_id, run.data.tags) for run in self._all() if PLACE in run.data.tags
        }
        self.study = self._run(STUDY, name, {})

    def write(self, one: Tried) -> bool:
        """Writes a place and its members; whether anything was not there. Means are those of all of its seeds."""
        known = self._known.get(one.place.key)
        if known and KEY in known[1] and known[1][KEY] != one.key:  # its means are no longer true
            self._client.delete_run(known[0])
            del self._known[one.place.key]
        parent = self.place(one.place)
        fresh = [self.member(one.place, record) for record in one.records]
        if one.state == OPEN or KEY in self._known[one.place.key][1]:
            return any(fresh)
        tags = {KEY: one.key} | {name: str(value) for name, value in one.about.items()}
        self._finish(parent, one.records, tags, STATUS.get(one.state, "FINISHED"))
        return True

    def place(self, place: Place) -> str:
        """The run of a place, which stays open until its means are written; its identity."""
        return self._run(place.key, place.label, {"stream": place.stream}, dict(place.values))

    def member(self, place: Place, record: RunRecord) -> bool:
        """Writes the run of a member within that of its place; whether it was not there."""
        key, parent = f"{place.key}/{record.seed}", self.place(place)
        run, tags = self._known.get(key, ("", {}))
        if tags.get(KEY) == record.key:
            if tags[PARENT] != parent:
                self._tag(run, key, {PARENT: parent})
            return False
        if run:
            self._client.delete_run(run)
            del self._known[key]
        run = self._run(key, f"seed {record.seed}", {PARENT: parent, "stream": place.stream}, {"seed": record.seed})
        self._finish(run, (record,), {KEY: record.key}, "FINISHED" if record.status == "ok" else "FAILED")
        return True

    def tell(self, facts: Mapping[str, str]) -> None:
        """Writes what is known of the study."""
        self._tag(self.study, STUDY, {name: text[:LONGEST] for name, text in facts.items()})
        self.end("FINISHED" if facts["state"] == "finished" else "RUNNING")

    def end(self, status: str) -> None:
        """Says how the study stands."""
        self._client.update_run(self.study, status=status)

    def attach(self, folder: Path) -> int:
        """Uploads the files of a folder, unless they are the same as before; how many."""
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        now = sha256("".join(sha256(path.read_bytes()).hexdigest() for path in files).encode()).hexdigest()
        if self._known[STUDY][1].get(FILES) == now:
            return 0
        self._client.log_artifacts(self.study, str(folder))
        self._tag(self.study, STUDY, {FILES: now})
        return len(files)

    def _all(self) -> list[Any]:
        found = page = self._client.search_runs([self._experiment], max_results=1000)
        runs = list(found)
        while page.token:
            page = self._client.search_runs([self._experiment], max_results=1000, page_token=page.token)
            runs += page
        return runs

    def _run(self, key: str, name: str, tags: dict[str, str], params: Mapping[str, Any] | None = None) -> str:
        """The run that has a place, made if needed; its identity."""
        from mlflow.entities import Param

        if key not in self._known:
            tags = {PLACE: key, NAME: name, **tags}
            run = self._client.create_run(self._experiment, tags=tags).info.run_id
            known = [Param(name, str(value)) for name, value in (params or {}).items()]
            self._client.log_batch(run, params=known)
            self._known[key] = (run, tags)
        return self._known[key][0]

    def _finish(self, run: str, records: tuple[RunRecord, ...], tags: dict[str, str], status: str) -> None:
        """Writes A_k at step k and the metrics; the tag that says so comes last."""
        from mlflow.entities import Metric

        times = sorted(int(1000 * datetime.fromisoformat(one.created).timestamp()) for one in records)
        values = curve(records)
        logged = [Metric("A_k", value, times[-1], step) for step, value in enumerate(values, start=1)]
        logged += [Metric(name, value, times[-1], len(values)) for name, value in metrics(records).items()]
        self._client.log_batch(run, metrics=logged)
        self._client.set_terminated(run, status=status, end_time=times[-1])
        key = next(key for key, (known, _) in self._known.items() if known == run)
        self._tag(run, key, tags)

    def _tag(self, run: str, key: str, tags: dict[str, str]) -> None:
        from mlflow.entities import RunTag

        known = self._known[key][1]
        if fresh := {name: text for name, text in tags.items() if known.get(name) != text}:
            self._client.log_batch(run, tags=[RunTag(name, text) for name, text in fresh.items()])
            self._known[key] = (run, {**known, **fresh})


class MlflowLive(Live):
    """Writes the run of each member when it is stored, and how far the training is, into the study's own run."""

    def __init__(self, uri: str, tell: Callable[[str], None] = lambda line: None) -> None:
        self._client, self._uri = _mlflow(uri), uri
        self._runs: Runs | None = None  # until there is a study
        super().__init__(f"mlflow:{uri}", tell)

    def open(self, study: Study, heading: str) -> None:
        """As `Live` says."""
        self._runs = Runs(self._client, self._uri, study)
        self._runs.end("RUNNING")

    def member(self, place: Place, record: RunRecord) -> None:
        """As `Live` says."""
        if self._runs is not None:
            self._runs.member(place, record)

    def far(self, now: Progress) -> None:
        """As `Live` says."""
        if self._runs is not None:
            self._client.log_metric(self._runs.study, "members of the stage", now.known, step=int(now.member_steps))

    def end(self, status: str) -> None:
        """As `Live` says."""
        if self._runs is not None:
            self._runs.end(status)
