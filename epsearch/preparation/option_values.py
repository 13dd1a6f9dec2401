"""Values of options: of the command line, over a YAML file, a pack and the definition of the dataset."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from epsearch.failures.errors import UsageError, as_usage_error
from epsearch.preparation.trainers import declare
from epsearch.study import file
from epsearch.study.description import Study
from epsearch.study.kinds import KINDS, Comparison, Search
from epsearch.study.kinds.search import CV_TASKS, EXTRAPOLATED
from epsearch.study.names import SHARED, trainer
from epsearch.study.option import TRAINER
from epsearch.study.parsers import one_of
from epsearch.study.published import of_methods, published_settings
from search_spaces.published.definition import load_definition
from search_spaces.published.pack import Pack
from trainers.hyperparameters import Value
from trainers.methods import method as declared_method
from trainers.spelling import did_you_mean, unknown

FREE = ("seeds", "methods", "device", "precision", "claim")
"""Options that may differ from those of a pack, whose row is trained all the same."""
OF_A_PACK = {"dataset", "methods", "settings", "seeds", "tune", "device", "precision"}
"""Options that are no settings of a pack, which has fields for them, or leaves them to the user."""


def parse_options(
    kind: type[Study], options: Mapping[str, Any], config: Path | None, stored: Search | None = None
) -> dict[str, Any]:
    """Returns parsed values of the command line and the YAML file, by name; stored: the search that they extend.

    Raises UsageError.
    """
    written = {} if config is None else file.read(config)
    for key in written:
        if key not in (allowed := kind.options()):
            others = [other.kind for other in KINDS.values() if written.keys() <= other.options().keys()]
            known = f"it describes a study of `epsearch {others[0]}`" if others else unknown("option", key, allowed)
            raise UsageError(f"{config}: {known}")
    if (named := {**written, **options}.get("trainer")) is not None:
        declare(trainer(named, "trainer"))
    line = {name: value for name, value in options.items() if value is not None}
    written = _join(kind, written, line, stored is not None and stored.extrapolates)
    if written.get("from_pack") is not None:
        written = _with_pack(kind, written)
    parsed = parse_values(kind, written, None if stored is None else stored.method)
    if (tests := parsed.pop("on", None)) is not None:
        from epsearch.protocols.registry import on_tests

        parsed["protocol"] = on_tests(parsed.get("protocol", CV_TASKS), tests)
    if options.get("interval") is not None:
        if options.get("search") is not None:
            raise UsageError("interval is that of ε alone; give it within --search, like epsilon=0..0.5")
        parsed.pop("search", None)  # of the file, as the command line wins
    return parsed


def _with_pack(kind: type[Study], written: Mapping[str, Any]) -> dict[str, Any]:
    """Returns values over those of their pack, which lists the options that have others. Raises UsageError."""
    pack: Pack = kind.options()["from_pack"].parse(written["from_pack"])
    of_pack = _of_pack(kind, pack)
    try:
        usual = parse_values(kind, of_pack)
    except UsageError as error:
        raise UsageError(f"pack {pack.name}: {error}") from error
    usual = default_values(kind, usual) | usual
    explicit = parse_values(kind, {name: value for name, value in written.items() if name != "from_pack"})
    if "settings" in explicit:  # what is left out is that of the definition, also where it is written
        usual, explicit = (
            options
            | {"settings": {*settings_of_methods(usual | options | {"methods": (pack.method,), "tune": False}, False)}}
            for options in (usual, explicit)
        )
        explicit["settings"] = {setting for setting in explicit["settings"] if setting[0] == pack.method}
    changed = [
        name.replace("_", "-")
        for name, value in explicit.items()
        if kind.options()[name].identifies and name not in FREE and value != usual[name]
    ]
    return of_pack | dict(written) | {"from_pack": replace(pack, changed=tuple(changed))}


def _of_pack(kind: type[Study], pack: Pack) -> dict[str, Any]:
    """Returns the options of a kind that a pack sets, unparsed. Raises UsageError for a setting that nobody has."""
    options = kind.options()
    own = {hyperparameter.name for hyperparameter in declared_method(pack.method).hyperparameters}
    allowed = {name for name, option in Comparison.options().items() if option.identifies} - OF_A_PACK | own
    for name in pack.settings:
        if name not in allowed:
            hint = did_you_mean(name, sorted(allowed), "`epsearch compare --help-all` lists them")
            raise UsageError(f"pack {pack.name}: no setting {name!r}{hint}")
    values: dict[str, Any] = {name: value for name, value in pack.settings.items() if name in options}
    if "method" in options:
        values["method"] = pack.method
    if "methods" in options:
        apart = {name: value for name, value in pack.settings.items() if name in own - options.keys() - {*SHARED}}
        values |= {"methods": pack.method, "settings": {f"{pack.method}.{name}": apart[name] for name in apart}}
    return values | {"dataset": pack.dataset, "seeds": pack.seeds}


def _join(kind: type[Study], file: Mapping[str, Any], line: Mapping[str, Any], extrapolates: bool) -> dict[str, Any]:
    """Returns the values of a YAML file and of the command line, which wins. Raises UsageError.

    extrapolates: whether they extend a search with predicted scores.
    """
    sources = file, line
    written = {name: value for source in sources for name, value in _ends(kind, source).items()}
    for first, other in (("protocol", "score_on"), ("score_on", "protocol")):
        if first in line and other not in line:
            written.pop(other, None)
    for tasks in (str(source.get("cv_tasks", "")) for source in sources):
        extrapolates = written.get("protocol", EXTRAPOLATED if extrapolates else None) == EXTRAPOLATED
        if ".." in tasks and not extrapolates and "protocol" in kind.options():
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


def parse_values(kind: type[Study], written: Mapping[str, Any], method: str | None = None) -> dict[str, Any]:
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


@as_usage_error(ValueError)
def default_values(kind: type[Study], parsed: Mapping[str, Any]) -> dict[str, Any]:
    """Returns every option's default: that of the dataset's definition, else the declared one."""
    defaults = {name: option.default for name, option in kind.options().items()}
    of_dataset = published_settings(parsed["dataset"], {**defaults, **parsed}.get("method"))
    methods = load_definition(parsed["dataset"]).methods
    scenario = parsed.get("scenario") or of_dataset["scenario"]
    declared = {name: declared_method(name) for name in kind.trainable() if name in methods}
    of_dataset["methods"] = tuple(
        name
        for name, declaration in declared.items()
        if not declaration.named_only and (scenario is None or scenario in declaration.scenarios)
    )
    return defaults | {name: value for name, value in of_dataset.items() if name in defaults}


def settings_of_methods(values: Mapping[str, Any], explicit: bool) -> tuple[tuple[str, str, Value], ...]:
    """Returns settings of methods, explicit ones over the definition's; none with tuning.

    A method without settings in the definition has the dataset's learning rate.

    explicit: whether the user has set any. Raises UsageError for explicit settings with tuning.
    """
    if values.get("tune"):
        if explicit and values["settings"]:
            raise UsageError("settings and tune exclude each other: the grids are the published ones")
        return ()
    of_dataset, usual = of_methods(values["dataset"]), {"lr": published_settings(values["dataset"])["lr"]}
    # A plug-in has no published settings. At its declared rate it would be compared with methods at the dataset's.
    settings = {
        (name, field): value for name in values["methods"] for field, value in of_dataset.get(name, usual).items()
    }
    settings |= {(name, field): value for name, field, value in values["settings"]}
    return tuple((name, field, value) for (name, field), value in settings.items())
