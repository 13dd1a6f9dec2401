"""Rows with right checksums and values of wrong types, as another program may write them: one row is lost, no more."""

import copy
import json
import shutil
import sqlite3
from contextlib import closing

import pytest

from results.ledger import schema
from tests.support.ledgers import NAME, finished

JUNK = (None, True, -1, 2**70, 1e308, "", "\x00[/red]", "999-99-99", [], [1], [["a"]], {}, {"a": {}})
TABLES = {
    "epsearch_summaries": (schema.summaries, "summary", "name"),
    "epsearch_studies": (schema.studies, "config", "name"),
    "epsearch_runs": (schema.runs, "content", "key"),
}


def paths(value, at=()):
    """Every place within a JSON value."""
    yield at
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from paths(part, (*at, key))


def with_junk(value, at, junk):
    if not at:
        return junk
    changed = copy.deepcopy(value)
    part = changed
    for key in at[:-1]:
        part = part[key]
    part[at[-1]] = junk
    return changed


def write(file, table, column, value, row):
    """Stores a row with another value of a column, sealed as ours are."""
    kept = {name: one for name, one in row.items() if name != "checksum"}
    sealed = schema.with_checksum({**kept, column: value if isinstance(value, str) else json.dumps(value)})
    with closing(sqlite3.connect(file)) as connection, connection:
        names = ", ".join(f"{name} = :{name}" for name in sealed)
        connection.execute(
            f"UPDATE {table.name} SET {names} WHERE {table.columns[0].name} = :{table.columns[0].name}", sealed
        )


def row_of(file, table):
    """The first row, which is of the study, or of one of its members."""
    with closing(sqlite3.connect(file)) as connection:
        connection.row_factory = sqlite3.Row
        return dict(connection.execute(f"SELECT * FROM {table.name} ORDER BY 1 LIMIT 1").fetchone())


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(finished(), tmp_path / "runs")
    return tmp_path / "runs"


def cases(column_of, file, share):
    table, column, _ = TABLES[column_of]
    row = row_of(file, table)
    value = json.loads(row[column])
    every = [(at, junk) for at in paths(value) for junk in JUNK]
    return table, column, row, value, every[::share]


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("epsearch_summaries", 5),
        ("epsearch_studies", 37),
        ("epsearch_runs", 17),
        pytest.param("epsearch_summaries", 1, marks=pytest.mark.slow),
        pytest.param("epsearch_studies", 17, marks=pytest.mark.slow),
        pytest.param("epsearch_runs", 5, marks=pytest.mark.slow),
    ],
)
def test_list_shows_all_other_studies(epsearch, folder, name, share):
    """A sample of the places in a row, with junk of every kind; behind the mark every place in a summary."""
    file = folder / "epsearch.sqlite"
    table, column, row, value, every = cases(name, file, share)
    assert {repr(junk) for _, junk in every} == {repr(junk) for junk in JUNK}
    for at, junk in every:
        write(file, table, column, with_junk(value, at, junk), row)
        for arguments in (["list"], ["list", "--json"]):
            answer = epsearch(*arguments)
            assert answer.status == 0, (at, junk, answer.err)
        answer = epsearch("show", NAME, "--json")
        assert answer.status in (0, 1, 2) and answer.err.count("\n") <= 3, (at, junk, answer.err)
        assert "bug" not in answer.err, (at, junk, answer.err)


@pytest.mark.slow
@pytest.mark.few(6)
@pytest.mark.parametrize("table", [schema.studies, schema.runs, schema.certificates], ids=lambda table: table.name)
@pytest.mark.parametrize("text", ["", "yesterday", "9999-99-99T00:00:00", "2026", "1e400", "\x00"])
def test_times_that_are_none_are_no_bug(epsearch, folder, table, text):
    file = folder / "epsearch.sqlite"
    write(file, table, "created", text, row_of(file, table))
    pages = [["report", NAME]] if text == "yesterday" else []  # which takes a second
    for arguments in (["list"], ["show", NAME], ["show", NAME, "--json"], *pages):
        answer = epsearch(*arguments)
        assert answer.status in (0, 2), (arguments, answer.err)
    answer = epsearch("clean", "--older-than", "30d", "--yes")
    assert answer.status == 0, answer.err
