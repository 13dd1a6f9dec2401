"""Studies and ledgers as files, by the command line."""

import shutil
from contextlib import closing

import pytest
from sqlalchemy import select

from results.ledger import schema
from results.ledger.store import Store
from results.ledger.writers.holder import here
from tests.support import ledgers
from tests.support.ledgers import ARGUMENTS, NAME


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The out folder of a finished search, in the working directory."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(ledgers.finished(), tmp_path / "runs")


@pytest.mark.slow
def test_a_study_moves_and_nothing_of_it_is_trained_again(epsearch, runs):
    written = epsearch("export", NAME, "first.zip", "--json")
    assert written.status == 0 and (written.json["studies"], written.json["runs"]) == (
        [NAME],
        len(ledgers.results(runs)),
    )
    taken = epsearch("import", "first.zip", "--out", "new", "--json")
    assert taken.status == 0 and taken.json["new"] == [NAME] and taken.json["runs"] == written.json["runs"]
    assert ledgers.results(runs) == ledgers.results(runs.parent / "new")
    listed, before = (epsearch("list", "--json", "--out", out).json[0] for out in ("new", "runs"))
    assert listed == before and listed["status"] == "finished"
    again = epsearch("run", *ARGUMENTS, "--name", NAME, "--out", "new", "--json")
    assert again.status == 0 and again.json["effort"]["trained"] == 0
    assert epsearch("export", NAME, "back.zip", "--out", "new").status == 0
    assert (runs.parent / "back.zip").read_bytes() == (runs.parent / "first.zip").read_bytes()


def test_the_same_file_once_more_changes_nothing(epsearch, runs):
    epsearch("export", NAME, "first.zip")
    answer = epsearch("import", "first.zip")
    assert answer.status == 0
    assert answer.out == "new in the ledger: 0 studies, 0 runs, 0 certificates; there already: first\n"


@pytest.mark.slow
def test_what_the_ledger_has_of_a_study_is_filled_up(epsearch, runs):
    """A study that was half done here, and was finished elsewhere."""
    epsearch("export", NAME, "first.zip")
    ledgers.execute(runs, "DELETE FROM epsearch_runs WHERE phase = 'eval'")
    ledgers.execute(runs, "DELETE FROM epsearch_summaries")
    assert epsearch("list", "--json").json[0]["status"] != "finished"
    assert epsearch("import", "first.zip", "--json").json["runs"] > 0
    assert epsearch("list", "--json").json[0]["status"] == "finished"


@pytest.mark.slow
def test_another_name(epsearch, runs):
    epsearch("export", NAME, "first.zip")
    assert epsearch("import", "first.zip", "--name", "second").status == 0
    rows = {row["name"]: row for row in epsearch("list", "--json").json}
    assert rows.keys() == {NAME, "second"} and rows["second"]["chosen"] == rows[NAME]["chosen"]


@pytest.mark.slow
def test_a_name_that_is_taken(epsearch, runs):
    epsearch("export", NAME, "first.zip")
    epsearch("run", *ARGUMENTS, "--lr", "0.2", "--name", NAME, "--out", "other", "--quiet")
    refused = epsearch("import", "first.zip", "--out", "other")
    assert refused.status == 2 and refused.err.count("\n") == 1
    assert "study 'first' exists with another configuration" in refused.err
    assert epsearch("import", "first.zip", "--out", "other", "--name", "mine").status == 0


@pytest.mark.slow
def test_a_study_that_is_being_trained(epsearch, runs):
    epsearch("export", NAME, "first.zip")
    with Store.open(f"sqlite:///{runs}/epsearch.sqlite") as store:
        store.leases.acquire(NAME, here())
        refused = epsearch("import", "first.zip")
        assert refused.status == 2 and "study 'first' is being trained by" in refused.err
        assert epsearch("verify", NAME, "--sample", "1").status == 0  # which writes no runs
        store.leases.release()
    assert epsearch("import", "first.zip").status == 0


@pytest.mark.slow
def test_a_whole_ledger(epsearch, runs):
    epsearch("export", NAME, "first.zip")
    epsearch("import", "first.zip", "--name", "second")
    assert epsearch("export", "--all", "all.zip").status == 0
    taken = epsearch("import", "all.zip", "--out", "new", "--json")
    assert taken.json["new"] == [NAME, "second"]
    refused = epsearch("import", "all.zip", "--out", "new", "--name", "third")
    assert refused.status == 2 and "--name is for a file of one study, all.zip has 2" in refused.err


@pytest.mark.slow
def test_a_study_that_cannot_be_read_is_not_taken_over(epsearch, runs):
    epsearch("export", NAME, "first.zip")
    with closing(Store.open(f"sqlite:///{runs}/epsearch.sqlite")) as store:
        row = store.study(NAME)
        for name, config in (("bad", {**row.config, "kind": "guess"}), ("..", dict(row.config))):
            with store._writing() as connection:
                table = schema.studies
                connection.execute(table.delete())
                connection.execute(table.insert().values(schema.study_to_row(name, config, row.created)))
                assert connection.execute(select(table.c.name)).scalars().all() == [name]
            assert epsearch("export", "--all", f"{name}.zip").status == 0
    for name, words in (("bad", "needs another version of epsearch"), ("..", "a study's name must not begin with")):
        answer = epsearch("import", f"{name}.zip", "--out", "new")
        assert answer.status == 2 and words in answer.err and answer.err.count("\n") == 1
    assert not (runs.parent / "new").exists()


@pytest.mark.slow
def test_bad_input_is_one_line(epsearch, runs):
    (runs.parent / "not.zip").write_bytes(b"PK")
    for arguments in (
        ("export", NAME),
        ("export", NAME, "a.zip", "b"),
        ("export", "--all", NAME, "a.zip"),
        ("export", "nobody", "a.zip"),
        ("export", NAME, "runs/epsearch.sqlite"),
        ("export", NAME, "not.zip"),
        ("import", "nowhere.zip"),
        ("import", "not.zip"),
        ("import", "runs"),
        ("import", "not.zip", "--name", "../x"),
    ):
        answer = epsearch(*arguments)
        assert answer.status == 2 and answer.out == "" and answer.err.count("\n") == 1, (arguments, answer.err)
    assert (runs / "epsearch.sqlite").read_bytes()[:6] == b"SQLite"
