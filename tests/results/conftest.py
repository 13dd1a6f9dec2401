"""A ledger on each database: EPSEARCH_TEST_POSTGRES, a PostgreSQL URL, has the tests run there as well as on SQLite."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from results.ledger import schema
from results.ledger.database import connect
from results.ledger.store import Store

POSTGRES = os.environ.get("EPSEARCH_TEST_POSTGRES", "")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    if not POSTGRES:
        pytest.skip("EPSEARCH_TEST_POSTGRES is not set")
    engine = connect(POSTGRES)
    schema.metadata.drop_all(engine)
    engine.dispose()
    return POSTGRES


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as opened:
        yield opened
