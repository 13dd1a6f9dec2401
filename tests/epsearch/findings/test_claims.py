"""Claims are stored before an evaluation, or refused."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.epsearch.conftest import SMALL, TINY

SEARCH = SMALL | {"points": 3, "repeats": 1, "seeds": 2, "tasks": 5}


def arguments(command, sizes, **options):
    pairs = [(f"--{name.replace('_', '-')}", str(value)) for name, value in (sizes | options).items()]
    return [command, *(word for pair in pairs for word in pair), "--quiet"]


def comparison(tmp_path, **options):
    return arguments("compare", TINY | {"methods": "agem,er", "out": tmp_path}, **options)


def search(tmp_path, **options):
    return arguments("run", SEARCH | {"out": tmp_path}, **options)


@pytest.mark.slow
def test_a_claim_is_answered_in_every_place(epsearch, tmp_path):
    done = epsearch(*comparison(tmp_path, claim="er>agem-90", name="one"), "--json")
    assert done.status == 0, done.err
    told = done.json["claim"]
    assert (told["claim"], told["answer"], told["pairs"]) == ("er > agem - 90", "cannot tell", 2)
    page = (tmp_path / "one" / "comparison.html").read_text(encoding="utf-8")
    assert "er &gt; agem - 90: cannot tell" in page and told["hash"] in page
    shown = epsearch("show", "one", "--out", str(tmp_path), "--why").out
    assert told["hash"] in shown.replace("\n", " ")
    again = epsearch(*comparison(tmp_path, claim="er > agem - 90", name="one"))
    assert "claim   er > agem - 90: cannot tell" in again.out


@pytest.mark.slow
def test_the_first_row_of_a_method_is_meant(epsearch, tmp_path):
    done = epsearch(*comparison(tmp_path, claim="er > agem"), "--json").json
    er, agem = (next(row for row in done["rows"] if row["method"] == name) for name in ("er", "agem"))
    assert done["claim"]["excess"] == pytest.approx(er["A_T_mean"] - agem["A_T_mean"])


@pytest.mark.slow
def test_a_claim_about_the_chosen_value_and_the_baseline(epsearch, tmp_path):
    done = epsearch(*search(tmp_path, claim="soft_agem > agem + 1", name="one"), "--json")
    assert done.status == 0, done.err
    chosen, baseline = (row["A_T_mean"] for row in done.json["evaluation"][:2])
    assert done.json["claim"]["excess"] == pytest.approx(chosen - baseline - 1)
    page = (tmp_path / "one" / "report.html").read_text(encoding="utf-8")
    assert "soft_agem &gt; agem + 1" in page
    # Gone on with: the claim stays, its hash is that of the first version, and the report says that more seeds came.
    more = epsearch("run", "--extend", "--name", "one", "--out", str(tmp_path), "--seeds", "3", "--quiet", "--json")
    assert more.json["claim"]["pairs"] == 3 and more.json["claim"]["hash"] == done.json["claim"]["hash"]
    page = (tmp_path / "one" / "report.html").read_text(encoding="utf-8")
    assert "The study was extended after the claim" in page
    other = epsearch(
        *("run", "--extend", "--name", "one", "--out", str(tmp_path), "--seeds", "4"), "--claim", "soft_agem > agem"
    )
    assert other.status == 2 and "claim is soft_agem > agem + 1 there" in other.err


@pytest.mark.slow
def test_a_claim_after_the_evaluation_is_refused(epsearch, tmp_path):
    """Also of a study that began: under its own name, under another one, and where the plan is asked alone."""
    assert epsearch(*comparison(tmp_path, name="one")).status == 0
    line = "claim must be stored before the evaluation; the ledger has 6 members of it already"
    for command in (comparison(tmp_path, name="two", claim="er > agem"), ["plan", *comparison(tmp_path)[:-1]]):
        again = epsearch(*command, *(["--claim", "er > agem"] if command[0] == "plan" else []))
        assert again.status == 2 and line in again.err and len(again.err.splitlines()) == 1
    same = epsearch(*comparison(tmp_path, name="one", claim="er > agem"))
    assert same.status == 2 and "exists with another configuration" in same.err
    assert [one["name"] for one in epsearch("list", "--out", str(tmp_path), "--json").json] == ["one"], (
        "nothing is stored"
    )


@pytest.mark.slow
def test_a_claim_that_a_tuning_hides_is_answered_as_too_late(epsearch, tmp_path, monkeypatch):
    """Before the tuning nobody knows which members will be evaluated: here those that are known already."""
    assert epsearch(*comparison(tmp_path, name="one", methods="agem,van")).status == 0
    later = datetime.now(UTC) + timedelta(minutes=1)

    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return later

    monkeypatch.setattr("results.ledger.store.datetime", Later)
    done = epsearch(*comparison(tmp_path, methods="agem,van", budget=48, claim="agem > van - 90", name="two"), "--json")
    assert done.status == 0, done.err
    assert done.json["claim"]["earlier"] > 0 and done.json["claim"]["answer"] == "stored too late"
    page = (tmp_path / "two" / "comparison.html").read_text(encoding="utf-8")
    assert "older than the claim: it is not tested." in page


@pytest.mark.slow
def test_an_evaluated_baseline_is_enough_to_refuse(epsearch, tmp_path):
    assert epsearch(*search(tmp_path, name="one")).status == 0
    again = epsearch(*search(tmp_path, name="two", strategy="random", claim="soft_agem > agem"))
    assert again.status == 2 and "claim must be stored before the evaluation" in again.err


@pytest.mark.slow
def test_the_same_command_goes_on_with_its_claim(epsearch, tmp_path):
    first = epsearch(*comparison(tmp_path, name="one", claim="er > agem"), "--json").json
    again = epsearch(*comparison(tmp_path, name="one", claim="er > agem"), "--json").json
    assert again["effort"]["trained"] == 0 and again["claim"] == first["claim"]


@pytest.mark.parametrize(
    ("command", "claim", "line"),
    [
        (comparison, "er > agme", "claim: no method 'agme'; known: agem, er; did you mean 'agem'?"),
        (comparison, "er", "claim must compare two methods, like 'soft_agem > agem + 1'; got 'er'"),
        (comparison, "er > er", "claim must compare two different methods, got er twice"),
        (search, "soft_agem > er", "claim: no method 'er'; known: soft_agem, agem"),
    ],
)
def test_wrong_claims_are_one_line(epsearch, tmp_path, command, claim, line):
    answer = epsearch(*command(tmp_path, claim=claim))
    assert answer.status == 2 and line in answer.err and len(answer.err.splitlines()) == 1


@pytest.mark.slow
def test_another_claim_is_another_study_with_the_same_members(epsearch, tmp_path):
    """No key depends on a claim: without one, the members of a study with one are read."""
    assert epsearch(*comparison(tmp_path, claim="er > agem")).status == 0
    assert epsearch(*comparison(tmp_path), "--json").json["effort"]["trained"] == 0


@pytest.mark.slow
def test_a_claim_survives_an_archive(epsearch, tmp_path):
    """Times come along: what was stored before its members is so elsewhere, too."""
    first = epsearch(*comparison(tmp_path, name="one", claim="er > agem"), "--json").json
    archive = tmp_path / "one.zip"
    assert epsearch("export", "one", str(archive), "--out", str(tmp_path)).status == 0
    assert epsearch("import", str(archive), "--out", str(tmp_path / "elsewhere")).status == 0
    again = epsearch("show", "one", "--out", str(tmp_path / "elsewhere"), "--why", "--json").json
    assert again["claim"] == first["claim"] and again["claim"]["earlier"] == 0
