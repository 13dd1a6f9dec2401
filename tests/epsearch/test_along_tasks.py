"""A search along tasks by the command line: what is refused, what is printed, and that it can be stopped and moved."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest

from epsearch.findings.listing import load
from epsearch.findings.reports import REPORTS
from epsearch.ledger.location import LedgerUrl
from epsearch.publishing.points import publication, trial_of
from tests.epsearch.conftest import SMALL
from tests.epsearch.test_cli import one_line
from tests.support import halting, ledgers
from tests.support.ledgers import NAME
from tests.support.limits import HANGS

ALONG = {
    "protocol": "extrapolated",
    "cv_tasks": 3,
    "most_cv_tasks": 5,
    "tasks": 9,
    "strategy": "grid",
    "points": 5,
    "repeats": 1,
    "certify": 0,
}
FIRST, GROWN = 10, 14
"""Members of the first stage, and so many that a further one has begun: with the two of the baseline, and two more."""


def arguments(**options):
    every = SMALL | ALONG | options
    return [str(part) for name, value in every.items() for part in ("--" + name.replace("_", "-"), value)]


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The out folder of a finished search along tasks, in the working directory."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(ledgers.finished(**ALONG), tmp_path / "runs")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--method", "joint", "--search", "lr=0.1..0.2"], "needs tasks one after another; joint shows them together"),
        (["--score-on", "eval"], "protocol extrapolated needs score-on cv, got eval"),
        (["--objective", "worst-task"], "protocol extrapolated needs objective A_T, got worst-task"),
        (["--race"], "protocol extrapolated needs all seeds of every value; leave --race out"),
        (["--seeds", "1"], "protocol extrapolated needs two seeds or more, got 1"),
        (["--search", "memory=1,2,3"], "protocol extrapolated needs numbers as searched values, got choices"),
        (["--cv-tasks", "2"], "protocol extrapolated needs cv-tasks >= 3, got 2"),
        (["--tasks", "6"], "needs more tasks in the evaluation than the 3 of cv-tasks, got 3"),
        (["--cv-tasks", "4", "--most-cv-tasks", "3"], "needs most-cv-tasks >= cv-tasks, got 3 and 4"),
        (["--most-cv-tasks", "2"], "most-cv-tasks must be >= 3, got 2"),
        (["--most-cv-tasks", "many"], "most-cv-tasks must be a whole number >= 3, got 'many'"),
        (["--protocol", "extrapolate"], "did you mean 'extrapolated'?"),
        (["--protocol", "cv-tasks"], "most-cv-tasks is for --protocol extrapolated; give it, or leave it out"),
        (["--cv-tasks", "3..5"], "cv-tasks 3..5 is short for most-cv-tasks 5, too; leave one of them out"),
    ],
)
def test_what_it_refuses_is_one_line(epsearch, tmp_path, options, line):
    named = {option for option in options if option.startswith("--")}
    usual = arguments()
    kept = [part for pair in zip(usual[::2], usual[1::2], strict=True) if pair[0] not in named for part in pair]
    one_line(epsearch("run", *kept, *options), line)
    assert not list(tmp_path.rglob("*.sqlite"))


@pytest.mark.parametrize(
    ("tasks", "line"),
    [
        ("3..10", "cv-tasks must be one number without --protocol extrapolated, got 3..10"),
        ("3..", "cv-tasks must be one number without --protocol extrapolated, got 3.."),
    ],
)
def test_a_range_alone_is_no_search_along_tasks(epsearch, tmp_path, tasks, line):
    one_line(epsearch("run", "--cv-tasks", tasks), line)
    (tmp_path / "study.yaml").write_text(f"cv_tasks: {tasks}\n", encoding="utf-8")
    one_line(epsearch("run", "--config", "study.yaml"), line)


def test_the_end_of_a_range_is_a_number(epsearch):
    along = ("run", "--protocol", "extrapolated", "--cv-tasks")
    one_line(epsearch(*along, "3.."), "most-cv-tasks must be a whole number >= 3, got ''")
    one_line(epsearch(*along, "..5"), "cv-tasks must be a whole number >= 0, got ''")
    one_line(epsearch("compare", "--cv-tasks", "3..5"), "cv-tasks", "3..5")


def test_the_command_line_wins_over_either_end_of_a_range(epsearch, tmp_path):
    (tmp_path / "study.yaml").write_text("protocol: extrapolated\ncv_tasks: 3..6\n", encoding="utf-8")
    printed = epsearch("run", "--config", "study.yaml", "--most-cv-tasks", "8", "--print-config").out
    assert "cv_tasks: 3\n" in printed and "most_cv_tasks: 8\n" in printed
    printed = epsearch("run", "--config", "study.yaml", "--cv-tasks", "4..5", "--print-config").out
    assert "cv_tasks: 4\n" in printed and "most_cv_tasks: 5\n" in printed


@pytest.mark.slow
def test_the_plan_says_what_further_tasks_may_cost(epsearch):
    plan = epsearch("plan", *arguments(), "--json").json
    ahead = plan["ahead"]
    assert (ahead["fewest"], ahead["expected"]) == (FIRST + 4, FIRST + 6), "the curve may name a value"
    assert ahead["largest"] == FIRST + 6 + 2 * (FIRST + 2), "two further tasks of all"
    assert (
        plan["brief"]["members"]
        == "about 16 to train without further tasks, at most 40 with all of them, 0 in the ledger"
    )
    assert plan["words"]["members"].startswith(
        "usually about 16 to train without further tasks, at most 40 with all of them (10 now, "
    )
    assert ", with all further tasks at most " in plan["brief"]["time"]
    assert "in later rounds and on further tasks" in plan["words"]["members"]
    assert " without further tasks, at most " in plan["words"]["time"]
    narrowing = epsearch("plan", *arguments(strategy="narrowing", repeats=2), "--json").json
    assert narrowing["brief"]["members"].startswith("about ") and "without further tasks" in str(narrowing["words"])
    plain = epsearch("plan", *arguments(most_cv_tasks=3), "--json").json
    assert plain["brief"]["members"] == "at most 16 to train, 0 in the ledger"


@pytest.mark.slow
def test_json_has_what_was_measured_and_what_is_predicted(epsearch, runs):
    found = epsearch("report", NAME, "--json").json
    (one,), last = found["rounds"], found["stages"][-1]
    table = load_table(runs, "search")
    tried = [point["epsilon"] for point in one["points"]]
    assert one["scores"] == pytest.approx((table["A_T_mean"] / 100).tolist())
    assert len(one["predicted"]) == len(one["scores"]) and one["predicted"] != one["scores"]
    assert one["predicted"][tried.index(found["stages"][0]["choice"]["epsilon"])] == pytest.approx(
        found["stages"][0]["mean"]
    )
    assert found["chosen"] == last["choice"] and found["chosen_predicted"] == last["mean"]
    assert found["chosen_score"] == one["scores"][tried.index(found["chosen"]["epsilon"])]
    assert epsearch("list", "--json").json[0]["score"] == pytest.approx(found["chosen_score"])


def load_table(runs, name):
    import pandas as pd

    return pd.read_csv(runs / NAME / f"{name}.csv")


@pytest.mark.slow
def test_the_report_says_which_stage_a_figure_shows(epsearch, runs):
    stages = epsearch("report", NAME, "--json").json["stages"]
    last = stages[-1]["tasks"]
    assert last > 3, "it went on"
    page = (runs / NAME / "report.html").read_text(encoding="utf-8").replace("<sub>T</sub>", "_T")
    said = (
        f"All values are shown after 3 tasks, the first stage; the choice is by A_T predicted for 6 tasks from {last}."
    )
    assert said in page and "by predicted A_T." in page
    assert f"A_T after {last} tasks of the search, with the values of its last stage" in page
    assert f"predicted for 6 tasks from 3 to {last}" in page and "Of 3 tasks alone, which did not choose: " in page
    stored, table = load_table(runs, "runs"), load_table(runs, "stages")
    assert set(stored["tasks"]) == {3, 6, *range(4, last + 1)} and stored["key"].is_unique
    assert table["tasks"].tolist() == [stage["tasks"] for stage in stages]
    each = stored[stored["phase"] == "cv"].groupby(["epsilon", "seed"])["steps"].max().sum()
    taken = int(each + stored[stored["phase"] == "eval"]["steps"].sum())
    assert f"{taken:,}" in page, "steps of the first tasks are not counted again"


@pytest.mark.slow
def test_runs_on_further_tasks_are_verified_like_others(epsearch, runs):
    answer = epsearch("verify", NAME, "--sample", "all", "--json")
    assert answer.status == 0 and answer.json["agrees"]
    assert answer.json["sample"] == answer.json["stored"] == len(ledgers.results(runs)) > FIRST + 4
    assert all(one["same"] and one["same_parameters"] for one in answer.json["runs"])


@pytest.mark.slow
def test_it_moves_and_nothing_is_trained_again(epsearch, runs):
    assert epsearch("export", NAME, "first.zip").status == 0
    assert epsearch("import", "first.zip", "--out", "new", "--json").json["runs"] == len(ledgers.results(runs))
    assert ledgers.results(runs) == ledgers.results(runs.parent / "new")
    again = epsearch("run", *arguments(), "--name", NAME, "--out", "new", "--json")
    assert again.status == 0 and again.json["effort"]["trained"] == 0
    assert again.json["stages"] == epsearch("report", NAME, "--json").json["stages"]


@pytest.mark.slow
def test_tools_and_the_web_get_a_point_once(runs):
    loop = load(NAME, LedgerUrl(f"sqlite:///{runs}/epsearch.sqlite"), runs)
    assert loop.grown_records()
    for trial in publication(loop).trials:
        assert len({record.unit for record in trial.records}) == len(trial.records)
    assert all(trial_of(loop.study, record) is None for record in loop.grown_records())
    groups = REPORTS["run"].groups(loop)
    for members in groups.values():
        assert len({record.unit for record in members}) == len(members)
        assert len({record.tasks for record in members}) == 1
    assert any(label.endswith(", 4 tasks") for _, label in groups)


@pytest.mark.slow
def test_orders_of_tasks(epsearch, tmp_path):
    answer = epsearch("run", *arguments(orders=2, seeds=1, points=3, most_cv_tasks=4), "--name", NAME, "--json")
    assert answer.status == 0, answer.err
    assert [stage["tasks"] for stage in answer.json["stages"]] == [3, 4], "two units leave it open"
    stored = load_table(tmp_path / "runs", "runs")
    grown = stored[stored["tasks"] == 4]
    assert len(grown) == 2 * answer.json["stages"][1]["values"]
    assert answer.json["forecast"]["seen"] == 4
    verified = epsearch("verify", NAME, "--sample", "all", "--json")
    assert verified.status == 0 and verified.json["sample"] == len(stored)


@pytest.mark.slow
def test_checkpoints_in_a_folder_are_gone_on_with_and_gone_at_the_end(epsearch, runs, tmp_path):
    answer = epsearch("run", *arguments(checkpoints="kept"), "--name", NAME, "--out", "other", "--json")
    assert answer.status == 0, answer.err
    assert ledgers.results(tmp_path / "other") == ledgers.results(runs)
    assert not [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]
    later = [row["steps"] for _, row in load_table(tmp_path / "other", "runs").iterrows() if row["tasks"] in (4, 5)]
    tasks = [row["tasks"] for _, row in load_table(tmp_path / "other", "runs").iterrows() if row["tasks"] in (4, 5)]
    known = sum(np.array(later) * (np.array(tasks) - 1) / np.array(tasks))
    assert answer.json["effort"]["saved"] >= known > 0, "all tasks but the newest"


@pytest.mark.slow
def test_a_run_that_is_killed_on_a_further_task_goes_on_to_the_same_tables(runs, tmp_path):
    """Its ledger has members with a task more than the first stage, and misses others of them."""
    command = ["run", *arguments(), "--name", NAME, "--out", tmp_path / "killed", "--json"]
    process, go_on = halting.start(GROWN, *command)
    process.send_signal(signal.SIGKILL)
    go_on()
    process.communicate(timeout=HANGS)
    with closing(sqlite3.connect(tmp_path / "killed" / "epsearch.sqlite")) as connection:
        contents = [json.loads(row) for (row,) in connection.execute("select content from epsearch_runs")]
    assert any("beyond" in content["stream"] for content in contents) and len(contents) < len(ledgers.results(runs))
    done = subprocess.run([sys.executable, "-m", "epsearch", *command], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert ledgers.results(tmp_path / "killed") == ledgers.results(runs)
    for name in ("evaluation", "search", "stages", "trust"):
        assert load_table(tmp_path / "killed", name).equals(load_table(runs, name))
    assert json.loads(done.stdout)["effort"]["reused"] == len(contents)


@pytest.mark.slow
def test_the_evaluation_speaks_of_the_choice_and_the_first_stage_of_itself(epsearch, runs):
    found = epsearch("report", NAME, "--json").json
    first = "Of 3 tasks alone, which did not choose: "
    before, verdict = found["trust"]["text"].split(first)
    row, baseline = found["evaluation"][:2] if len(found["evaluation"]) > 1 else found["evaluation"] * 2
    assert ("The evaluation " in before) == (row["A_T_mean"] < baseline["A_T_mean"]) and "The evaluation" not in verdict
    assert "best tried" not in found["trust"]["advice"], "by scores that did not choose"
    assert f"{before}{first}" in found["answer"] and found["answer"].count(first) == 1
