"""Commands on a ledger of the last development version: readers leave it alone, writers copy it first."""

import shutil

import pytest

from results.ledger.schema import VERSION
from tests.support.ledgers import ARGUMENTS, NAME, execute, finished, of_development, query, results

RUN = ["run", *ARGUMENTS, "--name", NAME, "--quiet"]


@pytest.fixture
def out(tmp_path):
    """A finished ledger of the last development version, where the commands look for it."""
    shutil.copytree(finished(), tmp_path / "runs")
    of_development(tmp_path / "runs")
    return tmp_path / "runs"


def version(out):
    return query(out, "SELECT version FROM epsearch_schema")


@pytest.mark.slow
def test_who_reads_leaves_it_as_it_is(epsearch, out):
    before = (out / "epsearch.sqlite").read_bytes()
    for arguments in (["list"], ["show"], ["report"], ["plan", *RUN[1:]]):
        answer = epsearch(*arguments)
        assert answer.status == 0 and answer.err == "", answer.err
    assert (out / "epsearch.sqlite").read_bytes() == before
    assert not list(out.glob("epsearch.sqlite?*"))


@pytest.mark.slow
def test_a_run_brings_it_up_to_date_and_says_where_the_copy_is(epsearch, out):
    before = results(out)
    answer = epsearch(*RUN, "--json")
    assert answer.status == 0 and answer.json["effort"]["trained"] == 0
    copy = f"{out}/epsearch.sqlite.v7"
    done = f"the ledger had schema version 7 and was brought up to {VERSION}"
    assert answer.err == f"{done}; the ledger as it was before is kept in {copy}\n"
    assert version(out) == [(VERSION,)] and results(out) == before
    assert epsearch(*RUN).err == ""
    shutil.move(copy, out / "epsearch.sqlite")
    assert version(out) == [(7,)] and results(out) == before


@pytest.mark.slow
def test_the_command_brings_it_up_to_date(epsearch, out):
    before = results(out)
    answer = epsearch("db", "upgrade", "--json")
    assert answer.status == 0 and answer.err == answer.json["told"] + "\n"
    assert answer.json["version"] == VERSION and answer.json["told"].endswith(f"is kept in {out}/epsearch.sqlite.v7")
    assert version(out) == [(VERSION,)] and results(out) == before
    assert epsearch("db", "upgrade", "--json").json["told"] == ""
    assert epsearch("db", "upgrade").err == ""
    assert epsearch("db", "upgrade").out.endswith(f"has schema version {VERSION}: it is up to date\n")
    assert len(list(out.glob("epsearch.sqlite.v*"))) == 1


def test_the_command_makes_no_ledger(epsearch, tmp_path):
    answer = epsearch("db", "upgrade")
    assert answer.status == 2 and answer.err.count("\n") == 1 and "epsearch.sqlite yet; `epsearch run`" in answer.err
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "epsearch.sqlite").touch()
    answer = epsearch("db", "upgrade")
    assert (answer.status, answer.err) == (2, "epsearch: there is no ledger yet; `epsearch run` makes one\n")


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        *(
            (
                old,
                f"{old} is of a development version: export the studies with that version, and `epsearch import` the "
                "file",
            )
            for old in (3, 6)
        ),
        (99, "upgrade epsearch"),
    ],
)
@pytest.mark.parametrize("arguments", [["db", "upgrade"], ["list"], RUN], ids=lambda arguments: arguments[0])
def test_versions_that_it_does_not_know_are_one_line(epsearch, out, arguments, number, advice):
    execute(out, f"UPDATE epsearch_schema SET version = {number}")
    before = (out / "epsearch.sqlite").read_bytes()
    answer = epsearch(*arguments)
    assert answer.status == 2 and answer.out == "" and answer.err.count("\n") == 1
    assert f"the ledger has schema version {number}, " in answer.err and answer.err.endswith(f"; {advice}\n")
    assert (out / "epsearch.sqlite").read_bytes() == before
