"""Typed reading of YAML definitions and packs, with errors by file and field."""

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import yaml


def read_yaml(name: str, text: str) -> Mapping[str, Any]:
    """Returns the mapping in a YAML text. Raises ValueError when the text is not YAML or not a mapping."""
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        _refuse_repeated_keys(node, set())
        data = loader.construct_document(node) if node else None
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"{name}: must be YAML, got {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise ValueError(f"{name}: must be a mapping of fields, got {type(data).__name__}")
    return data


def _refuse_repeated_keys(node: yaml.Node | None, visited: set[int]) -> None:
    """Raises YAMLError for a key that stands twice in a mapping, of which PyYAML would take the last value.

    visited: ids of nodes that were looked at; aliases of aliases may name the same one millions of times.
    """
    if not isinstance(node, yaml.CollectionNode) or id(node) in visited:
        return
    visited.add(id(node))
    pairs = node.value if isinstance(node, yaml.MappingNode) else [(None, entry) for entry in node.value]
    names = set()
    for key, value in pairs:
        if isinstance(key, yaml.ScalarNode):
            if key.value in names:
                raise yaml.YAMLError(f"line {key.start_mark.line + 1} repeats {key.value}")
            names.add(key.value)
        _refuse_repeated_keys(value, visited)


WORDS = {float: "a number", int: "a whole number >= 1", str: "a text"}


@dataclass(frozen=True)
class Fields:
    """A mapping that was read from YAML. All its readers raise ValueError for a missing field and for a wrong type."""

    where: str
    """File, and field of a nested mapping, for the error messages."""
    data: Mapping[str, Any]
    """The mapping as YAML reads it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields that are present, in their order."""
        return tuple(self.data)

    def must_be(self, expected: frozenset[str]) -> None:
        """Raises ValueError unless exactly these fields are present; for an unknown one with the nearest."""
        present = set(self.data)
        unknown = sorted(map(str, present - expected))
        near = difflib.get_close_matches(unknown[0], sorted(expected - present), n=1) if unknown else []
        hint = f"; did you mean {near[0]!r}?" if near else ""
        # A misspelt field is missing, too: its own name comes first.
        for problem, names in (("unknown", unknown), ("missing", sorted(expected - present))):
            if names:
                raise ValueError(f"{self.where}: {problem} fields {', '.join(names)}{hint}")

    def section(self, name: str) -> "Fields":
        """Returns a nested mapping."""
        return Fields(f"{self.where}: {name}", self._get(name, dict, "a mapping"))

    def read(self, name: str, kind: Any) -> Any:
        """Returns a field of type `kind`: str, float or int (>= 1); `X | None` and `X | str`; tuple[X, ...].

        >>> fields = Fields("file", {"points": 11, "size": None, "interval": [0, 1]})
        >>> fields.read("points", int), fields.read("size", int | None), fields.read("interval", tuple[float, ...])
        (11, None, (0.0, 1.0))
        """
        plain, *others = get_args(kind) or (kind,)
        if Ellipsis in others:
            return tuple(self._plain(name, plain, value) for value in self._get(name, list, "a list"))
        value = self._get(name)
        return value if isinstance(value, tuple(others)) else self._plain(name, plain, value)

    def _plain(self, name: str, kind: type, value: Any) -> Any:
        fits = isinstance(value, (int, float) if kind is float else kind)
        # True is an int in Python, and YAML has .nan and .inf.
        unfit = isinstance(value, bool) or (kind is int and fits and value < 1)
        if not fits or unfit or (kind is float and not math.isfinite(value)):
            raise self._error(name, WORDS[kind], value)
        return kind(value)

    def _get(self, name: str, kind: type = object, words: str = "") -> Any:
        if name not in self.data:
            raise ValueError(f"{self.where}: missing fields {name}")
        if not isinstance(self.data[name], kind):
            raise self._error(name, words, self.data[name])
        return self.data[name]

    def _error(self, name: str, expected: str, value: Any) -> ValueError:
        return ValueError(f"{self.where}: {name} must be {expected}, got {value!r}")
