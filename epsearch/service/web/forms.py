"""Forms made of the options of studies: which fields, with what help, and what somebody has typed into them."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import Request

from epsearch.failures.errors import UsageError
from epsearch.preparation.build import build
from epsearch.service.requests import SERVER_SET
from epsearch.study.description import Study
from epsearch.study.kinds import GROWS, KINDS, Search
from epsearch.study.option import DATASETS, GROUPS, SEARCHED, SEEDS, Option
from epsearch.study.published import published
from results.labels import label
from search_spaces.published.definition import definitions

FIRST = ("name", "dataset", "method", "methods", "sizes")
"""Fields that everybody looks for, in a group of their own."""
THE_STUDY = "The study"
OPEN = (THE_STUDY, SEARCHED, SEEDS)
"""Groups that are always unfolded at first."""
TITLED = {"method": "method", "dataset": "dataset", "strategy": "strategy"}
"""Option -> the kind of names that its values are."""
REWORDED = {
    "a name of `epsearch datasets`": "one of the list",
    "; the same command goes on": "; Resume goes on",
    "over --interval": "over the interval",
    ", as --seeds": ", written as seeds are",
    "; or module:attribute": "",
}
"""Words of the help of commands -> those of a form."""
UNSAID = ("numeric_path",)
"""Options that a study has because it was trained."""
DATASET, METHOD = (str(Search.options()[name].default) for name in ("dataset", "method"))
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


async def typed(request: Request) -> dict[str, str]:
    """What was typed into a form, by field; without what was left empty."""
    form = await request.form(max_files=0, max_fields=500)
    return {name: value.strip()[:LONGEST] for name, value in form.items() if isinstance(value, str) and value.strip()}


def of_new(kind: str, values: Mapping[str, str], error: str = "") -> dict[str, list[Field]]:
    """Returns the form for a new study of a kind, group -> fields; error: the line about what was typed."""
    known = {name: one for name, one in KINDS[kind].options().items() if name not in SERVER_SET}
    wrong, usual = about(known, values, error), _usual(known, values)
    groups: dict[str, list[Field]] = {title: [] for title in (THE_STUDY, *GROUPS)}
    for name in dict.fromkeys((*FIRST, *known)):
        if one := known.get(name):
            field = _field(one, usual.get(name), values.get(name, ""), name == wrong)
            groups[THE_STUDY if name in FIRST else one.group].append(field)
    return {title: fields for title, fields in groups.items() if fields}


def unfolded(title: str, fields: Iterable[Field]) -> bool:
    """Whether a group of the form is unfolded at first."""
    return title in OPEN or any(one.value or one.wrong for one in fields)


def of_growth(study: Study, values: Mapping[str, str], error: str = "") -> list[Field]:
    """The form in which a stored search grows, with its present values where nothing was typed."""
    there, known = shown(study), study.options()
    wrong = about(known, values, error)
    return [
        _field(known[name], None, {**there, **values}.get(name, ""), name == wrong) for name in GROWS if name in known
    ]


def about(known: Mapping[str, Option], values: Mapping[str, str], error: str) -> str | None:
    """The field that an error is about: the one whose value alone is refused so, else the first that the line names."""
    for name, value in values.items() if error else ():
        if name in known and _refusal(known[name], value, values) == error:
            return name
    words = [word.lstrip("-").replace("-", "_") for word in re.findall(r"[\w-]+", error)]
    return next((word for word in words if word in known and (word in values or word == words[0])), None)


def _refusal(option: Option, value: str, values: Mapping[str, str]) -> str:
    try:
        option.parse(value, values.get("method") or METHOD)
    except (UsageError, ValueError) as error:
        return str(error)
    return ""


def _usual(known: Mapping[str, Option], values: Mapping[str, str]) -> dict[str, str]:
    """What the definition of the dataset says, as fields have it; {} where it says nothing of these."""
    dataset, method = values.get("dataset") or DATASET, values.get("method") or METHOD
    try:
        found = published(dataset, method if "method" in known else None)
    except (ValueError, KeyError):
        return {}
    texts = {name: _text(known[name].show(value)) for name, value in found.items() if name in known}
    return {name: f"{text} on {dataset}" for name, text in texts.items() if text}


def again(study: Study) -> dict[str, str]:
    """What of a form would make a study once more: its kind, its dataset, and what differs from the defaults."""
    named: dict[str, Any] = {name: study.value(name) for name in ("dataset", "method") if study.shown().get(name)}
    there = shown(study)
    if study.foreign:  # without asking the trainer what it declares: a process would be started for it
        usual = {name: _text(option.show(option.default)) for name, option in study.options().items()}
    else:
        usual = shown(build(type(study), named))
    kept = {name: text for name, text in there.items() if text and (name in named or text != usual.get(name))}
    return {"kind": study.kind} | {
        name: text for name, text in kept.items() if name not in (*SERVER_SET, "name", *UNSAID)
    }


def shown(study: Study) -> dict[str, str]:
    """Every option of a study as its field has it; "" for none."""
    return {name: _text(value) for name, value in study.shown().items()}


def changed(study: Study, values: Mapping[str, str]) -> dict[str, str]:
    """What of a form differs from a study: only that is asked for. A flag that is off says "false"."""
    there = shown(study)
    flags = {name for name, one in study.options().items() if name in GROWS and one.default is False}
    given = {name: values.get(name, "false" if name in flags else "") for name in GROWS}
    return {name: value for name, value in given.items() if value and value != (there.get(name) or "false")}


def _field(option: Option, fixed: str | None, value: str, wrong: bool) -> Field:
    """fixed: what the dataset's definition says; None where it says nothing, or that is no matter."""
    text = option.help
    default = _in_words(option.usual) if option.usual else _text(option.show(option.default))
    if fixed is not None and (default.startswith(DATASETS) or default == "0 1"):
        default = fixed
    allowed = _allowed(option)
    if option.default is False:
        kind = "flag"
    elif allowed and option.name != "dataset" and value in ("", *allowed):  # a plug-in's name is typed
        kind = "choice"
        for separator in (", ", " or "):  # they stand below each other already
            text = text.replace(f": {separator.join(allowed)}", "")
    else:
        kind = "text"
    titled = TITLED.get(option.name)
    choices = tuple((one, f"{one} · {label(titled, one)}" if titled else one) for one in allowed)
    title = option.name.replace("_", " ")
    return Field(option.name, title, _in_words(text), default, kind, choices, value, wrong)


def _in_words(text: str) -> str:
    """A help text without flags and commands, which a page has not."""
    for there, here in REWORDED.items():
        text = text.replace(there, here)
    return re.sub(r"--([a-z-]+)", lambda flag: flag[1].replace("-", " "), text).replace("`", "")


def _allowed(option: Option) -> Collection[str]:
    """The words that an option takes; () where it takes others, too."""
    if option.name == "dataset":
        return tuple(definitions())
    return tuple(option.type.choices)


def _text(value: Any) -> str:
    """A value as the command line would have it."""
    if isinstance(value, Mapping):
        # Settings are METHOD.NAME with commas between; others have blanks.
        separator = "," if any("." in name for name in value) else " "
        return separator.join(
            f"{name}={','.join(map(str, one)) if isinstance(one, list) else one}" for name, one in value.items()
        )
    if isinstance(value, (list, tuple)):
        separator = "," if all(isinstance(one, int) or str(one).isidentifier() for one in value) else " "
        return separator.join(map(_text, value))
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.10g}"
    return str(value).lower() if isinstance(value, bool) else str(value)
