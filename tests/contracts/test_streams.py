"""The promises of `epsearch.testing.streams`, for every kind of stream, and for EPSEARCH_STREAM=module:factory."""

import os
from importlib import import_module

import pytest

from epsearch.testing.streams import PROMISES, StreamCase
from tests.support.stream_kinds import KINDS


def own():
    """The stream that the environment names, as another kind."""
    name = os.environ.get("EPSEARCH_STREAM")
    if not name:
        return {}
    module, factory = name.split(":")
    return {name: getattr(import_module(module), factory)}


@pytest.mark.parametrize("kind", kinds := KINDS | own())
@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_every_stream(promise, kind):
    promise(StreamCase(kinds[kind]))
