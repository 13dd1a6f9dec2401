"""A ledger on each database: tests with PostgreSQL, on a server that they start, are marked `service`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import MetaData

from results.ledger.database import connect
from results.ledger.store import Store
from tests.support import postgres


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a PostgreSQL server."""
    programs = postgres.programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    with postgres.server(programs) as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.service)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    found: str = request.getfixturevalue("postgresql")
    engine = connect(found)
    there = MetaData()
    there.reflect(engine)  # also tables that a test has added
    there.drop_all(engine)
    engine.dispose()
    return found


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as opened:
        yield opened
