"""Forms made of the options of studies: fields, help, and the values in them."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fastapi import Request

from epsearch.failures.errors import UsageError
from epsearch.machine import cuda_present, mps_present
from epsearch.preparation.build import build
from epsearch.service.requests import SERVER_SET
from epsearch.service.settings import Settings
from epsearch.study.description import Study
from epsearch.study.kinds import KINDS, Search
from epsearch.study.option import DATASETS, GROUPS, SEARCHED, SEEDS, TRAINER, Option
from epsearch.study.published import published_settings
from results.labels import label
from search_spaces.published.definition import definitions
from search_spaces.published.pack import Pack, load_pack, packs

FIRST = ("name", "dataset", "method", "methods", "sizes")
"""The most important fields, in a group of their own."""
THE_STUDY = "The study"
OPEN = (THE_STUDY, SEARCHED, SEEDS)
"""Groups that are always unfolded at first."""
LABELS = {"method": "method", "dataset": "dataset", "strategy": "strategy"}
"""Option -> type of its labels."""
REWORDED = {
    "a name of `epsearch datasets`": "one of the list",
    "; the same command goes on": "; Resume goes on",
    "over --interval": "over the interval",
    ", as --seeds": ", written as seeds are",
}
"""Words of the help of commands -> words of a form."""
MODULES = ("trainer", "add_figures")
"""Options whose values always name code of the service's machine; those of others may."""
OF_FOLDERS, OF_MODULES = re.compile(r"; [^;]*folder:PATH[^;]*"), re.compile(r"; (or )?module:\w+")
"""Parts of a help about what a service may not allow."""
TRAINED = ("numeric_path",)
"""Options that the first training of a study sets."""
DATASET, METHOD = (str(Search.options()[name].default) for name in ("dataset", "method"))
LONGEST = 10_000  # characters of a field


@dataclass(frozen=True)
class Field:
    """One option in a form."""

    name: str
    """Its name in the form."""
    title: str
    help: str
    usual: str
    """Value of an empty field, in words."""
    kind: str
    """`flag`, `choice` or `text`."""
    choices: tuple[tuple[str, str], ...] = ()
    """(value, title); suggestions of a text."""
    value: str = ""
    wrong: bool = False
    """True if the error is about it."""


async def read(request: Request) -> dict[str, str]:
    """Returns the values of a form by field, without empty ones."""
    form = await request.form(max_files=0, max_fields=500)
    return {name: value.strip()[:LONGEST] for name, value in form.items() if isinstance(value, str) and value.strip()}


def study_form(kind: str, values: Mapping[str, str], settings: Settings, error: str = "") -> dict[str, list[Field]]:
    """Returns the form for a new study of a kind, group -> fields: only what the service accepts.

    error: the message about its values.
    """
    options = {
        name: _service_option(option, settings)
        for name, option in KINDS[kind].options().items()
        if name not in SERVER_SET and (settings.modules or not (option.part == TRAINER or name in MODULES))
    }
    wrong, usual = wrong_field(options, values, error), _usual(options, values)
    groups: dict[str, list[Field]] = {title: [] for title in (THE_STUDY, *GROUPS)}
    for name in dict.fromkeys((*FIRST, *options)):
        if option := options.get(name):
            field = _field(option, usual.get(name), values.get(name, ""), name == wrong)
            groups[THE_STUDY if name in FIRST else option.group].append(field)
    return {title: fields for title, fields in groups.items() if fields}


def _service_option(option: Option, settings: Settings) -> Option:
    """Returns an option with the choices and the help that hold for a service."""
    text, usual, choices = option.help, option.usual, option.type.choices
    for part, allowed in ((OF_FOLDERS, settings.roots), (OF_MODULES, settings.modules)):
        text, usual = (text, usual) if allowed else (part.sub("", text), part.sub("", usual))
    if option.name == "device":
        absent = {"cuda": not cuda_present(), "mps": not mps_present()}
        choices = tuple(choice for choice in choices if not absent.get(choice))
    if option.name == "pretrained":
        choices = ("none", "imagenet")  # a path would be one of the service's machine
    return replace(option, help=text, usual=usual, type=replace(option.type, choices=choices))


def is_unfolded(title: str, fields: Iterable[Field]) -> bool:
    """Returns whether a group of the form is unfolded at first."""
    return title in OPEN or any(field.value or field.wrong for field in fields)


def extension_form(study: Study, values: Mapping[str, str], settings: Settings, error: str = "") -> list[Field]:
    """Returns the form to extend a search, with its present values in empty fields."""
    texts, options = field_values(study) | dict(values), study.options()
    wrong = wrong_field(options, values, error)
    return [
        _field(_service_option(options[name], settings), None, texts.get(name, ""), name == wrong)
        for name in study.extendable_options
    ]


def wrong_field(options: Mapping[str, Option], values: Mapping[str, str], error: str) -> str | None:
    """Returns the field of an error: its value alone gives this error, or the message names it first."""
    for name, value in values.items() if error else ():
        if name in options and _refusal(options[name], value, values) == error:
            return name
    words = [word.lstrip("-").replace("-", "_") for word in re.findall(r"[\w-]+", error)]
    return next((word for word in words if word in options and (word in values or word == words[0])), None)


def _refusal(option: Option, value: str, values: Mapping[str, str]) -> str:
    try:
        option.parse(value, values.get("method") or METHOD)
    except (UsageError, ValueError) as error:
        return str(error)
    return ""


def _usual(options: Mapping[str, Option], values: Mapping[str, str]) -> dict[str, str]:
    """Returns the defaults of the dataset's definition, as text; {} for an unknown dataset."""
    dataset, method = values.get("dataset") or DATASET, values.get("method") or METHOD
    try:
        defaults = published_settings(dataset, method if "method" in options else None)
    except (ValueError, KeyError):
        return {}
    texts = {name: _text(options[name].show(value)) for name, value in defaults.items() if name in options}
    return {name: f"{text} on {dataset}" for name, text in texts.items() if text}


def again(study: Study) -> dict[str, str]:
    """Returns the values of a form that make the same study: kind, dataset, and options other than the defaults."""
    basic: dict[str, Any] = {name: study.value(name) for name in ("dataset", "method") if study.to_dict().get(name)}
    if study.foreign:  # its declared defaults would take a process
        usual = {name: _text(option.show(option.default)) for name, option in study.options().items()}
    else:
        usual = field_values(build(type(study), basic))
    hidden = (*SERVER_SET, "name", *TRAINED)
    return {"kind": study.kind} | {
        name: text
        for name, text in field_values(study).items()
        if name not in hidden and text and (name in basic or text != usual.get(name))
    }


def field_values(study: Study) -> dict[str, str]:
    """Returns every option of a study as text; empty for None."""
    return {name: _text(value) for name, value in study.to_dict().items()} | {"from_pack": _pack_text(study.from_pack)}


def _pack_text(pack: Pack | None) -> str:
    """Returns the name of a pack; "" for one of the user's own, whose values stand in the other fields."""
    unchanged = pack is not None and pack.name in packs() and replace(pack, changed=()) == load_pack(pack.name)
    return pack.name if pack is not None and unchanged else ""


def changes(study: Study, values: Mapping[str, str]) -> dict[str, str]:
    """Returns the values of a form that differ from a study; "false" for a flag that is off."""
    before = field_values(study)
    may, options = study.extendable_options, study.options()
    after = {name: values.get(name, "false" if options[name].default is False else "") for name in may}
    return {name: value for name, value in after.items() if value and value != (before.get(name) or "false")}


def _field(option: Option, published: str | None, value: str, wrong: bool) -> Field:
    """Returns the field of an option; published: default of the dataset, None for any."""
    text = option.help
    default = in_words(option.usual) if option.usual else _text(option.show(option.default))
    if published is not None and (default.startswith(DATASETS) or default == "0 1"):
        default = published
    allowed = _allowed_values(option)
    if option.default is False:
        kind = "flag"
    elif allowed and option.name != "dataset" and value in ("", *allowed):  # the name of a plug-in is text
        kind = "choice"
        for separator in (", ", " or "):  # the choices are a list already
            text = text.replace(f": {separator.join(allowed)}", "")
    else:
        kind = "text"
    labels = LABELS.get(option.name)
    choices = tuple((choice, f"{choice} · {label(labels, choice)}" if labels else choice) for choice in allowed)
    title = option.name.replace("_", " ")
    return Field(option.name, title, in_words(text), default, kind, choices, value, wrong)


def in_words(text: str) -> str:
    """Returns a text without flags and commands, which a page does not have."""
    for before, after in REWORDED.items():
        text = text.replace(before, after)
    return re.sub(r"--([a-z-]+)", lambda flag: flag[1].replace("-", " "), text).replace("`", "")


def _allowed_values(option: Option) -> Collection[str]:
    """Returns the only values of an option; () if it accepts others, too."""
    if option.name == "dataset":
        return tuple(definitions())
    return tuple(option.type.choices)


def _text(value: Any) -> str:
    """Returns a value as on the command line."""
    if isinstance(value, Mapping):
        # Names of settings are METHOD.NAME, separated by commas; others by blanks.
        separator = "," if any("." in name for name in value) else " "
        return separator.join(
            f"{name}={','.join(map(str, item)) if isinstance(item, list) else item}" for name, item in value.items()
        )
    if isinstance(value, (list, tuple)):
        separator = "," if all(isinstance(item, int) or str(item).isidentifier() for item in value) else " "
        return separator.join(map(_text, value))
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.10g}"
    return str(value).lower() if isinstance(value, bool) else str(value)
