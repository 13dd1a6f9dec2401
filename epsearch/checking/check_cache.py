"""What `epsearch check` has found, kept in the cache folder by all that it is of; what a `run` may not search then."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from epsearch.cache import cache_folder
from epsearch.checking.tried import Tried, of_space, usual
from epsearch.failures.errors import UsageError
from epsearch.loop.content import determining
from epsearch.plugins.loading import PLUGINS
from epsearch.study.description import Study
from epsearch.study.kinds import Search
from results.ledger.record import content_key
from results.points import value_text
from trainers.cohort import PROTOCOL_VERSION
from trainers.notes import notify
from trainers.persistence import sealed

VERSION = 1  # of what is kept
AGAIN = "epsearch check finds it again"


class Finding(NamedTuple):
    """One line of the table."""

    subject: str
    """What it is about: a word, or a setting's name."""
    trusted: bool | None
    """False: it cannot be. None: that cannot be told, or is for the reader to judge."""
    short: str
    """For a report, a few words."""
    text: str
    """For people who look closer."""


@dataclass(frozen=True)
class Checked:
    """What was found of a trainer on a stream."""

    trainer: str
    """module:attribute."""
    created: str
    """When, in ISO 8601."""
    values: Mapping[str, Any]
    """With which it was trained, but for the one that was varied."""
    findings: tuple[Finding, ...]
    inert: Mapping[str, tuple[Any, ...]]
    """Setting -> values, the usual one first, with which every result was the same."""
    seconds: float | None
    """A task's, tests included; None where none was reported."""
    bytes: int
    """Resident memory at most."""

    @property
    def trusted(self) -> bool:
        """Whether nothing was found that cannot be."""
        return all(one.trusted is not False for one in self.findings)

    def sentence(self) -> str:
        """For a report."""
        return f"checked on {self.created[:10]}: {'; '.join(one.short for one in self.findings if one.short)}"


def known(study: Study, images: Mapping[str, Any]) -> Checked | None:
    """What was found last of exactly this trainer on the stream of this search, on this computer; None without.

    images: the description of the stream, with what the trainer is made of; the study has its numeric path.
    """
    found = _read(*_place(study, images))["checked"]
    if found is None:
        return None
    return Checked(**found | {"findings": tuple(Finding(*one) for one in found["findings"])})


def keep(study: Search, images: Mapping[str, Any], found: Checked, tried: tuple[Tried, ...]) -> None:
    """Keeps what was found, in place of what was found before with the same values; arguments as of `known`."""
    path, mark = _place(study, images)
    ours = {one.name: _entry(one, tried, found.values) for one in tried}
    others = [one for one in _read(path, mark)["inert"] if one["key"] not in ours.values()]
    inert = [{"key": ours[name], "created": found.created} for name in found.inert]
    content = json.dumps({"checked": asdict(found), "inert": others + inert}, indent=1).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sealed.write(path, mark, content)
    except OSError as error:
        notify(f"{path} cannot be written, {error.strerror or error}: what was found is not kept")


def refuse_inert(study: Study, images: Mapping[str, Any]) -> None:
    """Raises UsageError where it is known that the results of all that a search varies are the same.

    Arguments as of `known`. Only of exactly the values that were tried: others may act.
    """
    if not study.foreign:
        return
    search = cast(Search, study)
    if search.score_on != "cv":  # another stream than the one that was looked at
        return
    tried, there = of_space(search.space), _read(*_place(search, images))["inert"]
    dates = {one["key"]: one["created"] for one in there}
    for one in tried:
        if (key := _entry(one, tried, dict(search.set))) in dates:
            values = ", ".join(map(value_text, one.values))
            raise UsageError(
                f"search must vary what acts; {one.name} does nothing in {search.method} on these tasks: {values} gave "
                f"the same results bit for bit (epsearch check, {dates[key][:10]}); leave it out, or try other values"
            )


def _entry(one: Tried, tried: tuple[Tried, ...], others: Mapping[str, Any]) -> str:
    """A key of a setting, the values that are tried, and those of all others."""
    rest = {name: value for name, value in usual(tried, others).items() if name != one.name}
    return content_key({"setting": one.name, "values": list(one.values), "others": rest})


def _place(study: Study, images: Mapping[str, Any]) -> tuple[Path, str]:
    """(path, mark) of the file: a trainer's on the tasks of a search."""
    tasks = study.stream_tasks("cv")
    key = content_key(
        {
            "version": VERSION,
            "protocol": PROTOCOL_VERSION,
            "trainer": (trainer := cast(Search, study).method),
            "parts": dict(images[PLUGINS][trainer]),
            "stream": determining(images) | {"tasks": [tasks.start, tasks.stop]},
            "numeric_path": study.numeric_path,
        }
    )
    return cache_folder() / "checked" / key[:32], f"checked {key}"


def _read(path: Path, mark: str) -> dict[str, Any]:
    found = sealed.read(path, mark, AGAIN)
    return {"checked": None, "inert": []} if found is None else dict(json.loads(found))
