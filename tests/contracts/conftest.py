"""The fixtures of those whose promises are tested here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from results.ledger.store import Store
from tests.results.conftest import postgresql, store, url
from tests.search_spaces.conftest import coarse_gp
from tests.trainers.conftest import one_thread, told

__all__ = ["coarse_gp", "one_thread", "other", "postgresql", "store", "told", "url"]


@pytest.fixture
def other(url: str, store: Store) -> Iterator[Store]:
    """Another run's store at the same ledger."""
    with Store.open(url) as opened:
        yield opened
