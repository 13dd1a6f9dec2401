"""Eighteen images in folders, a cache for them, and what is decoded of them."""

import pytest

from tests.support import image_folders as made
from trainers.streams.images import decoder, sources


@pytest.fixture
def source(tmp_path):
    return sources.open_folder(made.folders(tmp_path / "images"))


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def decodings(monkeypatch):
    """The names of the images that are decoded from now on."""
    sizes = []
    real = decoder.decode_image
    monkeypatch.setattr(decoder, "decode_image", lambda *given: (sizes.append(given[1]), real(*given))[1])
    return sizes
