"""A PostgreSQL database stores every text, or is refused in one line before anything is read or written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from results.ledger.database import connect
from results.ledger.store import Store, StoreError
from results.ledger.url import LedgerUrl
from tests.support.encodings import answering
from tests.support.synthetic import record

OTHERS = ("SQL_ASCII", "LATIN1")
OPENING = pytest.mark.parametrize("open_it", [Store.open, Store.read, Store.upgrade])


def refused(open_it: Callable[[str], Store], url: str, encoding: str) -> None:
    with pytest.raises(StoreError) as caught:
        open_it(url)
    assert str(caught.value) == (
        f"the database of the ledger {LedgerUrl.of(url)} has the encoding {encoding}; allowed: UTF8, as of CREATE "
        "DATABASE … ENCODING 'UTF8' TEMPLATE template0"
    )


@OPENING
@pytest.mark.parametrize("encoding", OTHERS)
def test_another_encoding_is_refused(open_it: Callable[[str], Store], encoding: str) -> None:
    pytest.importorskip("psycopg")
    with answering(encoding) as url:
        refused(open_it, url, encoding)


@pytest.fixture(scope="module")
def databases(postgresql: str) -> Callable[[str], str]:
    """A function that makes a database with an encoding and returns its URL."""
    engine = connect(postgresql).execution_options(isolation_level="AUTOCOMMIT")

    def make(encoding: str) -> str:
        name = f"in_{encoding.lower()}"
        with engine.connect() as connection:
            connection.execute(text(f"DROP DATABASE IF EXISTS {name}"))
            connection.execute(text(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0"))
        engine.dispose()
        return postgresql.replace("/postgres?", f"/{name}?")

    return make


@pytest.mark.service
@OPENING
@pytest.mark.parametrize("encoding", OTHERS)
def test_postgresql_says_another_encoding(
    databases: Callable[[str], str], open_it: Callable[[str], Store], encoding: str
) -> None:
    refused(open_it, databases(encoding), encoding)


@pytest.mark.service
@pytest.mark.parametrize("wanted", ["SQL_ASCII", "LATIN1"])
def test_text_goes_as_utf8_whatever_the_environment_says(
    databases: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, wanted: str, tmp_path: Path
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", wanted)
    url = databases("UTF8")
    with Store.open(url) as store:
        store.save_study("ε", {"words": "… ε ∂ 漢"})
        store.add([record()])
    with Store.read(url) as store:
        (study,) = store.studies()
        assert (study.name, study.config) == ("ε", {"words": "… ε ∂ 漢"}) and len(store.all_runs()) == 1
