"""Cache of check reports; refuses searches whose settings are known to have no effect."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from epsearch.cache import cache_folder
from epsearch.checking.settings import Setting, of_space, usual
from epsearch.failures.errors import UsageError
from epsearch.loop.content import determining_part
from epsearch.plugins.loading import PLUGINS
from epsearch.study.description import Study
from epsearch.study.kinds import Search
from results.ledger.record import content_key
from results.points import value_text
from trainers.cohort import PROTOCOL_VERSION
from trainers.notes import notify
from trainers.persistence import checked_files

VERSION = 1  # of the cached content
CONSEQUENCE = "epsearch check finds it again"


class Finding(NamedTuple):
    """A line of a check's table."""

    subject: str
    """A word, or a setting's name."""
    trusted: bool | None
    """False: the trainer cannot be trusted in this. None: undecided, or for the reader to judge."""
    short: str
    """A few words, for a report."""
    text: str
    """The details."""


@dataclass(frozen=True)
class CheckReport:
    """Result of a check of a trainer on a stream."""

    trainer: str
    """module:attribute."""
    created: str
    """Time in ISO 8601."""
    values: Mapping[str, Any]
    """Values of all settings but the one that varied."""
    findings: tuple[Finding, ...]
    inert: Mapping[str, tuple[Any, ...]]
    """Setting -> values, the usual one first, that all gave the same results."""
    seconds: float | None
    """Per task, including tests; None if no task was reported."""
    bytes: int
    """Largest resident memory."""

    @property
    def trusted(self) -> bool:
        """True if no finding speaks against the trainer."""
        return all(finding.trusted is not False for finding in self.findings)

    def sentence(self) -> str:
        """Returns the findings in a sentence, for a report."""
        return (
            f"checked on {self.created[:10]}: {'; '.join(finding.short for finding in self.findings if finding.short)}"
        )


def read(study: Study, images: Mapping[str, Any]) -> CheckReport | None:
    """Returns this computer's last report on a study's trainer and stream; None if there is none.

    images: the description of the stream, with the parts of the trainer; the study has its numeric path.
    """
    stored = _content(*_file(study, images))["checked"]
    if stored is None:
        return None
    return CheckReport(**stored | {"findings": tuple(Finding(*fields) for fields in stored["findings"])})


def write(study: Search, images: Mapping[str, Any], report: CheckReport, settings: tuple[Setting, ...]) -> None:
    """Stores a report in place of an earlier one with the same values; for the arguments see `read`."""
    path, mark = _file(study, images)
    keys = {setting.name: _key(setting, settings, report.values) for setting in settings}
    others = [entry for entry in _content(path, mark)["inert"] if entry["key"] not in keys.values()]
    inert = [{"key": keys[name], "created": report.created} for name in report.inert]
    content = {"checked": asdict(report), "inert": others + inert}
    _store(path, mark, content, "the result of the check is not cached")


def read_trainings(
    study: Search, images: Mapping[str, Any], settings: tuple[Setting, ...], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns what an interrupted check with the same arguments has stored; {} if there is none. Arguments: `write`."""
    stored = checked_files.read(*_trainings(study, images, settings, values), "it is trained again")
    return {} if stored is None else dict(json.loads(stored))


def write_trainings(
    study: Search,
    images: Mapping[str, Any],
    settings: tuple[Setting, ...],
    values: Mapping[str, Any],
    trainings: Mapping[str, Any],
) -> None:
    """Stores the trainings of a check under way, JSON-able, by their keys."""
    _store(*_trainings(study, images, settings, values), dict(trainings), "an interrupted check begins anew")


def delete_trainings(
    study: Search, images: Mapping[str, Any], settings: tuple[Setting, ...], values: Mapping[str, Any]
) -> None:
    """Deletes the trainings of a check that has come to its end."""
    with suppress(OSError):
        _trainings(study, images, settings, values)[0].unlink(missing_ok=True)


def refuse_inert(study: Study, images: Mapping[str, Any]) -> None:
    """Raises UsageError if a searched setting is known to have no effect; for the arguments see `read`.

    Only for exactly the values of the check: others may have an effect.
    """
    if not study.foreign:
        return
    search = cast(Search, study)
    if search.score_on != "cv":  # checks train on the stream of the cross-validation
        return
    settings, inert = of_space(search.space), _content(*_file(search, images))["inert"]
    dates = {entry["key"]: entry["created"] for entry in inert}
    for setting in settings:
        if (key := _key(setting, settings, dict(search.set))) in dates:
            name, values = setting.name, ", ".join(map(value_text, setting.values))
            raise UsageError(
                f"search must vary what acts; {name} does nothing in {search.method} on these tasks: {values} gave "
                f"the same results bit for bit (epsearch check, {dates[key][:10]}); leave it out, or try other values"
            )


def _key(setting: Setting, settings: tuple[Setting, ...], others: Mapping[str, Any]) -> str:
    """Returns a key of a setting, its values, and the values of all others."""
    rest = {name: value for name, value in usual(settings, others).items() if name != setting.name}
    return content_key({"setting": setting.name, "values": list(setting.values), "others": rest})


def _file(study: Study, images: Mapping[str, Any]) -> tuple[Path, str]:
    """Returns path and mark of the file of a trainer on the tasks of a search."""
    tasks = study.stream_tasks("cv")
    key = content_key(
        {
            "version": VERSION,
            "protocol": PROTOCOL_VERSION,
            "trainer": (trainer := cast(Search, study).method),
            "parts": dict(images[PLUGINS][trainer]),
            "stream": determining_part(images) | {"tasks": [tasks.start, tasks.stop]},
            "numeric_path": study.numeric_path,
        }
    )
    return cache_folder() / "checked" / key[:32], f"checked {key}"


def _trainings(
    study: Search, images: Mapping[str, Any], settings: tuple[Setting, ...], values: Mapping[str, Any]
) -> tuple[Path, str]:
    """Returns path and mark of the file of a check's trainings, by all on which they depend."""
    path, mark = _file(study, images)
    key = content_key(
        {
            "check": mark,
            "parts": {name: dict(parts) for name, parts in images[PLUGINS].items()},
            "settings": [[setting.name, *setting.values] for setting in settings],
            "values": dict(values),
            "seeds": list(study.seeds[:2]),
            "limits": None if study.limits is None else asdict(study.limits),
        }
    )
    return path.with_name(f"{key[:32]}-begun"), f"trainings {key}"


def _store(path: Path, mark: str, content: Mapping[str, Any], consequence: str) -> None:
    """Writes a file with its checksum; a failure is noted with its consequence."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        checked_files.write(path, mark, json.dumps(content, indent=1).encode())
    except OSError as error:
        notify(f"cannot write {path}, {error.strerror or error}: {consequence}")


def _content(path: Path, mark: str) -> dict[str, Any]:
    stored = checked_files.read(path, mark, CONSEQUENCE)
    return {"checked": None, "inert": []} if stored is None else dict(json.loads(stored))
