"""Imports a plug-in trainer in its process, and reads its declaration."""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple, NoReturn, cast

from trainers.foreign.declaration import Declaration, reference_of
from trainers.hyperparameters import LARGEST, Hyperparameter, Value
from trainers.plugins.calls import ForeignError, blamed, call_fault, load
from trainers.plugins.source import LIBRARIES, OURS, Source, whole
from trainers.spelling import did_you_mean

READER: Any = SimpleNamespace()  # among the finders of modules: finds them on the path
ARGUMENTS = ("values", "stream", "seed", "report")
# Of a declaration; what is left out has to do with our own methods, or with stored records.
FIELDS = ("default", "low", "high", "closed", "whole", "choices", "network", "search_low", "label", "help")


class Trainer(NamedTuple):
    """A trainer."""

    what: str
    """For messages."""
    train: Callable[..., object]
    """Takes ARGUMENTS."""
    made: Any
    """The object whose method that is; None of a function."""
    source: Source
    """The files that it is made of."""

    @property
    def resumable(self) -> bool:
        """True if it can save and load what it has learned."""
        return callable(getattr(self.made, "save", None)) and callable(getattr(self.made, "load", None))


def import_trainer(reference: str, path: Iterable[str], expected: Mapping[str, str] | None) -> tuple[Any, Source]:
    """Returns the function, class or object of a trainer, and its source. Arguments and errors as of `load_trainer`."""
    module, name = reference_of(reference)
    what = f"trainer {reference!r}"
    sys.path += [folder for folder in path if folder not in sys.path]
    _read_sources(whole(module))
    imported, source = load(module, what, expected)
    return _attribute(imported, name, what, source), source


def load_trainer(reference: str, path: Iterable[str], expected: Mapping[str, str] | None) -> Trainer:
    """Imports it; of a class it makes an object without arguments. path: where it may lie besides `sys.path`.

    Raises ForeignError, as `read_declaration` does.
    """
    what = f"trainer {reference!r}"
    target, source = import_trainer(reference, path, expected)
    made = None
    if inspect.isclass(target):
        with blamed(f"{what} cannot be made without arguments:", source):
            made = target()
    elif hasattr(target, "train"):
        made = target
    train = target if made is None else getattr(made, "train", None)
    if not callable(train):
        kind = f"a {type(target).__name__}" if made is None else "has no method train"
        raise ForeignError(f"{what} {'is ' if made is None else ''}{kind}; it must be a function or a class with train")
    _takes(train, what)
    return Trainer(what, train, made, source)


def declaration(trainer: Trainer) -> Declaration:
    """Returns its declaration. Raises ForeignError."""
    facts: dict[str, Any] = {"source": dict(trainer.source.hashes), "requires": {}}
    if trainer.made is not None:
        with blamed(f"{trainer.what} failed with", trainer.source):
            attributes = {name: getattr(trainer.made, name, None) for name in ("parameters", "baseline", "requires")}
            said = getattr(trainer.made, "version", ""), getattr(trainer.made, "deterministic", True)
        facts |= {"version": _is(trainer, "version", said[0], str), "resumable": trainer.resumable}
        facts["deterministic"] = _is(trainer, "deterministic", said[1], bool)
        facts["parameters"] = _parameters(trainer, attributes["parameters"])
        facts["baseline"] = _baseline(trainer, attributes["baseline"], facts["parameters"])
        facts["requires"] = _versions(trainer, attributes["requires"])
    return Declaration(**facts)


def _read_sources(trainer: str) -> None:
    """Makes imports of the user's modules, as `trainer`, read their source, and those of libraries bytecode.

    From bytecode, a file that changes twice in a second would be run as it was before.
    """
    if READER not in sys.meta_path:
        READER.find_spec = partial(_spec, trainer)
        sys.meta_path.insert(sys.meta_path.index(PathFinder), READER)


def _spec(trainer: str, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
    """Finds a module as Python does on its path."""
    spec = PathFinder.find_spec(name, path, target)
    if spec is not None and type(spec.loader) is SourceFileLoader:
        top, folders = name.partition(".")[0], Path(spec.loader.path).parts
        library = top in OURS or top in sys.stdlib_module_names or any(folder in LIBRARIES for folder in folders)
        if top == trainer or not library:
            spec.loader.path_stats = _no_stats  # type: ignore[method-assign]
    return spec


def _no_stats(path: Any) -> NoReturn:
    """Raises OSError: then Python neither reads nor writes bytecode."""
    raise OSError(path)


def _attribute(module: ModuleType, name: str, what: str, source: Source) -> Any:
    with blamed(f"{what} failed with", source, missing=name):
        try:
            return getattr(module, name)
        except AttributeError:
            callables = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    hint = did_you_mean(name, callables, f"it has {', '.join(sorted(callables)) or 'nothing that can be called'}")
    raise ForeignError(f"module {module.__name__!r} has no {name!r}{hint}")


def _takes(train: Callable[..., object], what: str) -> None:
    """Raises ForeignError where it cannot be called with ARGUMENTS, or the call would run none of it."""
    if fault := call_fault(train, ARGUMENTS):
        raise ForeignError(f"{what} {fault}")
    if inspect.isgeneratorfunction(train):
        raise ForeignError(f"{what} must be a plain function, got a generator function: take its yield away")


def _is(trainer: Trainer, name: str, value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ForeignError(f"{name} of {trainer.what} must be a {kind.__name__}, got {_short(value)}")
    return value


def _parameters(trainer: Trainer, parameters: Any) -> tuple[Hyperparameter, ...] | None:
    if parameters is None:
        return None
    if not isinstance(parameters, Mapping) or not all(
        isinstance(name, str) and name.isidentifier() for name in parameters
    ):
        raise ForeignError(
            f"parameters of {trainer.what} must map names to defaults, or to fields such as default, low, high, "
            f"choices; got {_short(parameters)}"
        )
    return tuple(_parameter(trainer, name, parameter) for name, parameter in parameters.items())


def _parameter(trainer: Trainer, name: str, facts: Any) -> Hyperparameter:
    """Returns the declaration of a parameter, from its default or from fields.

    The allowed range is wide where nothing is said of it.
    """
    what = f"parameter {name!r} of {trainer.what}"
    declared = dict(facts) if isinstance(facts, Mapping) else {"default": facts}
    if unknown := [field for field in declared if field not in FIELDS]:
        hint = did_you_mean(str(unknown[0]), FIELDS, f"known: {', '.join(FIELDS)}")
        raise ForeignError(f"{what} has no field {unknown[0]!r}{hint}")
    if isinstance(declared.get("choices"), (list, tuple)):
        declared["choices"] = tuple(declared["choices"])
    made = Hyperparameter(**{"name": name, "help": "", "low": -LARGEST} | declared)
    for field in fields(made):
        value, kinds = getattr(made, field.name), KINDS.get(field.name)
        if kinds and not (isinstance(value, kinds) and (not isinstance(value, bool) or kinds is bool)):
            raise ForeignError(f"{field.name} of {what} must be {WORDS[kinds]}, got {_short(value)}")
    if any(type(choice) is not str for choice in made.choices) or ("choices" in declared and not made.choices):
        raise ForeignError(f"choices of {what} must be a list of words, got {_short(declared['choices'])}")
    if isinstance(made.default, str) and not made.choices:
        raise ForeignError(
            f"{what} has the word {_short(made.default)} as default: say which words there may be, "
            f"as {{'default': {_short(made.default)}, 'choices': […]}}"
        )
    if not made.choices and made.low > made.high:
        raise ForeignError(f"{what} can have no value: low {made.low:g} is above high {made.high:g}")
    if made.default is not None and not made.fits(made.default):
        raise ForeignError(f"{what} must be {made.allowed}, got the default {_short(made.default)}")
    return made


Number = (int, float)
KINDS: dict[str, Any] = {
    **{
        "default": (int, float, str, type(None)),
        "low": Number,
        "high": Number,
        "closed": bool,
        "whole": bool,
        "network": bool,
    },
    **{"choices": tuple, "search_low": (int, float, type(None)), "label": str, "help": str},
}
WORDS: dict[Any, str] = {
    **{KINDS["default"]: "a number or a word", Number: "a number", bool: "True or False", str: "a text"},
    **{tuple: "a list of words", KINDS["search_low"]: "a number"},
}


def _baseline(trainer: Trainer, values: Any, declared: tuple[Hyperparameter, ...] | None) -> dict[str, Value] | None:
    if values is None:
        return None
    fit = (int, float, str)
    if not isinstance(values, Mapping) or not all(
        isinstance(name, str) and isinstance(value, fit) and not isinstance(value, bool)
        for name, value in values.items()
    ):
        raise ForeignError(f"baseline of {trainer.what} must map names to numbers or words, got {_short(values)}")
    by_name = {parameter.name: parameter for parameter in declared or ()}
    for name, value in values.items():
        if declared is None:
            continue
        if name not in by_name:
            hint = did_you_mean(name, by_name, f"it declares {', '.join(by_name) or 'none'}")
            raise ForeignError(f"baseline of {trainer.what} has a value of {name!r}, which is no parameter{hint}")
        if not by_name[name].fits(value):
            raise ForeignError(
                f"{name} in the baseline of {trainer.what} must be {by_name[name].allowed}, got {_short(value)}"
            )
    return dict(values)


def _versions(trainer: Trainer, names: Any) -> dict[str, str]:
    """Returns the installed versions of the distributions that a trainer names."""
    if names is None:
        return {}
    if isinstance(names, str) or not all(isinstance(text, str) for text in cast(Any, names)):
        raise ForeignError(f"requires of {trainer.what} must be a list of distributions, got {_short(names)}")
    return {name: installed_version(name, trainer.what) for name in names}


def installed_version(name: str, what: str) -> str:
    """Returns the version of a distribution. Raises ForeignError without one."""
    try:
        return version(name)
    except (PackageNotFoundError, ValueError) as error:
        raise ForeignError(f"{what} requires {name!r}, which is not installed; pip install {name}") from error


def _short(value: Any) -> str:
    from reprlib import repr

    return " ".join(repr(value).split())
