"""`epsearch run --reference-rows`: a stored search gets lines beside its curve, and keeps them elsewhere."""

import pandas as pd
import pytest

from tests.epsearch.conftest import SMALL

OPTIONS = [part for name, value in SMALL.items() for part in ("--" + name.replace("_", "-"), str(value))]
RUN = ("run", *OPTIONS, "--name", "mine")
ROWS = ("--reference-rows", "joint,iid")


def references(answer):
    assert answer.status == 0, answer.err
    return [(row["method"], row["n"], row["A_T_mean"]) for row in answer.json["references"]]


@pytest.mark.slow
def test_a_stored_search_gets_them_later_and_takes_them_along(epsearch, tmp_path):
    plain = epsearch(*RUN, "--json").json
    folder = tmp_path / "runs" / "mine"
    before = pd.read_csv(folder / "runs.csv")
    assert plain["references"] == [] and not [*folder.rglob("*references*")]
    planned = epsearch("plan", *OPTIONS, "--name", "mine", *ROWS, "--json").json
    assert planned["ahead"]["largest"] == 4 == planned["ahead"]["now"] and planned["steps"] > 0
    run = epsearch(*RUN, *ROWS, "--json")
    rows = references(run)
    assert run.json["effort"]["trained"] == 4 and [(method, n) for method, n, _ in rows] == [("joint", 2), ("iid", 2)]
    assert all(run.json[name] == plain[name] for name in ("chosen", "rounds", "evaluation", "trust", "looks"))
    runs = pd.read_csv(folder / "runs.csv")
    points = runs[~runs["method"].isin(["joint", "iid"])]
    assert points["key"].tolist() == before["key"].tolist() and len(runs) == len(before) + 4
    for method, _, mean in rows:
        assert mean == pytest.approx(runs[runs["method"] == method]["A_T"].mean())
    lines = pd.read_csv(folder / "figures" / "epsilon_A_T_references.csv")
    assert lines["mean"].tolist() == pytest.approx([mean for *_, mean in rows])
    page = (folder / "report.html").read_text()
    assert "Joint training" in page and "4 of reference rows" in page
    whole = " ".join(epsearch("show", "mine", "--why").out.split())
    assert "Beside the curve, on the cross-validation stream of 2 tasks with its seeds" in whole
    assert "Joint training in the search: A_T" in whole and "i.i.d. training in the search: A_T" in whole

    assert epsearch("export", "mine", "mine.zip").status == 0
    assert epsearch("import", "mine.zip", "--out", "new").status == 0
    again = epsearch("resume", "mine", "--out", "new", "--json")
    assert references(again) == rows and again.json["effort"]["trained"] == 0
    checked = epsearch("verify", "mine", "--sample", "all", "--json")
    labels = [rerun["run"] for rerun in checked.json["runs"]]
    assert checked.status == 0 and labels.count("Joint") == labels.count("i.i.d.") == 2
    # As with certificates, the newest run says what is wanted.
    assert references(epsearch(*RUN, "--json")) == []


@pytest.mark.slow
def test_more_seeds_of_the_search_are_more_seeds_of_the_rows(epsearch):
    first = references(epsearch(*RUN, *ROWS, "--json"))
    more = epsearch("run", "--extend", "--name", "mine", "--seeds", "3", *ROWS, "--json")
    assert [(method, n) for method, n, _ in references(more)] == [("joint", 3), ("iid", 3)]
    assert [mean for *_, mean in references(more)] != [mean for *_, mean in first]
