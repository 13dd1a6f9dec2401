"""What others add is found everywhere: a method, a hyperparameter, a stream, a strategy, a metric."""

import json
import subprocess
import sys

import pytest

from tests.support.limits import HANGS

SIZES = "--tasks 4 --cv-tasks 2 --seeds 2 --examples-per-task 60 --memory 3 --memory-batch 8"
SMALL = [*SIZES.split(), "--runner", "local"]
SEARCH = ["--repeats", "2", "--points", "3", "--certify", "0"]


@pytest.fixture
def extended(tmp_path):
    """A function that runs command lines in an extended epsearch, a process for all, and returns what they printed.

    That is JSON where it was asked for, else the text of both streams; statuses are checked.
    """

    def run(*commands, status=0):
        lines = [[*one, "--out", str(tmp_path)] if one[0] != "datasets" else list(one) for one in commands]
        told = [sys.executable, "-m", "tests.support.extended"]
        process = subprocess.run(told, input=json.dumps(lines), capture_output=True, text=True, timeout=HANGS)
        assert process.returncode == 0, process.stderr
        answers = json.loads(process.stdout)
        assert [one[0] or 0 for one in answers] == [status] * len(commands), answers
        asked = ["--json" in line for line in lines]
        return [
            json.loads(out) if as_json else out + err for as_json, (_, out, err) in zip(asked, answers, strict=True)
        ]

    return run


@pytest.mark.slow
def test_a_method_with_hyperparameters_of_its_own(extended, tmp_path):
    """Options, published values, `--search`, a comparison, keys in the ledger, columns and the report."""
    searched = ["run", "--method", "pulled", "--search", "pull=0..1", "--strategy", "random", *SMALL, *SEARCH, "--json"]
    odd = [*searched, "--pull-when", "odd", "--name", "mine"]
    named = ["compare", "--methods", "van,pulled", "--name", "table", *SMALL, "--json"]
    found, again, other, compared, shown, listed = extended(
        odd,
        odd,
        [*searched, "--name", "other"],
        [*named, "--settings", "pulled.pull=0.75"],
        ["show", "table", "--json"],
        ["list", "--json"],
    )
    assert set(found["chosen"]) == {"pull"} and found["config"]["pull_when"] == "odd"
    assert found["config"]["lr"] == 0.02 and found["config"]["pull"] == 0.25
    report = (tmp_path / "mine" / "report.html").read_text(encoding="utf-8")
    assert "PULLED" in report and "κ" in report
    runs = (tmp_path / "mine" / "search.csv").read_text(encoding="utf-8")
    assert runs.splitlines()[0].split(",").count("pull") == 1
    assert again["effort"]["trained"] == 0 and again["chosen"] == found["chosen"]
    assert other["effort"]["trained"] > 0, "pull_when is part of a key"
    assert [row["row"] for row in compared["rows"]] == ["VAN", "PULLED"]
    assert shown["config"]["settings"]["pulled.pull"] == 0.75 and shown["config"]["settings"]["pulled.lr"] == 0.02
    assert shown["config"]["pull_when"] == "always"
    states = {row["name"]: row for row in listed}
    assert set(states["mine"]["chosen"]) == {"pull"} and states["table"]["status"] == "finished"


@pytest.mark.slow
def test_what_does_not_fit_a_hyperparameter_of_ones_own_is_one_line(extended):
    wrong = {
        ("--pull", "2"): "pull must be a number in [0, 1], got '2'",
        ("--pull-when", "evn"): "no pull-when 'evn'",
        ("--method", "pulled", "--search", "pull=0..2"): "pull must be in [0, 1], got 2",
        ("--method", "agem", "--search", "pull=0..1"): "method 'agem': no hyperparameter 'pull'",
    }
    told = extended(*(["run", *options, *SMALL, *SEARCH] for options in wrong), status=2)
    for line, text in zip(wrong.values(), told, strict=True):
        assert line in text and text.count("\n") == 1, text


@pytest.mark.slow
def test_a_stream_a_strategy_and_a_metric(extended, tmp_path):
    told = ["run", "--strategy", "from-the-ends", *SMALL, *SEARCH, "--json"]
    found, digits, datasets = extended(
        [*told, "--dataset", "upside_down", "--name", "ends"], [*told, "--name", "digits"], ["datasets"]
    )
    values = [[point["epsilon"] for point in one["points"]] for one in found["rounds"]]
    assert values == [[0, 1], [pytest.approx(1 / 6), pytest.approx(5 / 6)]]
    row = found["evaluation"][0]
    assert 0 < row["worst_mean"] <= row["A_T_mean"]
    report = (tmp_path / "ends" / "report.html").read_text(encoding="utf-8")
    assert all(text in report for text in ("Digits upside down", "search from the ends", "worst"))
    assert "upside_down" in datasets
    assert digits["rounds"][0]["scores"] != found["rounds"][0]["scores"], "other images, other results"
