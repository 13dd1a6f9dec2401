"""The command line: what each command prints, and one line with status 2 for every bad input."""

import os
import re
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from epsearch.cli import PANELS, app
from epsearch.study.kinds import KINDS
from epsearch.study.option import BASIC, GROUPS
from trainers.streams.pixels import mnist

DOCS = Path(__file__).parents[2] / "docs"
COMMANDS = get_command(app).commands
OPTIONS = {name: one for kind in KINDS.values() for name, one in kind.options().items()}


def one_line(answer, *parts):
    """The answer is a single line on standard error that holds all parts, and status 2."""
    assert answer.status == 2 and answer.out == ""
    line = answer.err.strip()
    assert line.startswith("epsearch: ") and "\n" not in line, line
    for part in parts:
        assert part in line, line


class TestRun:
    def test_the_whole_job(self, epsearch, small_options, tmp_path):
        answer = epsearch("run", *small_options, "--name", "first")
        assert answer.status == 0
        lines = answer.out.splitlines()
        assert lines[0].startswith("ε = ") and "95 % confidence set" in lines[0] and "A-GEM (ε = 0)" in answer.out
        assert len(lines) <= 12 and len(answer.out.split()) <= 90
        folder = tmp_path / "runs" / "first"
        assert (folder / "report.html").read_text(encoding="utf-8").count("<html") == 1
        for name in ("study.yaml", "runs.csv", "runs.parquet", "evaluation.csv", "search.csv"):
            assert (folder / name).stat().st_size > 0
        assert "repeat 1 of 2" in answer.err and "evaluation" in answer.err

        again = epsearch("run", *small_options, "--name", "first", "--json")
        assert again.json["effort"]["trained"] == 0 and again.err == ""
        assert again.json["evaluation"][0]["A_T_mean"] > 0

        conflict = epsearch("run", *small_options, "--name", "first", "--lr", "0.2")
        one_line(conflict, "study 'first' exists with another configuration", "lr is", "there, 0.2 here")

        listed = epsearch("list")
        assert listed.status == 0 and "first" in listed.out and "finished" in listed.out
        assert epsearch("list", "--json").json[0]["name"] == "first"
        shown = epsearch("show", "first")
        assert "finished" in shown.out and "examples_per_task" in shown.out
        why = epsearch("show", "first", "--why")
        assert "The search chose ε = " in why.out and "LCA_10" in why.out
        assert epsearch("show", "first", "--why", "--json").json["trust"] == again.json["trust"]
        assert epsearch("show", "--json").json["finished"] is True

        (folder / "report.html").unlink()
        written = epsearch("report", "first", "--json")
        assert written.json["chosen"] == again.json["chosen"]
        assert (folder / "report.html").exists()
        one_line(epsearch("report", "frist"), "no study 'frist'; known: first; did you mean 'first'?")

    @pytest.mark.slow
    def test_the_printed_study_runs_again_unchanged(self, epsearch, small_options, tmp_path):
        text = epsearch("run", *small_options, "--print-config").out
        (tmp_path / "study.yaml").write_text(text, encoding="utf-8")
        assert not (tmp_path / "runs").exists()
        assert epsearch("run", "--config", "study.yaml", "--print-config").out == text
        assert yaml.safe_load(text)["memory"] == 3
        assert epsearch("run", "--config", "study.yaml", "--quiet").status == 0
        assert (tmp_path / "runs" / yaml.safe_load(text)["name"] / "study.yaml").read_text(encoding="utf-8") == text

    @pytest.mark.slow
    def test_scoring_on_the_evaluation_stream_is_said_everywhere(self, epsearch, small_options):
        answer = epsearch("run", *small_options, "--score-on", "eval", "--quiet")
        assert "chosen on the evaluation stream itself" in answer.out
        page = Path(re.search(r"report\s+(\S+report\.html)", answer.out)[1]).read_text(encoding="utf-8")
        assert "selected on the evaluation stream" in page

    def test_aliases(self, epsearch):
        config = yaml.safe_load(
            epsearch("run", "--mem-size", 7, "--eps-mem-batch", "all", "--interval", 0.1, 0.3, "--print-config").out
        )
        assert config["memory"] == 7 and config["memory_batch"] == "all" and config["interval"] == [0.1, 0.3]


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "parts"),
        [
            (["--dataset", "permuted_mnits"], ["no dataset", "did you mean 'permuted_mnist'?"]),
            (["--method", "soft_gem"], ["no method 'soft_gem'", "did you mean 'soft_agem'?"]),
            (["--score-on", "cve"], ["no score-on 'cve'", "cv, eval"]),
            (["--interval", "0", "2"], ["interval must satisfy 0 <= low < high <= 1, got 0 2"]),
            (["--points", "2"], ["points must be >= 3, got 2"]),
            (["--cv-tasks", "20"], ["cv-tasks must be < tasks"]),
            (["--examples-per-task", "3"], ["examples-per-task must be >= batch-size, got 3 and 10"]),
            (["--examples-per-task", "5000"], ["examples-per-task must lie in 1…1442", "got 5000"]),
            (["--memory", "0"], ["memory must be >= 1 for soft_agem"]),
            (["--config", "none.yaml"], ["cannot read the config file none.yaml"]),
            (["--repeat", "3"], ["No such option: --repeat", "--repeats"]),
            (["--storage", "sqlite:////nowhere/at/all.sqlite"], ["/nowhere/at"]),
            (["--storage", "nonsense"], ["nonsense"]),
        ],
    )
    def test_values(self, epsearch, small_options, tmp_path, arguments, parts):
        one_line(epsearch("run", *small_options, *arguments), *parts)
        assert not list(tmp_path.rglob("*.sqlite")) and not list(tmp_path.rglob("report.html"))

    def test_unknown_key_in_the_file(self, epsearch, tmp_path):
        (tmp_path / "study.yaml").write_text("repeat: 3\n", encoding="utf-8")
        one_line(epsearch("run", "--config", "study.yaml"), "no option 'repeat'", "did you mean 'repeats'?")
        (tmp_path / "study.yaml").write_text("methods: [van, ewc]\nseeds: 3\n", encoding="utf-8")
        one_line(epsearch("run", "--config", "study.yaml"), "study.yaml: it describes a study of `epsearch compare`")

    def test_truncated_data(self, epsearch, tmp_path):
        mnist.load.cache_clear()
        for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
            (tmp_path / f"{name}-ubyte").write_bytes(b"\0\0\x08")
        one_line(
            epsearch("run", "--dataset", "perm-mnist", "--data-dir", tmp_path), "train-images-idx3-ubyte", "not an IDX"
        )
        assert not (tmp_path / "runs").exists()

    @pytest.mark.slow
    def test_no_network(self, epsearch, tmp_path, monkeypatch):
        datasets = pytest.importorskip("torchvision.datasets")
        monkeypatch.setattr(datasets.MNIST, "mirrors", [(tmp_path / "nowhere").as_uri() + "/"])
        mnist.load.cache_clear()
        one_line(
            epsearch("run", "--dataset", "permuted_mnist", "--data-dir", tmp_path / "data"),
            "download failed",
            "--data-dir",
        )

    def test_out_folder_that_is_a_file(self, epsearch, small_options, tmp_path):
        (tmp_path / "taken").touch()
        one_line(epsearch("run", *small_options, "--out", "taken"), "cannot write to the out folder", "--out")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_out_folder_without_permission(self, epsearch, small_options, tmp_path):
        (tmp_path / "locked").mkdir(mode=0o500)
        one_line(epsearch("run", *small_options, "--out", "locked/runs"), "cannot write to the out folder")

    def test_a_file_that_is_no_ledger(self, epsearch, small_options, tmp_path):
        (tmp_path / "notes.txt").write_text("not a database, but long enough to look like one " * 50)
        one_line(epsearch("run", *small_options, "--storage", "sqlite:///notes.txt"), "notes.txt")

    def test_commands(self, epsearch):
        one_line(epsearch("rnu"), "No such command 'rnu'", "run")
        one_line(epsearch("show", "--out", "empty"), "empty")


@pytest.mark.slow
def test_datasets(epsearch):
    rows = {row["name"]: row for row in epsearch("datasets", "--json").json}
    assert rows["permuted_digits"]["status"] == "present"
    assert rows["permuted_mnist"]["status"] == "downloaded when first used"
    assert "permuted_mnist" in epsearch("datasets").out


@pytest.mark.slow
def test_doctor(epsearch):
    answer = epsearch("doctor", "--json")
    found = {check["subject"]: check for check in answer.json}
    assert answer.status == 0
    assert {"Python", "torch", "torchvision import", "GPU", "Ray", "out folder"} <= set(found)
    assert found["Ray"]["ok"] is True


@pytest.mark.parametrize("name", COMMANDS)
def test_a_start_makes_only_the_command_that_it_needs(name):
    (one,) = get_command(app.only([name])).commands.values()
    assert [(each.name, each.opts) for each in one.params] == [(each.name, each.opts) for each in COMMANDS[name].params]
    assert getattr(one, "commands", {}).keys() == getattr(COMMANDS[name], "commands", {}).keys()


@pytest.mark.parametrize("words", [(), ("--help",), ("rum",)])
def test_other_starts_make_all(words):
    assert get_command(app.only(words)).commands.keys() == COMMANDS.keys()


def test_every_command_has_help_and_docs():
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    for name, command in COMMANDS.items():
        assert command.help, name
        assert f"\n## epsearch {name}\n" in page, name
    for option in OPTIONS.values():
        for flag in (option.flag, *option.aliases):
            assert f"`{flag}`" in page, flag


def flags(text):
    """The options that a help lists."""
    return set(re.findall(r"^│ (--[a-z-]+)", text, flags=re.MULTILINE))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_short_help_has_the_basic_options_and_the_long_one_all(epsearch, kind):
    options = kind.options().values()
    basic = {option.flag for option in options if option.level == BASIC}
    short, shown = flags(epsearch(kind.kind, "--help").out), epsearch(kind.kind, "--help-all").out
    assert short == basic | {"--help", "--help-all"} | ({"--extend"} if kind.extendable else set())
    assert len(short) <= 16 and basic < flags(shown)
    assert all(option.flag in shown for option in kind.options().values() if len(option.flag) < 20)


@pytest.mark.slow
def test_help_says_what_options_take_and_what_they_are_without(epsearch, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    shown = " ".join(epsearch("run", "--help-all").out.replace("│", " ").split())
    for panel in GROUPS:
        assert f"─ {panel} ─" in shown
    for part in (
        "--points INT Values tried in each round. [default: 11]",
        "--lr FLOAT",
        "--choose curve|tried",
    ):
        assert part in shown
    assert "<str>" not in shown and "[default: permuted_digits]" in shown


@pytest.mark.slow
def test_help_has_the_values_of_the_dataset(epsearch, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    for dataset, repeats, lr in (("permuted_mnist", 5, 0.1), ("split_cub", 5, 0.1), ("permuted_digits", 4, 0.03)):
        for words in (["--dataset", dataset, "--help-all"], [f"--dataset={dataset}", "--help-all"]):
            shown = " ".join(epsearch("run", *words).out.replace("│", " ").split())
            assert f"Rounds of the search. [default: {repeats}]" in shown, dataset
            assert f"Learning rate. [default: {lr}]" in shown, dataset
    unknown = " ".join(epsearch("run", "--dataset", "nowhere", "--help").out.replace("│", " ").split())
    assert "Rounds of the search. [default: the dataset's]" in unknown


@pytest.mark.slow
def test_commands_are_in_groups(epsearch, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    shown = epsearch("--help").out
    assert [*re.findall("─ ([A-Z][a-z]+) ─", shown)] == ["Options", *PANELS]
    assert sorted(name for names in PANELS.values() for name in names) == sorted(COMMANDS)


@pytest.mark.parametrize("command", ["", *KINDS, "plan", "plan compare", "check", "list", "doctor", "datasets prepare"])
def test_help_fits_80_columns(epsearch, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    shown = epsearch(*command.split(), "--help").out
    assert "--help" in shown
    assert not re.search(r"--\S*…|<bool>", shown)  # neither cut nor with a type that flags do not take


def test_version(epsearch):
    assert epsearch("--version").out == f"epsearch {version('epsearch')}\n"
