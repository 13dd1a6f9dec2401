"""Forms made of the options of studies: which fields, with what help, and what somebody has typed into them."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fastapi import Request

from epsearch.preparation.growth import GROWS
from epsearch.service.given import OURS
from epsearch.study.description import Study
from epsearch.study.kinds import KINDS
from epsearch.study.option import HELP_GROUPS, OF_METHODS, Option
from results.labels import label
from search_spaces.published.definition import definitions

FIRST = ("name", "dataset", "method", "methods", "sizes")
"""Fields that everybody looks for, in a group of their own."""
THE_STUDY = "The study"
OPEN = (THE_STUDY, "What is searched", "Seeds and evaluation")
"""Groups that are unfolded at first."""
USUAL = re.compile(r"\s*\[default: (.*)\]$")
"""How a help text says what happens where nothing is given."""
TITLED = {"method": "method", "dataset": "dataset", "strategy": "strategy"}
"""Option -> the kind of names that its values are."""
LONGEST = 10_000  # characters of a field


@dataclass(frozen=True)
class Field:
    """One option in a form."""

    name: str
    """As the form sends it."""
    title: str
    """For people."""
    help: str
    usual: str
    """What happens where nothing is given."""
    kind: str
    """`flag`, `choice` or `text`."""
    choices: tuple[tuple[str, str], ...] = ()
    """(value, title); of a text they are suggestions."""
    value: str = ""
    wrong: bool = False
    """Whether the error is about it."""


@dataclass(frozen=True)
class Group:
    """Fields of one subject."""

    title: str
    fields: tuple[Field, ...]

    @property
    def unfolded(self) -> bool:
        """Whether it is to be seen at once."""
        return self.title in OPEN or any(one.value or one.wrong for one in self.fields)


async def typed(request: Request) -> dict[str, str]:
    """What was typed into a form, by field; without what was left empty."""
    form = await request.form(max_files=0, max_fields=500)
    return {name: value.strip()[:LONGEST] for name, value in form.items() if isinstance(value, str) and value.strip()}


def of_new(kind: str, values: Mapping[str, str], error: str = "") -> list[Group]:
    """The form for a new study of a kind; error: the line about what was typed."""
    known = {name: one for name, one in KINDS[kind].options().items() if name not in OURS}
    groups = {THE_STUDY: FIRST, **HELP_GROUPS}
    placed = {name for names in groups.values() for name in names}
    groups[OF_METHODS] = tuple(name for name in known if name not in placed)
    made = []
    for title, names in groups.items():
        own = [name for name in names if name in known and (title == THE_STUDY or name not in FIRST)]
        fields = (_with(_field(known[name]), values.get(name, ""), error) for name in own)
        if own:
            made.append(Group(title, tuple(fields)))
    return made


def of_growth(study: Study, values: Mapping[str, str], error: str = "") -> list[Field]:
    """The form in which a stored search grows, with its present values where nothing was typed."""
    there = shown(study)
    known = study.options()
    return [_with(_field(known[name]), {**there, **values}.get(name, ""), error) for name in GROWS if name in known]


def shown(study: Study) -> dict[str, str]:
    """Every option of a study as its field has it; "" for none."""
    return {name: _text(value) for name, value in study.shown().items()}


def changed(study: Study, values: Mapping[str, str]) -> dict[str, str]:
    """What of a form differs from a study: only that is asked for. A flag that is off says "false"."""
    there = shown(study)
    flags = {name for name, one in study.options().items() if name in GROWS and one.default is False}
    given = {name: values.get(name, "false" if name in flags else "") for name in GROWS}
    return {name: value for name, value in given.items() if value and value != (there.get(name) or "false")}


def _with(field: Field, value: str, error: str) -> Field:
    wrong = re.match(r"[\w-]+", error)
    return replace(field, value=value, wrong=wrong is not None and wrong[0].replace("-", "_") == field.name)


def _field(option: Option) -> Field:
    usual = USUAL.search(option.help)
    text = USUAL.sub("", option.help)
    default = usual[1] if usual else _text(option.show(option.default))
    allowed = _allowed(option)
    if option.default is False:
        kind = "flag"
    elif allowed and option.name != "dataset":
        kind = "choice"
    else:
        kind = "text"
    titled = TITLED.get(option.name)
    choices = tuple((one, f"{one} · {label(titled, one)}" if titled else one) for one in allowed)
    return Field(option.name, option.name.replace("_", " "), text, default, kind, choices)


def _allowed(option: Option) -> Collection[str]:
    """The words that an option takes; () where it takes others, too."""
    if option.name == "dataset":
        return tuple(definitions())
    if option.name == "method":
        from trainers.methods import METHODS

        return tuple(METHODS)
    given = option.convert.keywords if isinstance(option.convert, partial) else {}
    return tuple(given.get("allowed", ()) or getattr(given.get("one"), "choices", ()))


def _text(value: Any) -> str:
    """A value as the command line would have it."""
    if isinstance(value, Mapping):
        return ",".join(f"{name}={one}" for name, one in value.items())
    if isinstance(value, (list, tuple)):
        separator = "," if all(isinstance(one, int) or str(one).isidentifier() for one in value) else " "
        return separator.join(map(_text, value))
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.10g}"
    return str(value).lower() if isinstance(value, bool) else str(value)
