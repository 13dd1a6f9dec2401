"""A study as an experiment of MLflow: a run for each point, with means, and in it a run for each seed.

One more run, named as the study, has the study's facts, and the report as artifacts.
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
from epsearch.publishing.points import DIVERGED, DROPPED, OPEN, Publication, Trial, curve, metrics
from epsearch.publishing.report import PublishReport, mask_passwords
from epsearch.study.description import Study
from results.ledger.record import RunRecord

MARK, PLACE, KEY, FILES = "epsearch", "epsearch.place", "epsearch.key", "epsearch.files"
PARENT, NAME = "mlflow.parentRunId", "mlflow.runName"
STUDY = "study"  # the key of the study's own run
STATUS = {OPEN: "RUNNING", DROPPED: "KILLED", DIVERGED: "FAILED"}
# Unless the user has set them: no long wait for a lost server, and no telemetry.
DEFAULTS = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3", "MLFLOW_DISABLE_TELEMETRY": "true"}
LONGEST = 5000  # characters of a tag
REFUSED = str.maketrans("", "", "()")
"""Characters that names of metrics cannot have there."""


def publish(publication: Publication, uri: str, files: Path) -> PublishReport:
    """Writes a study into the tracking server, or database, at a URI, without runs that it has already.

    files: the report. Raises UsageError where mlflow is missing, the server cannot be used, or has an experiment of the
    study's name that is not ours.
    """
    client = connect(uri)
    with _translate_errors(uri):
        experiment = _Experiment(client, uri, publication.study)
        added = sum(experiment.write(trial) for trial in publication.trials)
        experiment.write_facts(publication.facts)
        address = f"{mask_passwords(uri, uri)}, experiment {publication.study.name}"
        return PublishReport(len(publication.trials), added, experiment.attach(files), address)


def connect(uri: str) -> Any:
    """Returns a client. Raises UsageError where mlflow is missing, or the URI is invalid."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    try:
        from mlflow import MlflowClient
    except ImportError:
        raise UsageError("MLflow needs its client: pip install 'epsearch[mlflow]'") from None
    with _translate_errors(uri):
        return MlflowClient(tracking_uri=uri)


def live_log(uri: str) -> Callable[[Study, str], "_Experiment"]:
    """Returns a function that opens the log of a study, for `Live`. Raises UsageError as `connect`."""
    client = connect(uri)

    def open_log(study: Study, heading: str) -> _Experiment:
        experiment = _Experiment(client, uri, study)
        experiment.end("RUNNING")
        return experiment

    return open_log


@contextmanager
def _translate_errors(uri: str) -> Iterator[None]:
    """Turns errors of MLflow into a UsageError, without the password of the URI."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except (MlflowException, SQLAlchemyError, ImportError) as error:
        raise UsageError(mask_passwords(f"cannot publish to MLflow at {uri}: {error}", uri)) from error


class _Experiment:
    """The runs of a study's experiment, which is made if needed; a tag identifies each run.

    Raises UsageError where there is an experiment of that name that is not ours.
    """

    def __init__(self, client: Any, uri: str, study: Study) -> None:
        self._client, name = client, study.name
        experiment = client.get_experiment_by_name(name)
        if experiment is not None and (MARK not in experiment.tags or experiment.lifecycle_stage != "active"):
            state = "that epsearch has not published" if MARK not in experiment.tags else "that was deleted there"
            raise UsageError(mask_passwords(f"MLflow at {uri} has an experiment {name!r} {state}", uri))
        self._experiment = experiment and experiment.experiment_id
        self._experiment = self._experiment or client.create_experiment(name, tags={MARK: study.kind})
        self._stored: dict[str, tuple[str, Mapping[str, str]]] = {
            run.data.tags[PLACE]: (run.info.run_id, run.data.tags) for run in self._all() if PLACE in run.data.tags
        }
        self.study = self._run(STUDY, name, {})

    def write(self, trial: Trial) -> bool:
        """Writes a trial, its members, and means of a finished one; returns whether anything was new."""
        stored = self._stored.get(trial.key)
        if stored and KEY in stored[1] and stored[1][KEY] != trial.version:  # its means have changed
            self._client.delete_run(stored[0])
            del self._stored[trial.key]
        parent = self._parent(trial)
        fresh = [self.member(trial, record) for record in trial.records]
        if trial.state == OPEN or KEY in self._stored[trial.key][1]:
            return any(fresh)
        tags = {KEY: trial.version} | {name: str(value) for name, value in trial.about.items()}
        self._finish(parent, trial.records, tags, STATUS.get(trial.state, "FINISHED"))
        return True

    def member(self, trial: Trial, record: RunRecord) -> bool:
        """Writes the run of a member within that of its trial; returns whether it was new."""
        key, parent = f"{trial.key}/{record.unit}", self._parent(trial)
        run, tags = self._stored.get(key, ("", {}))
        if tags.get(KEY) == record.key:
            if tags[PARENT] != parent:
                self._tag(run, key, {PARENT: parent})
            return False
        if run:
            self._client.delete_run(run)
            del self._stored[key]
        run = self._run(key, f"seed {record.unit}", {PARENT: parent, "stream": trial.stream}, {"seed": record.seed})
        self._finish(run, (record,), {KEY: record.key}, "FINISHED" if record.status == "ok" else "FAILED")
        return True

    def write_facts(self, facts: Mapping[str, str]) -> None:
        """Writes the facts of the study, and its status."""
        self._tag(self.study, STUDY, {name: text[:LONGEST] for name, text in facts.items()})
        self.end("FINISHED" if facts["state"] == "finished" else "RUNNING")

    def progress(self, now: Progress) -> None:
        """Writes progress into the study's own run."""
        self._client.log_metric(self.study, "members of the stage", now.known, step=int(now.member_steps))

    def end(self, status: str) -> None:
        """Sets the status of the study's run."""
        self._client.update_run(self.study, status=status)

    def attach(self, folder: Path) -> int:
        """Uploads the files of a folder if any has changed; returns their number, else 0."""
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        now = sha256("".join(sha256(path.read_bytes()).hexdigest() for path in files).encode()).hexdigest()
        if self._stored[STUDY][1].get(FILES) == now:
            return 0
        self._client.log_artifacts(self.study, str(folder))
        self._tag(self.study, STUDY, {FILES: now})
        return len(files)

    def _all(self) -> list[Any]:
        page = self._client.search_runs([self._experiment], max_results=1000)
        runs = list(page)
        while page.token:
            page = self._client.search_runs([self._experiment], max_results=1000, page_token=page.token)
            runs += page
        return runs

    def _parent(self, trial: Trial) -> str:
        """Returns the id of a trial's run, which stays open until its means are written."""
        return self._run(trial.key, trial.label, {"stream": trial.stream}, dict(trial.values))

    def _run(self, key: str, name: str, tags: dict[str, str], params: Mapping[str, Any] | None = None) -> str:
        """Returns the id of a key's run, which is made if needed."""
        from mlflow.entities import Param

        if key not in self._stored:
            tags = {PLACE: key, NAME: name, **tags}
            run = self._client.create_run(self._experiment, tags=tags).info.run_id
            logged = [Param(name, str(value)) for name, value in (params or {}).items()]
            self._client.log_batch(run, params=logged)
            self._stored[key] = (run, tags)
        return self._stored[key][0]

    def _finish(self, run: str, records: tuple[RunRecord, ...], tags: dict[str, str], status: str) -> None:
        """Writes A_k at step k and the metrics, then the tags, which mark the run as complete."""
        from mlflow.entities import Metric

        times = sorted(int(1000 * datetime.fromisoformat(record.created).timestamp()) for record in records)
        values = curve(records)
        logged = [Metric("A_k", value, times[-1], step) for step, value in enumerate(values, start=1)]
        logged += [
            Metric(name.translate(REFUSED), value, times[-1], len(values)) for name, value in metrics(records).items()
        ]
        self._client.log_batch(run, metrics=logged)
        self._client.set_terminated(run, status=status, end_time=times[-1])
        key = next(key for key, (stored, _) in self._stored.items() if stored == run)
        self._tag(run, key, tags)

    def _tag(self, run: str, key: str, tags: dict[str, str]) -> None:
        from mlflow.entities import RunTag

        stored = self._stored[key][1]
        if fresh := {name: text for name, text in tags.items() if stored.get(name) != text}:
            self._client.log_batch(run, tags=[RunTag(name, text) for name, text in fresh.items()])
            self._stored[key] = (run, {**stored, **fresh})
