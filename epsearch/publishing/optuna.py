"""A study in a storage of Optuna: one trial a point, whose value is its mean score; optuna-dashboard shows it.

Trials of Optuna cannot be changed once they are finished. So a point is published when all of its seeds are known, and
a study that has changed since, such as one that was given more seeds, is written anew.
"""

import hashlib
import logging
import warnings
from datetime import datetime
from pathlib import Path
from typing import Any

import optuna
from optuna.artifacts import FileSystemArtifactStore, get_all_artifact_meta, upload_artifact
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from epsearch.failures.errors import UsageError
from epsearch.publishing.points import DIVERGED, DROPPED, OPEN, Published, Tried, curve, metrics
from epsearch.publishing.report import PublishReport, masked
from results.ledger.url import LedgerUrl
from results.metrics import METRICS
from search_spaces.adapters.samplers import distributions
from search_spaces.space import Space

MARK = "epsearch"  # an attribute that only studies have which were published here: the version that did
KEY = "key"
STATES = {DROPPED: TrialState.PRUNED, DIVERGED: TrialState.FAIL}


def publish(found: Published, url: str, files: Path, artifacts: Path) -> PublishReport:
    """Writes a study into an Optuna storage; what is there already stays, so that nothing is there twice.

    url: SQLAlchemy's, of Optuna's own tables; files: the report; artifacts: folder of Optuna's artifact store.
    Raises UsageError where the storage cannot be used, or has a study of this name that is not ours.
    """
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(logging.ERROR)  # it tells every study that it makes
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return _publish(found, url, files, artifacts)
    except (SQLAlchemyError, optuna.exceptions.OptunaError, ImportError, RuntimeError, OSError) as error:
        raise UsageError(masked(f"cannot publish to the Optuna storage {url}: {error}", url)) from error
    finally:
        optuna.logging.set_verbosity(level)


def _publish(found: Published, url: str, files: Path, artifacts: Path) -> PublishReport:
    storage, name, objective = optuna.storages.get_storage(url), found.study.name, found.study.maximised
    wanted = {one.key: one for one in found.tried if one.place.stream == found.stream and one.state != OPEN}
    space = distributions(Space(found.parameters))
    there = {one.study_name: one for one in optuna.get_all_study_summaries(storage)}
    if name in there and MARK not in there[name].user_attrs:
        raise UsageError(masked(f"the Optuna storage {url} has a study {name!r} that epsearch has not published", url))
    if name in there and not _holds(optuna.load_study(study_name=name, storage=storage), wanted, space):
        optuna.delete_study(study_name=name, storage=storage)
    study = optuna.create_study(study_name=name, storage=storage, direction="maximize", load_if_exists=True)
    study.set_metric_names([f"{objective} ({METRICS[objective].unit})"])
    known = {one.user_attrs.get(KEY) for one in study.get_trials(deepcopy=False)}
    for key, one in wanted.items():
        if key not in known:
            study.add_trial(_trial(one, space, objective))
    _tell(study, found)
    attached = _attach(study, files, artifacts)
    view = f"optuna-dashboard {LedgerUrl(url)} --artifact-dir {artifacts}"
    return PublishReport(len(wanted), len(wanted.keys() - known), attached, view)


def _holds(study: optuna.Study, wanted: dict[str, Tried], space: dict[str, BaseDistribution]) -> bool:
    """Whether every trial is still what it was, so that others can be added."""
    trials = study.get_trials(deepcopy=False)
    return all(one.user_attrs.get(KEY) in wanted and one.distributions == space for one in trials)


def _trial(one: Tried, space: dict[str, BaseDistribution], objective: str) -> FrozenTrial:
    state = STATES.get(one.state, TrialState.COMPLETE)
    means = metrics(one.records)
    trial = optuna.trial.create_trial(
        state=state,
        value=None if state == TrialState.FAIL else means[objective],
        params={name: value for name, value in one.place.values if name in space},
        distributions=space,
        user_attrs={KEY: one.key, **one.about, **_by_seed(one, objective), **means},
        intermediate_values=dict(enumerate(curve(one.records), start=1)),
    )
    created = sorted(datetime.fromisoformat(record.created).astimezone().replace(tzinfo=None) for record in one.records)
    trial.datetime_start, trial.datetime_complete = created[0], created[-1]
    return trial


def _by_seed(one: Tried, objective: str) -> dict[str, Any]:
    """Of every seed its score, or that it diverged, and the key under which the ledger has it."""
    metric = METRICS[objective]
    values = {f"{objective}, seed {r.seed}": metric.of(r) if r.status == "ok" else r.status for r in one.records}
    return {"seeds": len(one.records), **values, **{f"run, seed {r.seed}": r.key for r in one.records}}


def _tell(study: optuna.Study, found: Published) -> None:
    """What is known of the whole: facts, and the evaluation where that is another stream."""
    told: dict[str, Any] = {MARK: found.facts["epsearch"], **found.facts}
    for one in found.tried:
        if one.place.stream != found.stream:
            role = one.about.get("role", one.place.label)
            told |= {f"evaluation, {role}: {name}": value for name, value in metrics(one.records).items()}
            told[f"evaluation, {role}"] = f"{one.place.label}, {len(one.records)} seeds, {one.state}"
    for name, value in told.items():
        if study.user_attrs.get(name) != value:
            study.set_user_attr(name, value)


def _attach(study: optuna.Study, files: Path, artifacts: Path) -> int:
    """Uploads the files that are new or have changed; how many those are."""
    artifacts.mkdir(parents=True, exist_ok=True)
    store, uploaded = FileSystemArtifactStore(base_path=str(artifacts)), 0
    names = {one.artifact_id: one.filename for one in get_all_artifact_meta(study)}
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
