"""How a study is made of options, a YAML file and the dataset's definition, and how the ledger's copy is read."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from epsearch.failures.errors import UsageError, brief, unknown
from epsearch.ledger.location import ledger_url
from epsearch.machine import cuda_present
from epsearch.preparation.rules import RULES
from epsearch.study import file, limits
from epsearch.study.description import Study
from epsearch.study.kinds import ASKED, KINDS, Search
from epsearch.study.limits import check_product
from epsearch.study.options import Option, default
from epsearch.study.published import of_methods, published
from results.ledger.url import LedgerUrl
from search_spaces.published.definition import load_definition
from trainers.cohort import IMAGE_NETWORKS, SMALLEST_IMAGE
from trainers.hyperparameters import Value

AnyStudy = TypeVar("AnyStudy", bound=Study)


def build(kind: type[AnyStudy], given: Mapping[str, Any], config: Path | None = None) -> AnyStudy:
    """The effective study: the command line over the YAML file over the dataset's definition.

    `given` maps option names to values; None means not given. Raises UsageError.
    """
    parsed = _parsed(kind, given, config)
    dataset = parsed.setdefault("dataset", default("dataset"))
    # From the weakest to the strongest: of a name that several have, the last value counts.
    values = {option.name: option.default for option in kind.options()} | _defined(kind, parsed) | parsed
    if values["network"] != "resnet18" and "pretrained" not in parsed:
        values["pretrained"] = None  # the definition's are another network's
    if "settings" in values:
        values["settings"] = _settings(values, "settings" in parsed)
    values["storage"] = ledger_url(values["out"], values["storage"])
    values["device"] = _device(values["device"])
    study = kind.of(values)
    _check(study)
    if values["name"] is not None:
        return study
    return replace(study, name=f"{study.prefix}{_name(dataset)}-{study.digest()}")


def places(given: Mapping[str, Any], config: Path | None = None) -> tuple[str | None, Path, LedgerUrl]:
    """(name, out folder, URL of the ledger) of a search. Raises UsageError."""
    parsed = _parsed(Search, given, config)
    out = parsed.get("out", default("out"))
    return parsed.get("name"), out, ledger_url(out, parsed.get("storage"))


def grow(stored: Search, given: Mapping[str, Any], config: Path | None = None) -> Search:
    """A stored search with other options; `growth.check_growth` says which it may have. Raises UsageError."""
    parsed = _parsed(Search, given, config)
    parsed.setdefault("search", None if given.get("interval") is not None else stored.search)
    parsed["device"] = _device(parsed.get("device", stored.device))
    study = stored.but(**parsed | {"out": stored.out, "storage": stored.storage})
    _check(study)
    return study


def restore(stored: Mapping[str, Any], name: str, out: Path, storage: LedgerUrl) -> Study:
    """What a ledger keeps under `name`, with today's places. A search has no `kind` there.

    Raises UsageError where it names what is not known, or whatever the text it was made from raises.
    """
    command = stored.get("kind", Search.kind)
    if command not in KINDS:
        raise UsageError(unknown("command", command, KINDS))
    kind = KINDS[command]
    options = {option.name: option for option in kind.options()}
    said = stored["study"] | {name: stored[name] for name in ASKED if name in stored}
    known = {key: _option(key, options).parse(value) for key, value in said.items() if value is not None}
    places = {"name": name, "out": out, "storage": storage, "numeric_path": stored["numeric_path"]}
    defaults = {option.name: option.default for option in options.values()} | _defined(kind, known)
    return kind.of(defaults | known | places)


def _name(dataset: str) -> str:
    """A dataset as a part of a study's name: of a user's own, the folder's or the module's.

    >>> _name("split_cifar"), _name("folder:/data/My birds.zip"), _name("mine.streams:factory")
    ('split_cifar', 'My-birds', 'mine.streams-factory')
    """
    kind, colon, rest = dataset.partition(":")
    text = dataset if not colon else Path(rest).stem if kind == "folder" else f"{kind}-{rest}"
    return re.sub(r"[^\w.-]+", "-", text)


def _parsed(kind: type[Study], given: Mapping[str, Any], config: Path | None) -> dict[str, Any]:
    """What the command line and the YAML file say, as values."""
    options = {option.name: option for option in kind.options()}
    chosen = {**_read_yaml(config, options), **{name: value for name, value in given.items() if value is not None}}
    parsed = {name: _value(_option(name, options), value) for name, value in chosen.items() if value is not None}
    if given.get("interval") is not None:
        if given.get("search") is not None:
            raise UsageError("interval is that of ε alone; give it within --search, like epsilon=0..0.5")
        parsed.pop("search", None)  # a file's
    return parsed


def _option(name: str, options: Mapping[str, Option]) -> Option:
    if name not in options:
        raise UsageError(unknown("option", name, options))
    return options[name]


def _value(option: Option, given: Any) -> Any:
    try:
        return option.parse(given)
    except (ValueError, OverflowError):  # a file's number of more digits than Python turns into a text
        raise UsageError(f"{option.flag.removeprefix('--')} cannot be {brief(given)}") from None


def _read_yaml(path: Path | None, allowed: Mapping[str, Option]) -> dict[str, Any]:
    options = {} if path is None else file.read(path)
    for key in options:
        if key not in allowed:
            raise UsageError(f"{path}: {unknown('option', key, allowed)}")
    return options


def _defined(kind: type[Study], parsed: Mapping[str, Any]) -> dict[str, Any]:
    """What the definition of the dataset fixes, under the names of the options."""
    dataset = parsed["dataset"]
    rules = RULES[kind.kind]
    listed = load_definition(dataset).methods
    try:
        known = published(dataset, rules.method(parsed))
    except ValueError as error:
        raise UsageError(str(error)) from None
    known["methods"] = tuple(name for name in rules.methods() if name in listed)
    return {option.name: known[option.name] for option in kind.options() if option.name in known}


def _settings(values: Mapping[str, Any], given: bool) -> tuple[tuple[str, str, Value], ...]:
    """What each method has a value of its own for: given, or the definition's; none where the tuning will choose."""
    if values.get("tune"):
        if given and values["settings"]:
            raise UsageError("settings and tune exclude each other: the grids are the published ones")
        return ()
    known = of_methods(values["dataset"])
    own = {(name, field): value for name in values["methods"] for field, value in known.get(name, {}).items()}
    own |= {(name, field): value for name, field, value in values["settings"]}
    return tuple((name, field, value) for (name, field), value in own.items())


def _device(wanted: str) -> str:
    if wanted == "cpu":
        return "cpu"
    if cuda_present():
        return "cuda"
    if wanted == "cuda":
        raise UsageError("device is 'cuda', but torch finds no CUDA GPU here; allowed here: cpu, auto")
    return "cpu"


def _check(study: Study) -> None:
    """Conditions between options."""
    _check_sizes(study)
    if study.precision == "tf32" and study.device != "cuda":
        raise UsageError("precision tf32 is arithmetic of NVIDIA GPUs; with device cpu only float32 is allowed")
    if study.cv_tasks >= study.tasks:
        raise UsageError(
            f"cv-tasks must be < tasks, so that tasks remain for the evaluation; got {study.cv_tasks} and {study.tasks}"
        )
    if study.examples_per_task is not None and study.examples_per_task < study.largest_batch:
        raise UsageError(
            f"examples-per-task must be >= batch-size, got {study.examples_per_task} and {study.largest_batch}"
        )
    _check_images(study)
    RULES[study.kind].check(study)


def _check_sizes(study: Study) -> None:
    """Numbers that fit one by one must not be too many together."""
    seeds = {seed for phase in ("cv", "eval") for seed in study.stream_seeds(phase)}
    check_product("different tasks", limits.STREAMS, seeds=len(seeds), tasks=study.tasks)
    RULES[study.kind].check_sizes(study)


def _check_images(study: Study) -> None:
    """What streams of images are told must fit them, and be kept from others."""
    fixed = load_definition(study.dataset).image_size is None
    for name, value in (("classes-per-task", study.classes_per_task), ("image-size", study.image_size)):
        if fixed and value is not None:
            raise UsageError(f"{name} is for streams of images, got {value} for {study.dataset}")
    if not fixed and study.network not in IMAGE_NETWORKS:
        raise UsageError(f"network must be {' or '.join(IMAGE_NETWORKS)} on {study.dataset}, got {study.network!r}")
    if study.pretrained is not None and study.network != "resnet18":
        raise UsageError(f"pretrained weights are for network resnet18, got {study.network}; allowed: none")
    smallest = SMALLEST_IMAGE.get(study.network)
    if smallest is not None and study.image_size is not None and study.image_size < smallest:
        raise UsageError(f"image-size must be >= {smallest} for network {study.network}, got {study.image_size}")
