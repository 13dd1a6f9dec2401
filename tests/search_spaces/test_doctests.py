import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    ("module", "least"),
    [
        ("interval", 3),
        ("narrowing_rule", 2),
        ("published.definition", 1),
        ("published.fields", 2),
        ("space", 4),
        ("grid", 1),
        ("interval_ci", 1),
    ],
)
def test_examples_in_docstrings(module, least):
    result = doctest.testmod(importlib.import_module(f"search_spaces.{module}"))
    assert result.failed == 0
    assert result.attempted >= least
