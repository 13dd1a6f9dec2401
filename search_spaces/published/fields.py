"""Typed reading of YAML definitions, with errors that name the file and the field."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml


def read_yaml(name: str, text: str) -> Mapping[str, Any]:
    """Returns the mapping in a YAML text. Raises ValueError when the text is not YAML or not a mapping."""
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"{name}: must be YAML, got {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise ValueError(f"{name}: must be a mapping of fields, got {type(data).__name__}")
    return data


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
        """Raises ValueError unless exactly these fields are present."""
        present = set(self.data)
        for problem, names in (("missing", expected - present), ("unknown", present - expected)):
            if names:
                raise ValueError(f"{self.where}: {problem} fields {', '.join(sorted(map(str, names)))}")

    def section(self, name: str) -> "Fields":
        """Returns a nested mapping."""
        value = self._get(name)
        if not isinstance(value, dict):
            raise self._error(name, "a mapping", value)
        return Fields(f"{self.where}: {name}", value)

    def number(self, name: str) -> float:
        """Returns a number."""
        return self._number(name, self._get(name))

    def number_or_text(self, name: str) -> float | str:
        """A number or a text."""
        value = self._get(name)
        return value if isinstance(value, str) else self.number(name)

    def number_or_none(self, name: str) -> float | None:
        """Returns a number, or None for null."""
        return None if self._get(name) is None else self.number(name)

    def numbers(self, name: str) -> tuple[float, ...]:
        """Returns a list of numbers."""
        return tuple(self._number(name, value) for value in self._list(name))

    def count(self, name: str) -> int:
        """Returns a whole number of at least 1."""
        value = self._get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:  # True is an int in Python
            raise self._error(name, "a whole number >= 1", value)
        return value

    def counts(self, name: str) -> tuple[int, ...]:
        """Returns a list of whole numbers of at least 1."""
        return tuple(Fields(self.where, {name: value}).count(name) for value in self._list(name))

    def text(self, name: str) -> str:
        """Returns a text."""
        return self._text(name, self._get(name))

    def text_or_none(self, name: str) -> str | None:
        """Returns a text, or None for null."""
        return None if self._get(name) is None else self.text(name)

    def count_or_none(self, name: str) -> int | None:
        """Returns a whole number of at least 1, or None for null."""
        return None if self._get(name) is None else self.count(name)

    def texts(self, name: str) -> tuple[str, ...]:
        """Returns a list of texts."""
        return tuple(self._text(name, value) for value in self._list(name))

    def _get(self, name: str) -> Any:
        if name not in self.data:
            raise ValueError(f"{self.where}: missing fields {name}")
        return self.data[name]

    def _list(self, name: str) -> list[Any]:
        value = self._get(name)
        if not isinstance(value, list):
            raise self._error(name, "a list", value)
        return value

    def _number(self, name: str, value: Any) -> float:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise self._error(name, "a number", value)
        return float(value)

    def _text(self, name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise self._error(name, "a text", value)
        return value

    def _error(self, name: str, expected: str, value: Any) -> ValueError:
        return ValueError(f"{self.where}: {name} must be {expected}, got {value!r}")
