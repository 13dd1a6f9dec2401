"""A database that does not store every text is one line, whatever is wanted of it."""

import pytest

from tests.support.encodings import answering


@pytest.mark.parametrize("command", [["list"], ["run", "--dataset", "permuted_digits"], ["db", "upgrade"]], ids=str)
def test_a_database_of_another_encoding_is_bad_input(epsearch, command):
    pytest.importorskip("psycopg")
    with answering("SQL_ASCII") as url:
        answer = epsearch(*command, "--storage", url)
    assert answer.status == 2 and answer.err.strip().count("\n") == 0
    assert answer.err.startswith(
        f"epsearch: the database of the ledger {url} has the encoding SQL_ASCII; allowed: UTF8"
    )
