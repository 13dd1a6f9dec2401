"""An option of a study: one annotated field of its description, from which help, files, forms and docs are made."""

from collections.abc import Callable, Collection
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
"""Whether newcomers need an option."""

IDENTITY, REQUEST, RUN, RESUME, PLACE = ("identity", "request", "run", "resume", "place")
"""What an option decides: figures (IDENTITY), what the newest run is asked for (REQUEST), how a study runs (RUN), how a
resumed one runs (RESUME), where its files and its cluster are, which a service sets (PLACE).
"""

RACE, TRAINER, METHOD = ("race", "trainer", "method")
"""Parts that a search may lack: a race over seeds, a user's trainer, a method of ours."""

DATASETS = "the dataset's"
"""Words for a default that the definition of the dataset gives."""


def _unchanged(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class ValueType:
    """Type of an option's value: how it is parsed, written, and named in help."""

    convert: Callable[..., Any]
    """(text or YAML value, name for messages) -> the field's value; raises UsageError."""
    metavar: str = "TEXT"
    """Name in help, as NAME or INT."""
    write: Callable[[Any], Any] = _unchanged
    """The inverse of `convert`, but for None."""
    none: str | None = None
    """The word for None; None where YAML and JSON have null for it."""
    choices: Collection[str] = ()
    """Words that it may be; a plug-in has other names besides."""
    words: int = 1
    """Words behind its flag; 0 for any number."""
    by_method: bool = False
    """Whether `convert` also takes the name of the study's method."""


@dataclass(frozen=True)
class Option:
    """An option of the command line, which YAML files and the service take by its name."""

    type: ValueType
    help: str
    """What it is, in a sentence."""
    group: str
    """One of GROUPS."""
    default: Any = None
    """The field's value where neither the user nor the definition of the dataset gives one."""
    usual: str = ""
    """The default in words; "" where `default` says it."""
    level: str = EXPERT
    """One of LEVELS."""
    scope: str = IDENTITY
    """IDENTITY, REQUEST, RUN, RESUME or PLACE."""
    later: bool = False
    """True for an option that older stored studies lack: it identifies a study only where it is not the default."""
    part: str = ""
    """RACE, TRAINER or METHOD, without which it does not apply; "" for all studies."""
    grows: bool = False
    """Whether it may change when a stored search is extended."""
    aliases: tuple[str, ...] = ()
    """Further flags."""
    after: str = ""
    """Field of a base class that it follows in help and files; by default the field before it."""
    name: str = ""
    """That of the field."""

    @property
    def flag(self) -> str:
        """The option on the command line, with hyphens."""
        return "--" + self.name.replace("_", "-")

    @property
    def identifies(self) -> bool:
        """Whether it can change a study's figures."""
        return self.scope == IDENTITY

    @property
    def default_text(self) -> str:
        """The default as help and docs write it; "" for flags and options without one."""
        if self.usual or self.default is False or self.default in (None, ()):
            return self.usual
        value = self.show(self.default)
        return ",".join(map(str, value)) if isinstance(value, list) else str(value)

    def parse(self, value: Any, method: str | None = None) -> Any:
        """Returns the field's value of a text, or of a value of YAML, JSON or Python. Raises UsageError, one line.

        method: the study's; None where it has none, or it is not known.
        """
        name, value = self.flag.removeprefix("--"), plain(value)
        try:
            return self.type.convert(value, name, method) if self.type.by_method else self.type.convert(value, name)
        except (ValueError, OverflowError):  # a file's number of more digits than Python turns into a text
            raise UsageError(f"{name} cannot be {brief(value)}") from None

    def show(self, value: Any) -> Any:
        """Returns the value as YAML and JSON write it: the inverse of `parse`."""
        return self.type.none if value is None else self.type.write(value)


def option(type: ValueType, help: str, group: str, default: Any = None, **more: Any) -> Any:
    """Returns a field of a description that is an option; arguments are the fields of `Option`."""
    return field(metadata={"option": Option(type, help, group, default, **more)})
