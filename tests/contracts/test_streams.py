"""The promises of `stream_checks`, for every kind of stream, and for one's own: EPSEARCH_STREAM=module:factory."""

import os
from importlib import import_module

import pytest

from tests.support.stream_checks import CHECKS
from tests.support.stream_kinds import KINDS


def own():
    """The stream that the environment names, as another kind."""
    name = os.environ.get("EPSEARCH_STREAM")
    if not name:
        return {}
    module, factory = name.split(":")
    return {name: getattr(import_module(module), factory)}


@pytest.mark.parametrize("kind", kinds := KINDS | own())
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_stream(check, kind):
    check(kinds[kind])
