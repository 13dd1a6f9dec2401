"""Builds studies from options, YAML files and definitions, and from stored rows."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from epsearch.failures.errors import UsageError
from epsearch.ledger.location import check_no_file_of, ledger_url
from epsearch.machine import cuda_present, mps_present
from epsearch.preparation.extension import check_extension
from epsearch.preparation.option_values import default_values, parse_options, parse_values, settings_of_methods
from epsearch.preparation.stream_checks import check_stream
from epsearch.preparation.trainers import of_trainer
from epsearch.study import file, limits
from epsearch.study.description import Study
from epsearch.study.hyperparameters import stored_space
from epsearch.study.kinds import KINDS, REQUESTS, ProtocolStudy, Search
from epsearch.study.kinds.search import CV_TASKS, at_the_end
from epsearch.study.names import register_trainer
from epsearch.study.option import RACE
from epsearch.study.parsers import one_of, study_name
from results.ledger.url import LedgerUrl
from trainers.cohort import IMAGE_NETWORKS
from trainers.hyperparameters import Value
from trainers.methods import own_hyperparameters

AnyStudy = TypeVar("AnyStudy", bound=Study)

HELD_OUT = ProtocolStudy.options()["validation"].default
"""Share that is held out where held-out examples choose."""
MOVED_STARTS = 2
"""Default number of members of residual networks whose rounding noise is measured."""


def build(kind: type[AnyStudy], options: Mapping[str, Any], config: Path | None = None) -> AnyStudy:
    """Returns the effective study: the command line over the YAML file over the dataset's definition.

    options: values by option, as text or of the field's type, None for the default; config: a YAML file of options. The
    default name consists of the dataset and a hash of the options. A search by a protocol that chooses otherwise than
    by scores, once, becomes a study of this protocol. Raises UsageError, one line, for invalid values and files, and
    for options that do not fit each other. Data are checked by `data.prepare`.
    """
    parsed = parse_options(kind, options, config)
    if "protocol" in kind.options() and not _chooses_by_scores(parsed.get("protocol", CV_TASKS)):
        return cast(AnyStudy, _of_one_protocol(parsed))
    study, usual = _describe(kind, parsed)
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
        joint = "" if within[:1] in ("", ".", "-") else "-"
        return replace(study, name=f"data{joint}{within}{end}")


def check_name(name: str, out: Path, storage: LedgerUrl) -> None:
    """Raises UsageError for an invalid name of a new study."""
    check_no_file_of(storage, out, study_name(name, "name"))


def build_unchecked(options: Mapping[str, Any]) -> Search:
    """Returns a search without checks of its space and strategy, and without a default name.

    Raises UsageError.
    """
    study, _ = _describe(Search, parse_options(Search, options, None))
    check_stream(study)
    return study


def _describe(kind: type[AnyStudy], explicit: Mapping[str, Any]) -> tuple[AnyStudy, dict[str, Any]]:
    """Returns an unchecked study, and all defaults; explicit: parsed values. Raises UsageError.

    Its name may be None.
    """
    parsed = {"dataset": kind.options()["dataset"].default, **explicit}
    usual = default_values(kind, parsed)
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
        values["settings"] = settings_of_methods(values, "settings" in parsed)
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

    name, options = parsed["protocol"], ProtocolStudy.options()
    usual = default_values(Search, {"dataset": options["dataset"].default, **parsed})
    for option, value in parsed.items():
        if option not in (*options, "protocol") and value != usual[option]:
            raise UsageError(
                f"{option.replace('_', '-')} is not for protocol {name}, which searches otherwise; leave it out"
            )
    view = protocol(name).view
    if view is None or view.tests == TEST:  # nothing chooses by what is held out
        parsed = {"validation": 0.0, **parsed}
    return build(
        ProtocolStudy, {option: value for option, value in parsed.items() if option in options} | {"protocols": (name,)}
    )


def places(options: Mapping[str, Any], config: Path | None = None) -> tuple[str | None, Path, LedgerUrl]:
    """Returns the name, which may be None, the out folder and the ledger of a search. Raises UsageError."""
    named = ("name", "out", "storage")  # other options depend on the kind of study
    written = ({} if config is None else file.read(config)) | {
        name: value for name, value in options.items() if value is not None
    }
    parsed = parse_values(Search, {name: written[name] for name in named if name in written})
    parsed.setdefault("out", Search.options()["out"].default)
    return parsed.get("name"), parsed["out"], ledger_url(parsed["out"], parsed.get("storage"))


def extend_search(stored: Search, options: Mapping[str, Any], config: Path | None = None) -> Search:
    """Returns a stored search with other options, see `check_extension`.

    Its ledger and out folder do not change. Raises UsageError.
    """
    parsed = parse_options(Search, options, config, stored)
    # A new interval replaces the stored space.
    parsed.setdefault("search", None if options.get("interval") is not None else stored.search)
    parsed["device"] = _device(parsed.get("device", stored.device))
    if parsed.get("race", stored.race) != stored.race:
        parsed = {name: option.default for name, option in Search.options().items() if option.part == RACE} | parsed
    named = {name: stored.value(name) for name in ("protocol", "score_on", "validation")}
    parsed |= _of_protocol(named | parsed, ("validation",))
    study = stored.but(**parsed | {"out": stored.out, "storage": stored.storage})
    check_extension(stored, study)
    _check(study)
    return study


def with_options(stored: Study, options: Mapping[str, Any]) -> Study:
    """Returns a stored study with other options of where and how it runs. Raises UsageError."""
    return stored.but(**parse_options(type(stored), options, None))


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
    values = parse_values(kind, written | {name: stored[name] for name in REQUESTS if name in stored})
    if values.get("trainer") is not None:
        values["method"] = values["trainer"]
    places = {"name": name, "out": out, "storage": storage, "numeric_path": stored["numeric_path"]}
    return kind.of(default_values(kind, values) | values | places)


def _name(dataset: str) -> str:
    """Returns a dataset as a part of a study's name, e.g. the name of its folder.

    >>> _name("split_cifar"), _name("folder:/data/My birds.zip"), _name("mine.streams:factory")
    ('split_cifar', 'My-birds', 'mine.streams-factory')
    """
    kind, colon, rest = dataset.partition(":")
    stem = Path(rest).stem if kind == "folder" else f"{kind}-{rest}"
    return re.sub(r"[^\w.-]+", "-", stem if colon else dataset)


def _own(values: Mapping[str, Any]) -> tuple[tuple[str, Value], ...]:
    """Returns values of a plug-in method's own hyperparameters, with declared defaults."""
    declared = {
        hyperparameter.name: hyperparameter.default for hyperparameter in own_hyperparameters(values["method"]).values()
    }
    return tuple((declared | dict(values["set"])).items())


def _device(required: str) -> str:
    """Returns the device; for "auto", cuda if present. Raises UsageError without a required GPU."""
    if required == "mps":
        if not mps_present():
            raise UsageError("device is 'mps', but torch finds no GPU of Apple here; allowed here: cpu, auto")
        return required
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
    check_stream(study)
    if study.name is not None:
        check_name(study.name, study.out, study.storage)
    # Late, as stored studies are read without checks, and so without the imports for them.
    from epsearch.preparation.checks import CHECKS
    from epsearch.runners.registry import check_runner

    check_runner(study)
    CHECKS[study.kind].check(study)
