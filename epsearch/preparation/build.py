"""Builds studies from options, YAML files and definitions, and from stored rows."""

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from epsearch.failures.errors import UsageError, refused, unknown
from epsearch.ledger.location import check_no_file_of, ledger_url
from epsearch.machine import cuda_present
from epsearch.preparation.trainers import declare, of_trainer
from epsearch.study import file, limits
from epsearch.study.description import Study
from epsearch.study.hyperparameters import stored_space
from epsearch.study.kinds import (
    CV_TASKS,
    EXTRAPOLATED,
    KINDS,
    REQUESTS,
    Comparison,
    ProtocolStudy,
    Search,
    at_the_end,
)
from epsearch.study.limits import check_product
from epsearch.study.names import SHARED, register_trainer, trainer
from epsearch.study.option import RACE, TRAINER
from epsearch.study.parsers import one_of, study_name
from epsearch.study.published import of_methods, published
from results.labels import OF_POINTS
from results.ledger.url import LedgerUrl
from search_spaces.published.definition import load_definition
from search_spaces.published.pack import Pack
from trainers.cohort import IMAGE_NETWORKS, SMALLEST_IMAGE, Architecture
from trainers.hyperparameters import Value
from trainers.methods import method as declared_method
from trainers.methods import own_hyperparameters

AnyStudy = TypeVar("AnyStudy", bound=Study)

HELD_OUT = ProtocolStudy.options()["validation"].default
"""Share that is held out where held-out examples choose."""
FREE = ("seeds", "methods", "device", "precision", "claim")
"""Options that may differ from those of a pack, whose row is trained all the same."""
OF_A_PACK = {"dataset", "methods", "settings", "seeds", "tune", "device", "precision"}
"""Options that are no settings of a pack, which has fields for them, or leaves them to the user."""
MOVED_STARTS = 2
"""Default number of members of residual networks whose rounding noise is measured."""


def build(kind: type[AnyStudy], given: Mapping[str, Any], config: Path | None = None) -> AnyStudy:
    """Returns the effective study: the command line over the YAML file over the dataset's definition.

    given: values by option, as text or of the field's type, None for the default; config: a YAML file of options. The
    default name consists of the dataset and a hash of the options. A search by a protocol that chooses otherwise than
    by scores, once, becomes a study of this protocol. Raises UsageError, one line, for invalid values and files, and
    for options that do not fit each other. Data are checked by `data.prepare`.
    """
    parsed = _parsed(kind, given, config)
    if "protocol" in kind.options() and not _chooses_by_scores(parsed.get("protocol", CV_TASKS)):
        return cast(AnyStudy, _of_one_protocol(parsed))
    study, usual = _described(kind, parsed)
    _check(study)
    _check_idle(study, parsed, usual)
    if study.name is not None:
        return study
    # The hash includes the device and the definition's values.
    prefix, end = f"{study.kind}-" if study.names_its_kind else "", f"-{study.digest()}"
    room = limits.NAME - len(prefix) - len(end)
    within = (
        (_name(study.dataset) if study.from_pack is None else study.from_pack.name)[:room]
        .encode()[: limits.NAME_BYTES - len(prefix) - len(end)]
        .decode(errors="ignore")
    )
    try:
        return replace(study, name=study_name(f"{prefix}{within}{end}", "name"))
    except UsageError:  # a folder of images may have any name
        return replace(study, name=f"data{within if within[0] in '.-' else f'-{within}'}{end}")


def check_name(name: str, out: Path, storage: LedgerUrl) -> None:
    """Raises UsageError for an invalid name of a new study."""
    check_no_file_of(storage, out, study_name(name, "name"))


def unsearched(given: Mapping[str, Any]) -> Search:
    """Returns a search without checks of its space and strategy, and without a default name.

    Raises UsageError.
    """
    study, _ = _described(Search, _parsed(Search, given, None))
    _check_stream(study)
    return study


def _described(kind: type[AnyStudy], explicit: Mapping[str, Any]) -> tuple[AnyStudy, dict[str, Any]]:
    """Returns an unchecked study, and all defaults; explicit: parsed values. Raises UsageError.

    Its name may be None.
    """
    parsed = {"dataset": kind.options()["dataset"].default, **explicit}
    usual = _defaults(kind, parsed)
    values = usual | parsed
    if "score_on" in values:
        values |= _of_protocol(values, parsed)
    if values.get("trainer") is not None:
        values |= of_trainer(values, parsed)
    elif "moved_starts" in usual.keys() - parsed and values["network"] in IMAGE_NETWORKS:
        values["moved_starts"] = MOVED_STARTS
    if values["network"] != "resnet18" and "pretrained" not in parsed:
        values["pretrained"] = None  # those of the definition are for resnet18
    if "set" in values:
        values["set"] = _own(values)
    if "settings" in values:
        values["settings"] = _settings(values, "settings" in parsed)
    values["storage"] = ledger_url(values["out"], values["storage"])
    values["device"] = _device(values["device"])
    return kind.of(values), usual


# Late, as they import numpy, and most stored studies are read without.
def _chooses_by_scores(name: str) -> bool:
    """Returns whether a protocol makes a search."""
    from epsearch.protocols.registry import chooses_by_scores

    return name == CV_TASKS or chooses_by_scores(name)


def _of_protocol(values: Mapping[str, Any], explicit: Collection[str]) -> dict[str, Any]:
    """Returns protocol, scoring stream and held-out share of a search as they go together.

    explicit: names of the options that were set; the usual share is held out where held-out examples choose.
    """
    name = values["protocol"]
    if values["score_on"] == "eval" and name == CV_TASKS:  # the older option alone
        name = at_the_end(values["validation"])
    if name == CV_TASKS:
        return {}
    from epsearch.protocols.protocol import EVALUATION, TEST
    from epsearch.protocols.registry import protocol

    view = protocol(name).view
    if view is None or view.stream != EVALUATION:
        return {}
    held_out = {} if view.tests == TEST or "validation" in explicit else {"validation": HELD_OUT}
    return {"protocol": name, "score_on": "eval"} | held_out


def _of_one_protocol(parsed: Mapping[str, Any]) -> ProtocolStudy:
    """Returns the study of the protocol alone that a search names. Raises UsageError for options of a search only."""
    from epsearch.protocols.protocol import TEST
    from epsearch.protocols.registry import protocol

    name, own = parsed["protocol"], ProtocolStudy.options()
    usual = _defaults(Search, {"dataset": own["dataset"].default, **parsed})
    for option, value in parsed.items():
        if option not in (*own, "protocol") and value != usual[option]:
            raise UsageError(
                f"{option.replace('_', '-')} is not for protocol {name}, which searches otherwise; leave it out"
            )
    view = protocol(name).view
    if view is None or view.tests == TEST:  # nothing chooses by what is held out
        parsed = {"validation": 0.0, **parsed}
    return build(
        ProtocolStudy, {option: value for option, value in parsed.items() if option in own} | {"protocols": (name,)}
    )


def places(given: Mapping[str, Any], config: Path | None = None) -> tuple[str | None, Path, LedgerUrl]:
    """Returns the name, which may be None, the out folder and the ledger of a search. Raises UsageError."""
    named = ("name", "out", "storage")  # other options depend on the kind of study
    written = ({} if config is None else file.read(config)) | {
        name: value for name, value in given.items() if value is not None
    }
    parsed = _values(Search, {name: written[name] for name in named if name in written})
    parsed.setdefault("out", Search.options()["out"].default)
    return parsed.get("name"), parsed["out"], ledger_url(parsed["out"], parsed.get("storage"))


def extend_search(stored: Search, given: Mapping[str, Any], config: Path | None = None) -> Search:
    """Returns a stored search with other options, see `history.check_extension`.

    Its ledger and out folder do not change. Raises UsageError.
    """
    parsed = _parsed(Search, given, config, stored.method)
    # A new interval replaces the stored space.
    parsed.setdefault("search", None if given.get("interval") is not None else stored.search)
    parsed["device"] = _device(parsed.get("device", stored.device))
    if parsed.get("race", stored.race) != stored.race:
        parsed = {name: option.default for name, option in Search.options().items() if option.part == RACE} | parsed
    named = {name: stored.value(name) for name in ("protocol", "score_on", "validation")}
    parsed |= _of_protocol(named | parsed, ("validation",))
    study = stored.but(**parsed | {"out": stored.out, "storage": stored.storage})
    _check(study)
    return study


def with_options(stored: Study, given: Mapping[str, Any]) -> Study:
    """Returns a stored study with other options of where and how it runs. Raises UsageError."""
    return stored.but(**_parsed(type(stored), given, None))


def restore(stored: Mapping[str, Any], name: str, out: Path, storage: LedgerUrl) -> Study:
    """Returns a stored study, with the current ledger and out folder; searches have no stored `kind`.

    Raises UsageError for unknown names, and other errors for corrupt values.
    """
    kind = KINDS[one_of(stored.get("kind", Search.kind), "command", KINDS)]
    written = kind.options_of(stored["study"])
    if (named := written.get("trainer")) is not None:
        register_trainer(named)  # accepts any value: the trainer may have other declarations now
        if written.get("search"):
            written["search"] = stored_space(written["search"])
    known = _values(kind, written | {name: stored[name] for name in REQUESTS if name in stored})
    if known.get("trainer") is not None:
        known["method"] = known["trainer"]
    places = {"name": name, "out": out, "storage": storage, "numeric_path": stored["numeric_path"]}
    return kind.of(_defaults(kind, known) | known | places)


def _name(dataset: str) -> str:
    """Returns a dataset as a part of a study's name, e.g. the name of its folder.

    >>> _name("split_cifar"), _name("folder:/data/My birds.zip"), _name("mine.streams:factory")
    ('split_cifar', 'My-birds', 'mine.streams-factory')
    """
    kind, colon, rest = dataset.partition(":")
    own = Path(rest).stem if kind == "folder" else f"{kind}-{rest}"
    return re.sub(r"[^\w.-]+", "-", own if colon else dataset)


def _parsed(
    kind: type[Study], given: Mapping[str, Any], config: Path | None, method: str | None = None
) -> dict[str, Any]:
    """Returns parsed values of the command line and the YAML file, by name; method: their default.

    Raises UsageError.
    """
    written = {} if config is None else file.read(config)
    for key in written:
        if key not in (allowed := kind.options()):
            raise UsageError(f"{config}: {unknown('option', key, allowed)}")
    if (named := {**written, **given}.get("trainer")) is not None:
        declare(trainer(named, "trainer"))
    written = _joined(kind, written, {name: value for name, value in given.items() if value is not None})
    if written.get("from_pack") is not None:
        written = _with_pack(kind, written)
    parsed = _values(kind, written, method)
    if (tests := parsed.pop("on", None)) is not None:
        from epsearch.protocols.registry import on_tests

        parsed["protocol"] = on_tests(parsed.get("protocol", CV_TASKS), tests)
    if given.get("interval") is not None:
        if given.get("search") is not None:
            raise UsageError("interval is that of ε alone; give it within --search, like epsilon=0..0.5")
        parsed.pop("search", None)  # of the file, as the command line wins
    return parsed


def _with_pack(kind: type[Study], written: Mapping[str, Any]) -> dict[str, Any]:
    """Returns values over those of their pack, which lists the options that have others. Raises UsageError."""
    pack: Pack = kind.options()["from_pack"].parse(written["from_pack"])
    own = _of_pack(kind, pack)
    try:
        usual = _values(kind, own)
    except UsageError as error:
        raise UsageError(f"pack {pack.name}: {error}") from error
    usual = _defaults(kind, usual) | usual
    explicit = _values(kind, {name: value for name, value in written.items() if name != "from_pack"})
    if "settings" in explicit:  # what is left out is that of the definition, also where it is written
        usual, explicit = (
            one | {"settings": {*_settings(usual | one | {"methods": (pack.method,), "tune": False}, False)}}
            for one in (usual, explicit)
        )
        explicit["settings"] = {one for one in explicit["settings"] if one[0] == pack.method}
    changed = [
        name.replace("_", "-")
        for name, value in explicit.items()
        if kind.options()[name].identifies and name not in FREE and value != usual[name]
    ]
    return own | dict(written) | {"from_pack": replace(pack, changed=tuple(changed))}


def _of_pack(kind: type[Study], pack: Pack) -> dict[str, Any]:
    """Returns the options of a kind that a pack sets, unparsed. Raises UsageError for a setting that nobody has."""
    options, own = kind.options(), {one.name for one in declared_method(pack.method).hyperparameters}
    known = {name for name, one in Comparison.options().items() if one.identifies} - OF_A_PACK | own
    for name in pack.settings:
        if name not in known:
            near = difflib.get_close_matches(name, sorted(known), n=1)
            hint = f"did you mean {near[0]!r}?" if near else "`epsearch compare --help-all` lists them"
            raise UsageError(f"pack {pack.name}: no setting {name!r}; {hint}")
    values: dict[str, Any] = {name: value for name, value in pack.settings.items() if name in options}
    if "method" in options:
        values["method"] = pack.method
    if "methods" in options:
        apart = {name: value for name, value in pack.settings.items() if name in own - options.keys() - {*SHARED}}
        values |= {"methods": pack.method, "settings": {f"{pack.method}.{name}": apart[name] for name in apart}}
    return values | {"dataset": pack.dataset, "seeds": pack.seeds}


def _joined(kind: type[Study], file: Mapping[str, Any], line: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of a YAML file and of the command line, which wins. Raises UsageError."""
    sources = file, line
    written = {name: value for source in sources for name, value in _ends(kind, source).items()}
    for one, other in (("protocol", "score_on"), ("score_on", "protocol")):
        if one in line and other not in line:
            written.pop(other, None)
    for tasks in (str(source.get("cv_tasks", "")) for source in sources):
        if ".." in tasks and written.get("protocol") != EXTRAPOLATED and "protocol" in kind.options():
            raise UsageError(f"cv-tasks must be one number without --protocol extrapolated, got {tasks}")
    return written


def _ends(kind: type[Study], written: Mapping[str, Any]) -> dict[str, Any]:
    """Returns values with those of both options of which cv-tasks 3..10 is short."""
    first, between, last = str(written.get("cv_tasks", "")).partition("..")
    if not between or "most_cv_tasks" not in kind.options():
        return dict(written)
    if written.get("most_cv_tasks") is not None:
        raise UsageError(f"cv-tasks {first}..{last} is short for most-cv-tasks {last}, too; leave one of them out")
    return {**written, "cv_tasks": first, "most_cv_tasks": last}


def _values(kind: type[Study], written: Mapping[str, Any], method: str | None = None) -> dict[str, Any]:
    """Returns parsed values of options, without None; method: the default."""
    options = kind.options()
    method = method or (options["method"].default if "method" in options else None)
    for name, option in options.items():
        if option.part == TRAINER and written.get("trainer") is None and written.get(name) is not None:
            raise UsageError(f"{name.replace('_', '-')} is for a trainer of your own; give --trainer, or leave it out")
    for name in ("method", "trainer"):
        if name in options and written.get(name) is not None:
            method = options[name].parse(written[name])  # first, as other values depend on it
    return {
        name: options[one_of(name, "option", options)].parse(value, method)
        for name, value in written.items()
        if value is not None
    }


@refused(ValueError)
def _defaults(kind: type[Study], parsed: Mapping[str, Any]) -> dict[str, Any]:
    """Returns every option's default: that of the dataset's definition, else the declared one."""
    defaults = {name: option.default for name, option in kind.options().items()}
    of_dataset = published(parsed["dataset"], {**defaults, **parsed}.get("method"))
    methods = load_definition(parsed["dataset"]).methods
    scenario = parsed.get("scenario") or of_dataset["scenario"]
    declared = {name: declared_method(name) for name in kind.trainable() if name in methods}
    of_dataset["methods"] = tuple(
        name for name, one in declared.items() if not one.named_only and (scenario is None or scenario in one.scenarios)
    )
    return defaults | {name: value for name, value in of_dataset.items() if name in defaults}


def _settings(values: Mapping[str, Any], explicit: bool) -> tuple[tuple[str, str, Value], ...]:
    """Returns settings of methods, explicit ones over the definition's; none with tuning.

    A method without settings in the definition has the dataset's learning rate.

    explicit: whether the user has set any. Raises UsageError for explicit settings with tuning.
    """
    if values.get("tune"):
        if explicit and values["settings"]:
            raise UsageError("settings and tune exclude each other: the grids are the published ones")
        return ()
    of_dataset, usual = of_methods(values["dataset"]), {"lr": published(values["dataset"])["lr"]}
    # A plug-in has no published settings. At its declared rate it would be compared with methods at the dataset's.
    own = {(name, field): value for name in values["methods"] for field, value in of_dataset.get(name, usual).items()}
    own |= {(name, field): value for name, field, value in values["settings"]}
    return tuple((name, field, value) for (name, field), value in own.items())


def _own(values: Mapping[str, Any]) -> tuple[tuple[str, Value], ...]:
    """Returns values of a plug-in method's own hyperparameters, with declared defaults."""
    declared = {each.name: each.default for each in own_hyperparameters(values["method"]).values()}
    return tuple((declared | dict(values["set"])).items())


def _device(required: str) -> str:
    """Returns the device; for "auto", cuda if present. Raises UsageError without a required GPU."""
    present = required != "cpu" and cuda_present()
    if required == "cuda" and not present:
        raise UsageError("device is 'cuda', but torch finds no CUDA GPU here; allowed here: cpu, auto")
    return "cuda" if present else "cpu"


def _check_idle(study: Study, parsed: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    """Raises UsageError for explicit values without effect, which would begin another study with the same results."""
    for name in parsed:
        if parsed[name] != usual[name] and (why := study.idle(name)):
            raise UsageError(f"{name.replace('_', '-')} {parsed[name]} changes nothing: {why}; leave it out")


def _check(study: Study) -> None:
    """Checks conditions between options. Raises UsageError."""
    _check_stream(study)
    if study.name is not None:
        check_name(study.name, study.out, study.storage)
    # Late, as stored studies are read without checks, and so without the imports for them.
    from epsearch.preparation.checks import CHECKS
    from epsearch.runners.registry import check_runner

    check_runner(study)
    CHECKS[study.kind].check(study)


def _check_stream(study: Study) -> None:
    """Checks conditions that hold for all kinds of study. Raises UsageError."""
    # First, as further checks of a too large study take long.
    check_product("different tasks", limits.STREAMS, seeds=len(study.all_seeds), tasks=study.tasks)
    examples, batch, size = study.examples_per_task, study.largest_batch, study.image_size
    definition, smallest = load_definition(study.dataset), SMALLEST_IMAGE.get(study.network, 0)
    own, fixed, scenarios = study.hyperparameters, definition.image_size is None, definition.scenarios
    smallest = 0 if study.foreign else smallest
    for wrong, line in (
        (
            study.precision == "tf32" and study.device != "cuda",
            "precision tf32 is arithmetic of NVIDIA GPUs; with device cpu only float32 is allowed",
        ),
        (
            study.scenario not in (scenarios or (None,)),
            f"scenario of {study.dataset} must be {' or '.join(scenarios) or 'left out'}, got {study.scenario}",
        ),
        (
            study.searches and not study.cv_tasks and getattr(study, "score_on", "cv") == "cv",
            f"{study.dataset} has too few tasks for a search of its own: give "
            f"{'--score-on eval, or ' * ('score_on' in study.options())}--cv-tasks",
        ),
        (
            study.validation > 0 and not study.chooses,
            f"validation is for studies that choose: a search, or compare with --tune; got {study.validation:g}",
        ),
        (
            study.foreign and study.maximised in OF_POINTS,
            f"objective {study.maximised} needs tests inside tasks, which a trainer of your own has not",
        ),
        (
            study.measure is None and study.measure_images != study.options()["measure_images"].default,
            f"measure-images is for --measure-every; give it, or leave it out, got {study.measure_images}",
        ),
        (
            study.cv_tasks >= study.tasks,
            "cv-tasks must be < tasks, so that tasks remain for the evaluation; "
            f"got {study.cv_tasks} and {study.tasks}",
        ),
        (
            study.order is not None and study.orders > 1,
            f"order is one order, and orders are drawn: leave one out, got orders {study.orders}",
        ),
        (
            study.order is not None and not _fits(study.order, study.cv_tasks, study.tasks),
            f"order must have the tasks 0…{study.tasks - 1}, {_searched_first(study.cv_tasks)}; "
            f"got {','.join(map(str, study.order or ()))}",
        ),
        (
            examples is not None and examples < batch,
            f"examples-per-task must be >= batch-size, got {examples} and {batch}",
        ),
        (
            own.steps is not None and own.epochs != 1,
            f"epochs and steps exclude each other, got {own.epochs} and {own.steps}; leave one out",
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
            study.network != "mlp" and (study.hidden, study.start) != (Architecture.hidden, Architecture.start),
            f"hidden and start are for network mlp, got network {study.network}; leave them out",
        ),
        (
            size is not None and size < smallest,
            f"image-size must be >= {smallest} for network {study.network}, got {size}",
        ),
    ):
        if wrong:
            raise UsageError(line)


def _fits(order: tuple[int, ...], cv_tasks: int, tasks: int) -> bool:
    """Returns whether an order has all tasks, and those of the search first."""
    return len(order) == tasks and sorted(order[:cv_tasks]) == list(range(cv_tasks))


def _searched_first(cv_tasks: int) -> str:
    """Returns the tasks with which an order must begin, in words."""
    return f"those of the search, 0…{cv_tasks - 1}, first" if cv_tasks else "each once"
