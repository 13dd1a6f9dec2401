"""The system's Chromium, driven over its debugging protocol."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

WIDE, NARROW = 1200, 390  # pixels
widths_and_schemes = pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (WIDE, "light"),
        (NARROW, "dark"),
        pytest.param(WIDE, "dark", marks=pytest.mark.exhaustive),
        pytest.param(NARROW, "light", marks=pytest.mark.exhaustive),
    ],
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


def program() -> str | None:
    """The path of Chromium; None where it is not installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextmanager
def browser() -> Iterator[Any]:
    """A browser of the test's own, which ends with it. Only where `program` finds one."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program(), args=FLAGS)
        try:
            yield chromium
        finally:
            chromium.close()
