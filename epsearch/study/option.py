"""Options of studies: annotated fields of a description, for help, files, forms and docs."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from epsearch.failures.errors import UsageError, brief
from epsearch.study.parsers import plain

SEARCHED = "What is searched"
STREAM = "Stream"
SEEDS = "Seeds and evaluation"
RUNS = "Where and how it runs"
OUTPUT = "Output"
LEARNING = "Method and training"
GROUPS = (SEARCHED, STREAM, SEEDS, RUNS, OUTPUT, LEARNING)
"""Groups of options, in the order of forms and docs."""

LEVELS = BASIC, EXPERT = ("basic", "expert")
"""Levels of options: BASIC ones are for newcomers."""

IDENTITY, REQUEST, RUN, RESUME, PLACE = ("identity", "request", "run", "resume", "place")
"""Scopes of options: results (IDENTITY), requests to the newest run (REQUEST), how a study runs (RUN), also when
resumed (RESUME), and its files and cluster, which a service sets (PLACE).
"""

RACE, TRAINER, METHOD, SHORT = ("race", "trainer", "method", "short")
"""Optional parts of a search: a race over seeds, a plug-in trainer, a method; or what is short for other options."""

DATASETS = "the dataset's"
"""Words for a default from the definition of the dataset."""


def _unchanged(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class ValueType:
    """Type of an option's value: parser, format, and name in help."""

    convert: Callable[..., Any]
    """(text or YAML value, name for messages) -> the field's value; raises UsageError."""
    metavar: str = "TEXT"
    """Name in help, as NAME or INT."""
    write: Callable[[Any], Any] = _unchanged
    """The inverse of `convert`, except for None."""
    none: str | None = None
    """The word for None; None for null in YAML and JSON."""
    choices: Collection[str] = ()
    """Allowed words; plug-ins have other names."""
    words: int = 1
    """Words behind its flag; 0 for any number."""
    by_method: bool = False
    """Whether `convert` also takes the name of the study's method."""
    json: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    """JSON schema of its values in files and requests; text as on the command line is allowed, too."""


@dataclass(frozen=True)
class Option:
    """An option of the command line, YAML files and the service."""

    type: ValueType
    help: str
    """Help, a sentence."""
    group: str
    """One of GROUPS."""
    default: Any = None
    """Default, unless the definition of the dataset has one."""
    usual: str = ""
    """The default in words; "" for that of `default`."""
    level: str = EXPERT
    """One of LEVELS."""
    scope: str = IDENTITY
    """IDENTITY, REQUEST, RUN, RESUME or PLACE."""
    later: bool = False
    """True for an option that older stored studies lack: part of the identity only if not the default."""
    part: str = ""
    """RACE, TRAINER or METHOD, which it requires; SHORT; "" for all studies."""
    extendable: bool = False
    """Whether it may change when a stored search is extended."""
    aliases: tuple[str, ...] = ()
    """Further flags."""
    after: str = ""
    """Preceding field in help and files, if not the previous one."""
    name: str = ""
    """Name of the field."""

    @property
    def flag(self) -> str:
        """The option on the command line, with hyphens."""
        return "--" + self.name.replace("_", "-")

    @property
    def identifies(self) -> bool:
        """True if it can change results."""
        return self.scope == IDENTITY

    @property
    def default_text(self) -> str:
        """The default for help and docs; "" for flags and options without one."""
        if self.usual or self.default is False or self.default in (None, ()):
            return self.usual
        value = self.show(self.default)
        return ",".join(map(str, value)) if isinstance(value, list) else str(value)

    def parse(self, value: Any, method: str | None = None) -> Any:
        """Returns the field's value from text, YAML, JSON or Python. Raises UsageError, one line.

        method: of the study; None if it has none, or is unknown.
        """
        name, value = self.flag.removeprefix("--"), plain(value)
        try:
            return self.type.convert(value, name, method) if self.type.by_method else self.type.convert(value, name)
        except (ValueError, OverflowError):  # e.g. a number with too many digits for Python
            raise UsageError(f"{name} cannot be {brief(value)}") from None

    def show(self, value: Any) -> Any:
        """Returns the value for YAML and JSON: the inverse of `parse`."""
        return self.type.none if value is None else self.type.write(value)


def option(type: ValueType, help: str, group: str, default: Any = None, **more: Any) -> Any:
    """Returns a dataclass field with an option; arguments are the fields of `Option`."""
    return field(metadata={"option": Option(type, help, group, default, **more)})
