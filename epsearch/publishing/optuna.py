"""A study in a storage of Optuna: one trial a point, whose value is its mean score; optuna-dashboard shows it.

Trials of Optuna cannot be changed once they are finished. So a point is published when all of its seeds are known, and
a study that has changed since, such as by more seeds, is written anew.
"""

import hashlib
import logging
import warnings
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import optuna
from optuna.artifacts import FileSystemArtifactStore, get_all_artifact_meta, upload_artifact
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from epsearch.failures.errors import UsageError
from epsearch.publishing.points import DIVERGED, DROPPED, OPEN, Publication, Trial, curve, metrics
from epsearch.publishing.report import PublishReport, mask_passwords
from results.ledger.record import RunRecord
from results.ledger.url import LedgerUrl
from results.metrics import METRICS
from search_spaces.adapters.samplers import distributions
from search_spaces.space import Space

MARK = "epsearch"  # attribute of studies that epsearch published: its version
KEY = "key"
BEST_TRIAL = "Optuna's best trial has the highest mean; epsearch's choice is the study's attribute chosen"
STATES = {DROPPED: TrialState.PRUNED, DIVERGED: TrialState.FAIL}


def publish(publication: Publication, url: str, files: Path, artifacts: Path) -> PublishReport:
    """Writes a study into an Optuna storage, without the trials that it has already.

    url: SQLAlchemy's, of Optuna's own tables; files: the report; artifacts: folder of Optuna's artifact store.
    Raises UsageError where the storage cannot be used, or has a study of this name that is not ours.
    """
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(logging.ERROR)  # it logs every study that it makes
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return _publish(publication, url, files, artifacts)
    except (SQLAlchemyError, optuna.exceptions.OptunaError, ImportError, RuntimeError, OSError) as error:
        raise UsageError(mask_passwords(f"cannot publish to the Optuna storage {url}: {error}", url)) from error
    finally:
        optuna.logging.set_verbosity(level)


def _publish(publication: Publication, url: str, files: Path, artifacts: Path) -> PublishReport:
    storage, name = optuna.storages.get_storage(url), publication.study.name
    objective, stream = publication.study.maximised, publication.stream
    trials = {trial.version: trial for trial in publication.trials if trial.stream == stream and trial.state != OPEN}
    space = distributions(Space(publication.parameters))
    stored = {summary.study_name: summary for summary in optuna.get_all_study_summaries(storage)}
    if name in stored and MARK not in stored[name].user_attrs:
        raise UsageError(
            mask_passwords(f"the Optuna storage {url} has a study {name!r} that epsearch has not published", url)
        )
    if name in stored and not _current(optuna.load_study(study_name=name, storage=storage), trials, space):
        optuna.delete_study(study_name=name, storage=storage)
    study = optuna.create_study(study_name=name, storage=storage, direction="maximize", load_if_exists=True)
    study.set_metric_names([f"{objective} ({METRICS[objective].unit})"])
    written = {trial.user_attrs.get(KEY) for trial in study.get_trials(deepcopy=False)}
    for version, trial in trials.items():
        if version not in written:
            study.add_trial(_trial(trial, space, objective))
    _set_attributes(study, publication)
    attached = _attach(study, files, artifacts)
    view = f"optuna-dashboard {LedgerUrl(url)} --artifact-dir {artifacts}"
    remark = BEST_TRIAL if "chosen" in publication.facts else ""
    return PublishReport(len(trials), len(trials.keys() - written), attached, view, remark)


def _current(study: optuna.Study, trials: dict[str, Trial], space: dict[str, BaseDistribution]) -> bool:
    """Returns whether every trial of the storage is unchanged, so that others can be added."""
    stored = study.get_trials(deepcopy=False)
    return all(trial.user_attrs.get(KEY) in trials and trial.distributions == space for trial in stored)


def _trial(trial: Trial, space: dict[str, BaseDistribution], objective: str) -> FrozenTrial:
    state = STATES.get(trial.state, TrialState.COMPLETE)
    means = metrics(trial.records)
    frozen = optuna.trial.create_trial(
        state=state,
        value=None if state == TrialState.FAIL else means[objective],
        params={name: value for name, value in trial.values if name in space},
        distributions=space,
        user_attrs={KEY: trial.version, **trial.about, **_by_seed(trial.records, objective), **means},
        intermediate_values=dict(enumerate(curve(trial.records), start=1)),
    )
    created = sorted(
        datetime.fromisoformat(record.created).astimezone().replace(tzinfo=None) for record in trial.records
    )
    frozen.datetime_start, frozen.datetime_complete = created[0], created[-1]
    return frozen


def _by_seed(records: Sequence[RunRecord], objective: str) -> dict[str, Any]:
    """Returns each seed's score, or that it diverged, and its key in the ledger."""
    metric = METRICS[objective]
    values = {f"{objective}, seed {r.unit}": metric.of(r) if r.status == "ok" else r.status for r in records}
    return {"seeds": len(records), **values, **{f"run, seed {r.unit}": r.key for r in records}}


def _set_attributes(study: optuna.Study, publication: Publication) -> None:
    """Writes the facts of the study, and its evaluation if on another stream."""
    attributes: dict[str, Any] = {MARK: publication.facts["epsearch"], **publication.facts}
    for trial in publication.trials:
        if trial.stream != publication.stream:
            role = trial.about.get("role", trial.label)
            attributes |= {f"evaluation, {role}: {name}": value for name, value in metrics(trial.records).items()}
            attributes[f"evaluation, {role}"] = f"{trial.label}, {len(trial.records)} seeds, {trial.state}"
    for name, value in attributes.items():
        if study.user_attrs.get(name) != value:
            study.set_user_attr(name, value)


def _attach(study: optuna.Study, files: Path, artifacts: Path) -> int:
    """Uploads new and changed files; returns their number."""
    artifacts.mkdir(parents=True, exist_ok=True)
    store, uploaded = FileSystemArtifactStore(base_path=str(artifacts)), 0
    names = {meta.artifact_id: meta.filename for meta in get_all_artifact_meta(study)}
    for file in sorted(path for path in files.iterdir() if path.is_file()):
        mark, now = f"file {file.name}", hashlib.sha256(file.read_bytes()).hexdigest()[:16]
        identity, before = study.user_attrs.get(mark, (None, None))
        if before == now and identity in names and (artifacts / identity).exists():
            continue
        if identity in names:
            with file.open("rb") as content:
                store.write(identity, content)
        else:
            identity = upload_artifact(artifact_store=store, file_path=str(file), study_or_trial=study)
        study.set_user_attr(mark, (identity, now))
        uploaded += 1
    return uploaded
