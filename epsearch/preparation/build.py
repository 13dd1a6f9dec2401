"""How a study is made of options, a YAML file and the dataset's definition, and how the ledger's copy is read."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from epsearch.failures.errors import UsageError, refused, unknown
from epsearch.ledger.location import check_no_file_of, ledger_url
from epsearch.machine import cuda_present
from epsearch.preparation.trainers import declare, of_trainer
from epsearch.study import file, limits
from epsearch.study.description import Study
from epsearch.study.hyperparameters import stored_space
from epsearch.study.kinds import KINDS, REQUESTS, Search
from epsearch.study.limits import check_product
from epsearch.study.names import register_trainer, trainer
from epsearch.study.option import RACE, TRAINER
from epsearch.study.parsers import one_of, study_name
from epsearch.study.published import of_methods, published
from results.ledger.url import LedgerUrl
from search_spaces.published.definition import load_definition
from trainers.cohort import IMAGE_NETWORKS, SMALLEST_IMAGE
from trainers.hyperparameters import Value
from trainers.methods import own_hyperparameters

AnyStudy = TypeVar("AnyStudy", bound=Study)

MOVED_STARTS = 2
"""Members whose rounding noise is measured where nobody says how many, and steps make it large: residual networks."""


def build(kind: type[AnyStudy], given: Mapping[str, Any], config: Path | None = None) -> AnyStudy:
    """Returns the effective study: the command line over the YAML file over the dataset's definition.

    given: by the names of options, values as they are written or as the fields have them; None means not given.
    config: a YAML file of options. A study without a name gets one of its dataset and a hash of its options. Raises
    UsageError, one line, for a value or file that cannot be, and for options that do not fit each other. No data is
    looked at: what depends on it, `data.prepare` checks.
    """
    study, parsed, usual = _described(kind, given, config)
    _check(study)
    _check_idle(study, parsed, usual)
    if study.name is not None:
        return study
    # Only now is the identity known: the hash has the device, and all that the definition gave.
    prefix, end = f"{study.kind}-" if study.names_its_kind else "", f"-{study.digest()}"
    room = limits.NAME - len(prefix) - len(end)
    within = _name(study.dataset)[:room].encode()[: limits.NAME_BYTES - len(prefix) - len(end)].decode(errors="ignore")
    try:
        return replace(study, name=study_name(f"{prefix}{within}{end}", "name"))
    except UsageError:  # that of a folder of images, which may have any
        return replace(study, name=f"data{within if within[0] in '.-' else f'-{within}'}{end}")


def check_name(name: str, out: Path, storage: LedgerUrl) -> None:
    """Raises UsageError for what cannot be the name of a new study; those that are stored may have any."""
    check_no_file_of(storage, out, study_name(name, "name"))


def unsearched(given: Mapping[str, Any]) -> Search:
    """A search as `build` returns it, but for what it searches, which may be nothing, and how: that is not checked.

    It has no name, unless one is given. Raises UsageError.
    """
    study, *_ = _described(Search, given, None)
    _check_stream(study)
    return study


def _described(
    kind: type[AnyStudy], given: Mapping[str, Any], config: Path | None
) -> tuple[AnyStudy, dict[str, Any], dict[str, Any]]:
    """(a study that is not checked yet, the fields that somebody has named, what all are without). Raises UsageError.

    Its name is None where none is given.
    """
    parsed = {"dataset": kind.options()["dataset"].default, **_parsed(kind, given, config)}
    # From the weakest to the strongest: of a name that several have, the last value counts.
    usual = _defaults(kind, parsed)
    values = usual | parsed
    if values.get("trainer") is not None:
        values |= of_trainer(values, parsed)
    elif "moved_starts" in usual.keys() - parsed and values["network"] in IMAGE_NETWORKS:
        values["moved_starts"] = MOVED_STARTS
    if values["network"] != "resnet18" and "pretrained" not in parsed:
        values["pretrained"] = None  # the definition's are another network's
    if "set" in values:
        values["set"] = _own(values)
    if "settings" in values:
        values["settings"] = _settings(values, "settings" in parsed)
    # Now, so that the study says where its members were trained; its identity has the device, too.
    values["storage"] = ledger_url(values["out"], values["storage"])
    values["device"] = _device(values["device"])
    return kind.of(values), parsed, usual


def places(given: Mapping[str, Any], config: Path | None = None) -> tuple[str | None, Path, LedgerUrl]:
    """(name, out folder, URL of the ledger) of a search; the name is None where none is given. Raises UsageError."""
    named = ("name", "out", "storage")  # the others are read in the light of what the study is
    written = ({} if config is None else file.read(config)) | {
        name: one for name, one in given.items() if one is not None
    }
    parsed = _values(Search, {one: written[one] for one in named if one in written})
    parsed.setdefault("out", Search.options()["out"].default)
    return parsed.get("name"), parsed["out"], ledger_url(parsed["out"], parsed.get("storage"))


def grow(stored: Search, given: Mapping[str, Any], config: Path | None = None) -> Search:
    """A stored search with other options; `growth.check_growth` says which it may have.

    Where it lies is not changed by what is given: it has been found there. Raises UsageError.
    """
    parsed = _parsed(Search, given, config, stored.method)
    # An interval that is given is to be searched, not what was searched before.
    parsed.setdefault("search", None if given.get("interval") is not None else stored.search)
    parsed["device"] = _device(parsed.get("device", stored.device))
    if parsed.get("race", stored.race) != stored.race:
        parsed = {name: one.default for name, one in Search.options().items() if one.part == RACE} | parsed
    study = stored.but(**parsed | {"out": stored.out, "storage": stored.storage})
    _check(study)
    return study


def elsewhere(stored: Study, given: Mapping[str, Any]) -> Study:
    """A stored study with other options that say where and how it runs. Raises UsageError."""
    return stored.but(**_parsed(type(stored), given, None))


def restore(stored: Mapping[str, Any], name: str, out: Path, storage: LedgerUrl) -> Study:
    """What a ledger keeps under `name`, with today's places. A search has no `kind` there.

    Raises UsageError where it names what is not known, or whatever the text it was made from raises.
    """
    kind = KINDS[one_of(stored.get("kind", Search.kind), "command", KINDS)]
    written = kind.options_of(stored["study"])
    if (named := written.get("trainer")) is not None:
        register_trainer(named)  # which takes whatever values the study has: it may declare others now
        if written.get("search"):
            written["search"] = stored_space(written["search"])
    known = _values(kind, written | {name: stored[name] for name in REQUESTS if name in stored})
    if known.get("trainer") is not None:
        known["method"] = known["trainer"]
    places = {"name": name, "out": out, "storage": storage, "numeric_path": stored["numeric_path"]}
    return kind.of(_defaults(kind, known) | known | places)


def _name(dataset: str) -> str:
    """A dataset as a part of a study's name: of a user's own, the folder's or the module's.

    >>> _name("split_cifar"), _name("folder:/data/My birds.zip"), _name("mine.streams:factory")
    ('split_cifar', 'My-birds', 'mine.streams-factory')
    """
    kind, colon, rest = dataset.partition(":")
    own = Path(rest).stem if kind == "folder" else f"{kind}-{rest}"
    return re.sub(r"[^\w.-]+", "-", own if colon else dataset)


def _parsed(
    kind: type[Study], given: Mapping[str, Any], config: Path | None, method: str | None = None
) -> dict[str, Any]:
    """What the command line and the YAML file say, as fields have it, by name; method: where they name none.

    Raises UsageError.
    """
    written = {} if config is None else file.read(config)
    for key in written:
        if key not in (allowed := kind.options()):
            raise UsageError(f"{config}: {unknown('option', key, allowed)}")
    if (named := {**written, **given}.get("trainer")) is not None:
        declare(trainer(named, "trainer"))
    parsed = _values(kind, {**written, **{name: value for name, value in given.items() if value is not None}}, method)
    if given.get("interval") is not None:
        if given.get("search") is not None:
            raise UsageError("interval is that of ε alone; give it within --search, like epsilon=0..0.5")
        parsed.pop("search", None)  # a file's, which the command line goes over
    return parsed


def _values(kind: type[Study], written: Mapping[str, Any], method: str | None = None) -> dict[str, Any]:
    """The fields' values of options as they are written; None is not given. method: where none is."""
    known = kind.options()
    method = method or (known["method"].default if "method" in known else None)
    for name, option in known.items():
        if option.part == TRAINER and written.get("trainer") is None and written.get(name) is not None:
            raise UsageError(f"{name.replace('_', '-')} is for a trainer of your own; give --trainer, or leave it out")
    for name in ("method", "trainer"):
        if name in known and written.get(name) is not None:
            method = known[name].parse(written[name])  # before what is read in its light, wherever that stands
    return {
        name: known[one_of(name, "option", known)].parse(value, method)
        for name, value in written.items()
        if value is not None
    }


@refused(ValueError)
def _defaults(kind: type[Study], parsed: Mapping[str, Any]) -> dict[str, Any]:
    """Every option's default, or what the definition of the dataset fixes in its place."""
    defaults = {name: option.default for name, option in kind.options().items()}
    known = published(parsed["dataset"], {**defaults, **parsed}.get("method"))
    given = load_definition(parsed["dataset"]).methods
    known["methods"] = tuple(name for name in kind.trainable() if name in given)
    return defaults | {name: value for name, value in known.items() if name in defaults}


def _settings(values: Mapping[str, Any], given: bool) -> tuple[tuple[str, str, Value], ...]:
    """What each method has a value of its own for: given, or the definition's; none where the tuning will choose.

    given: whether the user has said any. Raises UsageError where both the user and the tuning would choose.
    """
    if values.get("tune"):
        if given and values["settings"]:
            raise UsageError("settings and tune exclude each other: the grids are the published ones")
        return ()
    known = of_methods(values["dataset"])
    own = {(name, field): value for name in values["methods"] for field, value in known.get(name, {}).items()}
    own |= {(name, field): value for name, field, value in values["settings"]}
    return tuple((name, field, value) for (name, field), value in own.items())


def _own(values: Mapping[str, Any]) -> tuple[tuple[str, Value], ...]:
    """Of the hyperparameters that the method alone has, the values that are given, else the declared ones."""
    declared = {one.name: one.default for one in own_hyperparameters(values["method"]).values()}
    return tuple((declared | dict(values["set"])).items())


def _device(wanted: str) -> str:
    """The device that is meant: of "auto", what this machine has. Raises UsageError."""
    present = wanted != "cpu" and cuda_present()
    if wanted == "cuda" and not present:
        raise UsageError("device is 'cuda', but torch finds no CUDA GPU here; allowed here: cpu, auto")
    return "cuda" if present else "cpu"


def _check_idle(study: Study, parsed: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    """A value that is given and changes no result would begin another study of the same results. Raises UsageError."""
    for name in parsed:
        if parsed[name] != usual[name] and (why := study.idle(name)):
            raise UsageError(f"{name.replace('_', '-')} {parsed[name]} changes nothing: {why}; leave it out")


def _check(study: Study) -> None:
    """Conditions between options. Raises UsageError with the first line that is true."""
    _check_stream(study)
    if study.name is not None:
        check_name(study.name, study.out, study.storage)
    # Late: a study that a ledger has is read without checks, and so without the loop and the streams that they need.
    from epsearch.preparation.checks import CHECKS

    CHECKS[study.kind].check(study)


def _check_stream(study: Study) -> None:
    """Those that have nothing to do with the kind of study."""
    # Before all else: what is too large would take long to be looked at.
    check_product("different tasks", limits.STREAMS, seeds=len(study.all_seeds), tasks=study.tasks)
    examples, batch, size = study.examples_per_task, study.largest_batch, study.image_size
    fixed, smallest = load_definition(study.dataset).image_size is None, SMALLEST_IMAGE.get(study.network, 0)
    smallest = 0 if study.foreign else smallest
    for wrong, line in (
        (
            study.precision == "tf32" and study.device != "cuda",
            "precision tf32 is arithmetic of NVIDIA GPUs; with device cpu only float32 is allowed",
        ),
        (
            study.cv_tasks >= study.tasks,
            "cv-tasks must be < tasks, so that tasks remain for the evaluation; "
            f"got {study.cv_tasks} and {study.tasks}",
        ),
        (
            examples is not None and examples < batch,
            f"examples-per-task must be >= batch-size, got {examples} and {batch}",
        ),
        (
            fixed and study.classes_per_task is not None,
            f"classes-per-task is for streams of images, got {study.classes_per_task} for {study.dataset}",
        ),
        (fixed and size is not None, f"image-size is for streams of images, got {size} for {study.dataset}"),
        (
            not fixed and study.network == "mlp" and not study.foreign,
            f"network must be {' or '.join(IMAGE_NETWORKS)} on {study.dataset}, got {study.network!r}",
        ),
        (
            study.pretrained is not None and study.network != "resnet18",
            f"pretrained weights are for network resnet18, got {study.network}; allowed: none",
        ),
        (
            size is not None and size < smallest,
            f"image-size must be >= {smallest} for network {study.network}, got {size}",
        ),
    ):
        if wrong:
            raise UsageError(line)
