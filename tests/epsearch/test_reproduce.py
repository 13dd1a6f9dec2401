"""The command `reproduce` on small streams, with packs of its own."""

import shutil
from pathlib import Path

import pytest
import yaml

import epsearch as api
from results.statistics.equivalence import OPEN, OUTSIDE, WITHIN, equivalence
from search_spaces.published.pack import packs
from tests.epsearch.test_cli import one_line
from tests.support.packs import EXACT, OWN


@pytest.fixture
def pack(tmp_path):
    """Writes a pack with other fields, and returns its path as typed."""

    def write(name="mine", **fields):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(OWN | fields), encoding="utf-8")
        return f"./{name}.yaml"

    return write


def test_packs_are_listed(epsearch):
    answer = epsearch("reproduce")
    assert answer.status == 0 and all(f" {name} " in answer.out for name in packs())
    assert all(len(line) <= 80 for line in answer.out.splitlines())
    assert [one["name"] for one in epsearch("reproduce", "--json").json] != [] and len(packs()) >= 12


@pytest.mark.slow
def test_a_row_is_trained_and_held_against_print(epsearch, pack, tmp_path):
    answer = epsearch("reproduce", pack(), "--quiet")
    lines = answer.out.splitlines()
    assert answer.status == 0 and lines[0] == "mine: outside ±3 of the printed 90 (n = 2)"
    assert len(lines) <= 12 and all(len(line) <= 80 for line in lines if str(tmp_path) not in line)
    assert "source  Doe et al. 2031, table 4" in answer.out and "print ± 0.89 (s.e.)" in answer.out

    found = epsearch("reproduce", pack(), "--json").json
    assert found["effort"]["trained"] == 0 and found["reproduction"]["answer"] == OUTSIDE
    scores = api.load(found["name"]).runs["A_T"]
    tested = equivalence(scores, 90.0, 2.0 / 5**0.5, 5, 3.0)
    assert found["reproduction"]["interval_90"] == pytest.approx(list(tested.interval(0.9)))
    took = api.load(found["name"]).runs["seconds"].sum()  # less than the tenth that is shown, on a fast machine
    assert found["reproduction"]["seconds"] == round(took, 1) and found["reproduction"]["n"] == 2

    # What others show of it comes from the ledger.
    assert "mine = outside" in epsearch("list").out and "mine = outside" in epsearch("show").out
    why = epsearch("show", "--why").out
    assert "outside ±3 of the printed 90" in why and "known: The authors say so themselves." in why
    page = (tmp_path / "runs" / found["name"] / "comparison.html").read_text(encoding="utf-8")
    assert "outside ±3 of the printed 90" in page
    assert api.load(found["name"]).answer.startswith("mine: outside ±3 of the printed 90 (n = 2).")


@pytest.mark.slow
def test_members_are_shared_and_the_answer_follows_the_pack(epsearch, pack):
    first = epsearch("reproduce", pack(), "--json").json["reproduction"]
    mean = round(first["mean"], 1)
    exact = EXACT | {"mean": mean}
    near = epsearch("reproduce", pack("near", printed=exact, margin=60), "--json").json
    assert near["effort"]["trained"] == 0 and near["reproduction"]["answer"] == WITHIN
    vague = epsearch("reproduce", pack("vague", printed=exact, margin=0.5), "--quiet").out
    assert vague.startswith("vague: cannot tell at n = 2 whether within ±0.5 of the printed")
    assert "seeds would tell 4 times in 5" in vague and "the same with --seeds" in vague
    plain = ["compare", "--from-pack", pack(), "--seeds", "3", "--json"]
    more = epsearch(*plain).json
    assert (more["effort"]["trained"], more["effort"]["reused"], more["reproduction"]["n"]) == (1, 2, 3)


@pytest.mark.slow
def test_the_table_has_every_answer_once_and_survives_an_archive(epsearch, pack, tmp_path):
    one_line(epsearch("reproduce", "--table"), "no ledger")
    for more in ((), ("--seeds", "3"), ("--tasks", "2")):
        name = epsearch("reproduce", pack(), *more, "--json").json["name"]
    rows = epsearch("reproduce", "--table", "--json").json
    assert [(row["n"], row["changed"]) for row in rows] == [(3, []), (2, ["tasks"])]
    text = epsearch("reproduce", "--table").out
    assert text.count("| mine |") == 2 and "outside (other tasks)" in text and "Permuted Digits" in text

    assert epsearch("export", "--all", "all.epsearch").status == 0
    shutil.rmtree(tmp_path / "runs")
    assert epsearch("import", "all.epsearch").status == 0
    assert epsearch("reproduce", "--table").out == text
    assert "mine with other tasks: " in epsearch("show", name, "--why").out


@pytest.mark.slow
def test_a_plan_of_a_pack_trains_nothing(epsearch, pack, tmp_path):
    answer = epsearch("plan", "reproduce", pack())
    assert answer.status == 0 and "2 to train" in answer.out and "power" not in answer.out
    assert "print    A_T 90, margin ±3" in answer.out and len(answer.out.splitlines()) <= 5
    assert not (tmp_path / "runs").exists()
    one_line(epsearch("plan", "reproduce"), "plan reproduce needs a pack; `epsearch reproduce` lists them")


@pytest.mark.slow
def test_several_methods_from_a_pack_are_a_comparison(epsearch, pack):
    answer = epsearch("compare", "--from-pack", pack(), "--methods", "er,van", "--quiet")
    lines = answer.out.splitlines()
    assert lines[0] == "mine: outside ±3 of the printed 90 (n = 2)" and lines[1].startswith("highest A_T: ")
    others = epsearch("compare", "--from-pack", pack(settings={**OWN["settings"], "lr": 0.1}), "--methods", "van")
    one_line(others, "settings of 'er' are given, but the methods are van")


@pytest.mark.slow
def test_a_row_without_a_result_is_open(epsearch, pack):
    answer = epsearch("reproduce", pack(), "--time-budget", "1s", "--quiet", "--print-config")
    assert yaml.safe_load(answer.out)["from_pack"]["printed"]["mean"] == 90.0
    found = epsearch("reproduce", pack(seeds=1, printed=OWN["printed"] | {"mean": 50.0}), "--json").json
    assert found["reproduction"]["answer"] == OPEN and found["reproduction"]["seeds_needed"] == 2


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("er-pmnst-200",), "no pack 'er-pmnst-200'; did you mean 'er-pmnist-200'?"),
        (("./absent.yaml",), "cannot read the pack absent.yaml: No such file or directory"),
        (("er-pmnist-200", "--table"), "--table is for a whole ledger of this machine; leave PACK and --server out"),
        (("er-pmnist-200", "--tasks", "0"), "tasks must be >= 2, got 0"),
    ],
)
def test_wrong_arguments_are_one_line(epsearch, arguments, line):
    one_line(epsearch("reproduce", *arguments), line)


@pytest.mark.slow
def test_a_stored_answer_keeps_its_pack(epsearch, pack):
    """Neither a margin that is moved after the result nor a command without the pack takes the answer away."""
    name = epsearch("reproduce", pack(), "--json").json["name"]
    moved = epsearch("reproduce", pack(margin=200), "--quiet")
    assert moved.status == 2
    assert f"study {name!r} is held against pack 'mine' as it was; choose another --name" in moved.err
    remarked = epsearch("reproduce", pack(anomalies=["A remark of later."]), "--name", name, "--json").json
    assert remarked["effort"]["trained"] == 0, "no question: the answer is the same"
    plain = yaml.safe_load(epsearch("compare", "--from-pack", pack(), "--print-config").out)
    plain.pop("from_pack")
    Path("plain.yaml").write_text(yaml.safe_dump(plain), encoding="utf-8")
    assert "is held against pack 'mine'" in epsearch("compare", "--config", "plain.yaml", "--name", name).err
    assert "mine = outside" in epsearch("list").out
    other = epsearch("reproduce", pack(margin=200), "--name", "other", "--json").json
    assert other["reproduction"]["answer"] == WITHIN and other["effort"]["trained"] == 0


def test_orders_of_one_seed_are_no_runs_of_their_own(epsearch, pack):
    answer = epsearch("reproduce", pack(), "--orders", "2")
    assert (
        answer.status == 2 and "orders must be 1 with from-pack, as orders of one seed are no independent" in answer.err
    )


@pytest.mark.parametrize("more", [["--seeds", "3"], ["--table", "--seeds", "3"], ["--memory", "5"], ["--quiet"]])
def test_options_without_a_pack_are_refused(epsearch, more):
    """And not left out of a list that trains nothing."""
    answer = epsearch("reproduce", *more)
    option = next(word for word in more if word != "--table").removeprefix("--")
    assert answer.status == 2 and f"{option} is for a pack; name one before it" in answer.err


def test_joint_training_has_a_plan(epsearch, pack):
    """Its steps are all at the last task."""
    joint = {"tasks": 3, "cv_tasks": 0, "examples_per_task": 60, "lr": 0.1}
    plan = epsearch("plan", "reproduce", pack(method="joint", settings=joint))
    assert plan.status == 0 and "2 to train" in plan.out
