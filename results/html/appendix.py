"""The last sections of every page: the configuration, and the machine."""

from collections.abc import Mapping
from typing import Any

import yaml

from results.html import page


def configuration(config: Mapping[str, Any]) -> str:
    """Returns the section with the configuration as YAML, with a button that copies it."""
    # Not sorted: in the caller's order, which is that of the options.
    text = yaml.safe_dump(_plain(config), sort_keys=False, allow_unicode=True)
    return page.section("Configuration", page.code("configuration", text), unfolds=True)


def machine(facts: Mapping[str, str]) -> str:
    """Returns the section with the caller's facts (machine, versions, times); "" without any."""
    return page.section("Machine and versions", page.facts(facts), unfolds=True) if facts else ""


def _plain(value: Any) -> Any:
    """Returns tuples and mappings as the lists and dicts that YAML can write; safe_dump refuses all others."""
    if hasattr(value, "items"):
        return {str(k): _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value
