"""Reads YAML files of options, with limits on their size and depth.

Only `null` and truth values are resolved, as in the core schema of YAML 1.2. Numbers remain text, which the option
parses as on the command line: `name: 1.10` is no 1.1, and `seeds: 010` no octal number.
"""

import re
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import yaml

from epsearch.failures.errors import UsageError

LARGEST_FILE = 2**20  # bytes
DEEPEST = 20  # lists and mappings within each other
MOST_VALUES = 20_000  # aliases written out
LONGEST_VALUE = 3500  # characters: Python cannot print longer whole numbers


class _Loader(yaml.SafeLoader):
    """PyYAML's loader with the words of YAML 1.2; repeated keys are errors."""

    yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012  # as in PyYAML
    yaml_constructors: ClassVar[dict[Any, Any]] = {None: yaml.SafeLoader.construct_undefined}

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        """Returns a mapping with text keys. Raises UsageError for keys that differ in `-` and `_` only."""
        mapping: dict[str, Any] = {}
        lines: dict[str, tuple[str, int]] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise UsageError(f"line {line}: a key must be a word")
            name, (before, first) = key.value, lines.get(key.value.replace("-", "_"), ("", 0))
            if first:
                raise UsageError(f"line {line}: {name} is given twice, first as {before} in line {first}; give it once")
            lines[name.replace("-", "_")], mapping[name] = (name, line), self.construct_object(value, deep=True)
        return mapping


for _tag, _text_of, _first in (
    ("null", "~|null|Null|NULL|", "~nN"),
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_text_of})$"), [*_first, ""])
_CONSTRUCT: dict[str, Any] = {
    "null": _Loader.construct_yaml_null,
    "bool": _Loader.construct_yaml_bool,
    **dict.fromkeys(("str", "int", "float"), _Loader.construct_yaml_str),
    "seq": _Loader.construct_yaml_seq,
    "map": _Loader._mapping,
}
for _tag in _CONSTRUCT:
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _CONSTRUCT[_tag])


def read(path: Path) -> dict[str, Any]:
    """Returns the options of a file by name, with underscores: texts, truth values, None, lists, mappings.

    The limits are checked on events, before values are composed: a few lines of nested aliases can exceed the memory.
    Raises UsageError, one line, where the file cannot be read, is not YAML, exceeds a limit, or is no mapping.
    """
    text = _text(path)
    try:
        for problem in _problems(text):
            raise UsageError(f"it {problem}; a study's file takes none of this: give `option: value` lines")
        content = yaml.load(text, _Loader)  # a SafeLoader
    except UsageError as error:
        raise UsageError(f"{path}, {error}") from None
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, KeyError) as error:
        # PyYAML passes Python's errors on values that do not fit their tag, such as !!bool maybe.
        raise UsageError(f"{path} is not YAML: {' '.join(str(error).split()) or type(error).__name__}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise UsageError(f"{path} must hold `option: value` lines, got a {type(content).__name__}")
    return {key.replace("-", "_"): value for key, value in content.items()}


def _text(path: Path) -> str:
    """Returns the text of a file of bounded size. Raises UsageError."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)  # one more byte, also of an endless pipe
        if len(data) > LARGEST_FILE:
            raise UsageError(f"the config file {path} must have at most {LARGEST_FILE // 2**20} MiB, it is larger")
        return data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the config file {path}: {getattr(error, 'strerror', None) or error}") from error


def _problems(text: str) -> Iterator[str]:
    """Yields violations of limits, in words, before values are composed.

    An alias counts as all values of its anchor.
    """
    values, sizes = 0, dict[Hashable, int]()  # of all; of what each anchor names
    inside: list[tuple[str | None, int]] = []  # anchor and values before, of every list or mapping that is open
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, before = inside.pop()
            sizes[anchor] = values - before
        elif isinstance(event, yaml.AliasEvent):
            # Composed, it would be endless.
            if event.anchor in (anchor for anchor, _ in inside):
                yield f"holds an anchor that contains itself, {event.anchor!r}"
            values += sizes.get(event.anchor, 0)
        elif isinstance(event, yaml.CollectionStartEvent):
            inside.append((event.anchor, values))
            values += 1
        elif isinstance(event, yaml.ScalarEvent):
            sizes[event.anchor] = 1
            values += 1
            if len(event.value) > LONGEST_VALUE:
                yield f"holds a value of {len(event.value):,} characters, allowed are {LONGEST_VALUE:,}"
        yield from _too_much(len(inside), values)


def _too_much(depth: int, values: int) -> Iterator[str]:
    """Yields violations of depth and number of values, in words."""
    if depth > DEEPEST:
        yield f"is nested more than {DEEPEST} deep"
    if values > MOST_VALUES:
        yield f"holds more than {MOST_VALUES:,} values, aliases written out"
