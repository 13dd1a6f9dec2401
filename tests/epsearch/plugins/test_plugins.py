"""Methods, strategies, metrics and figures of others, by module:attribute: searched, keyed, checked and labelled."""

import json
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from epsearch.failures.errors import PluginError, UsageError
from epsearch.findings.search import _limits
from epsearch.loop.content import PARTS
from epsearch.plugins import names
from epsearch.plugins.loading import Plugin, load_expected, load_plugin
from epsearch.plugins.registration import add_plugins
from epsearch.session.session import open_store, train
from results.figures import plugins
from results.metrics import METRICS
from tests.epsearch.test_cli import one_line
from tests.support import others
from tests.support.synthetic import record
from trainers.plugins.calls import ForeignError

OTHERS = Path(others.__file__).read_text(encoding="utf-8")
SEARCH = {"method": "mine:PULLED", "search": "pull=0..1", "repeats": 1, "points": 3, "certify": 0, "name": "one"}


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A function that writes the user's module, as it is or changed."""
    monkeypatch.chdir(tmp_path)

    def write(text=OTHERS):
        (tmp_path / "mine.py").write_text(text, encoding="utf-8")

    write()
    return write


def contents(study):
    """What determines each stored member."""
    with open_store(study.storage) as store:
        return [content for phase in ("cv", "eval") for content, _ in store.contents(phase)]


class TestMethod:
    @pytest.mark.slow
    def test_its_hyperparameters_are_searched_set_and_keyed(self, mine, small_study):
        study = small_study(**SEARCH, set="pull_when=odd")
        assert dict(study.set) == {"pull": 0.5, "pull_when": "odd"}, "declared defaults, too"
        loop, effort = train(study)
        assert effort.trained == 6 + 4 - 2 * (loop.best.point == (0.5,))
        found = contents(study)
        assert {one["method"] for one in found} == {"mine:PULLED"}
        assert {one["config"]["pull_when"] for one in found} == {"odd"}
        assert {one["config"]["pull"] for one in found} >= {0.0, 0.5, 1.0}
        assert len({one[PARTS] for one in found}) == 1
        assert train(study)[1].trained == 0
        assert train(small_study(**SEARCH | {"name": "two"}))[1].trained > 0, "pull_when is part of the keys"

    @pytest.mark.slow
    def test_the_report_names_it_its_values_and_its_files(self, mine, epsearch, small_options, tmp_path):
        told = ["run", *small_options, "--method", "mine:PULLED", "--search", "pull=0..1", "--set", "pull=0.25"]
        shown = epsearch(*told, "--points", 3, "--repeats", 1, "--name", "one", "--out", tmp_path)
        assert shown.status == 0, shown.err
        assert shown.out.startswith("κ = ") and "PULLED" in shown.out
        report = (tmp_path / "one" / "report.html").read_text(encoding="utf-8")
        (part,) = load_plugin("method", "mine:PULLED").parts.values()
        assert "PULLED" in report and f"mine.py {part}" in report
        again = epsearch("run", "--config", tmp_path / "one" / "study.yaml", "--json")
        assert again.json["effort"]["trained"] == 0 and again.json["config"]["set"] == {
            "pull": 0.25,
            "pull_when": "always",
        }

    @pytest.mark.slow
    def test_one_that_was_edited_is_another_one(self, mine, small_study, epsearch):
        study = small_study(**SEARCH)
        train(study)
        before = {one[PARTS] for one in contents(study)}
        mine(OTHERS + "# edited\n")
        with pytest.raises(Exception, match=r"'one' was made with another mine.py; .* --name one-2"):
            train(small_study(**SEARCH))
        assert epsearch("show", "one").status == 0 == epsearch("report", "one").status
        assert train(small_study(**SEARCH | {"name": "one-2"}))[1].reused == 0
        assert before < {one[PARTS] for one in contents(study)}

    @pytest.mark.slow
    def test_it_is_compared_with_ours(self, mine, epsearch, small_options):
        tiny = [
            part
            for i, part in enumerate(small_options)
            if {*small_options[i - i % 2 :][:1]}.isdisjoint({"--points", "--repeats"})
        ]
        settings = "mine:PULLED.pull=0.75"
        shown = epsearch("compare", *tiny, "--methods", "van,mine:PULLED", "--settings", settings, "--json")
        assert shown.status == 0, shown.err
        assert [row["row"] for row in shown.json["rows"]] == ["VAN", "PULLED"]
        assert shown.json["config"]["settings"][f"{settings.partition('=')[0]}"] == 0.75

    @pytest.mark.slow
    def test_a_run_goes_on_from_its_ledger_alone(self, mine, small_study, epsearch):
        train(small_study(**SEARCH))
        resumed = epsearch("run", "--name", "one", "--extend", "--search", "pull=0..1", "--seeds", 3, "--json")
        assert resumed.status == 0, resumed.err
        assert resumed.json["effort"]["trained"] > 0 and resumed.json["config"]["method"] == "mine:PULLED"


@pytest.mark.slow
def test_a_strategy_a_metric_and_a_figure(mine, epsearch, small_options, tmp_path):
    told = ["run", *small_options, "--strategy", "mine:ENDS", "--name", "ends", "--out", tmp_path]
    added = ["--add-metrics", "mine:worst", "--add-figures", "mine:first_task"]
    shown = epsearch(*told, *added, "--json")
    assert shown.status == 0, shown.err
    values = [[point["epsilon"] for point in one["points"]] for one in shown.json["rounds"]]
    assert values[0] == [0, 1] and len(values[1]) == 2
    row = shown.json["evaluation"][0]
    assert 0 <= row["worst_mean"] <= row["A_T_mean"]
    report = (tmp_path / "ends" / "report.html").read_text(encoding="utf-8")
    assert "search from the ends" in report and 'id="figure-first_task"' in report and "worst" in report
    members = pd.read_csv(tmp_path / "ends" / "search.csv")
    assert len(pd.read_csv(tmp_path / "ends" / "figures" / "first_task.csv")) == 2 * len(members), "two seeds"
    assert "worst %" in epsearch("show", "ends", "--why", "--out", tmp_path).out, (
        "the ledger knows what the last run asked for"
    )
    assert "worst" not in epsearch(*told).out, "nor is it there where nobody asks for it"


def test_contexts_of_one_study_may_be_nested(mine):
    mine(OTHERS + "F_T = worst\n")
    options = {"add_metrics": ("mine:worst",)}
    with add_plugins(options), add_plugins(options):
        assert list(METRICS)[-1] == "worst"
    with pytest.raises(UsageError, match="metric 'F_T' is epsearch's"), add_plugins({"add_metrics": ("mine:F_T",)}):
        pass


WRONG = {
    ("--method", "mine:PULED"): "module 'mine' has no 'PULED'; did you mean 'PULLED'?",
    ("--method", "mine:mix"): "method 'mine:mix' must be a Method of trainers.methods.rules, got a function",
    ("--method", "nowhere:X"): "cannot import 'nowhere' of method 'nowhere:X'",
    ("--method", "puled"): "no method 'puled'; known: ",
    ("--method", "mine:PULLED:x"): "method must be a name or module:attribute",
    (
        "--method",
        "mine:PULLED",
        "--set",
        "pul=1",
    ): "no hyperparameter 'pul'; known: pull, pull_when; did you mean 'pull'?",
    ("--method", "mine:PULLED", "--set", "pull=2"): "pull must be a number in [0, 1], got '2'",
    ("--method", "mine:PULLED", "--set", "pull"): "set takes NAME=VALUE, got 'pull'",
    ("--method", "mine:PULLED", "--set", "pull=1", "pull=1"): "set gives pull twice",
    ("--method", "mine:PULLED", "--set", "memory=1"): "memory is --memory",
    ("--method", "mine:PULLED", "--search", "pull=0..2"): "pull must be in [0, 1], got 2",
    (
        "--method",
        "agem",
        "--search",
        "lr=0.1..1",
        "--set",
        "pull=1",
    ): "agem has no hyperparameter that is no option, got pull",
    ("--method", "agem", "--search", "pull=0..1"): "no hyperparameter 'pull'; known: lr, ",
    (
        "--method",
        "mine:PULLED",
        "--search",
        "pul=0..1",
    ): "known: pull, pull_when, lr, batch_size, epochs, steps, optimizer, momentum, weight_decay, lr_factor, memory, "
    "memory_batch; did you mean 'pull'?",
    ("--strategy", "mine:worst"): "must be a StrategyKind of search_spaces.strategies, got a Metric",
    ("--add-metrics", "mine:mix"): "must be a Metric of results.metrics",
    ("--add-figures", "worst"): "no figure 'worst'; give module:attribute",
    ("--method", "mine"): "no method 'mine'; for what mine.py has, give module:attribute, like mine:NAME",
    ("--trainer", "mine"): "no trainer 'mine'; for what mine.py has, give module:attribute, like mine:NAME",
    ("--trainer", "yours"): "no trainer 'yours'; give module:attribute",
    ("--add-figures", "mine:PULL"): "must be an object with numbers, draw, caption and tables",
}


@pytest.mark.parametrize("options", WRONG, ids=" ".join)
def test_what_cannot_be_is_one_line(options, mine, epsearch, small_options, tmp_path):
    one_line(epsearch("run", *small_options, *options), WRONG[options])
    assert not (tmp_path / "runs").exists()


BROKEN = {
    "import": ("import nothing_like_it\n", "cannot import 'mine' of method 'mine:PULLED': ModuleNotFoundError"),
    "own declaration of ours": (
        OTHERS.replace("(MEMORY, MEMORY_BATCH, PULL", '(Hyperparameter("memory", "x", 1), MEMORY_BATCH, PULL'),
        "declares 'memory' otherwise than epsearch does",
    ),
    "requires": (OTHERS + 'requires = ["no-such-distribution"]\n', "requires what is not installed here"),
    "requires a word": (OTHERS + 'requires = "torch"\n', "must be a list of names of distributions, got 'torch'"),
    "rule": (
        OTHERS.replace("between = angle(products)", "between = angle(values)"),
        "mine:PULLED failed with AttributeError",
    ),
    "no mix": (
        OTHERS.replace("return choose(", "choose("),
        "mix of method 'mine:PULLED' must return a Mix, as choose does; got None",
    ),
    "a pair": (OTHERS.replace("return choose(", "return 1.0, ("), "must return a Mix, as choose does; got (1.0, "),
    "one argument": (
        OTHERS.replace("def mix(products, values)", "def mix(products)"),
        "mix of method 'mine:PULLED' must take (products, values), it takes (products): too many",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_module_is_one_line(fault, mine, epsearch, small_options):
    text, line = BROKEN[fault]
    mine(text)
    one_line(
        epsearch("run", *small_options, "--method", "mine:PULLED", "--search", "pull=0..1", "--quiet", "--json"), line
    )


def test_versions_of_what_it_requires_belong_to_it(mine, small_study):
    mine(OTHERS + 'requires = ["numpy"]\n')
    assert set(load_plugin("method", "mine:PULLED").parts) == {"mine.py", "distribution numpy"}


def test_a_worker_refuses_what_is_not_the_same_there(mine, tmp_path):
    parts = load_plugin("method", "mine:PULLED").parts
    load_expected(Plugin("method", "mine:PULLED", parts), tmp_path)
    with pytest.raises(ForeignError, match=r"mine\.py of method 'mine:PULLED' changed"):
        load_expected(Plugin("method", "mine:PULLED", {"mine.py": "0" * 16}), tmp_path)
    with pytest.raises(ForeignError, match=r"distribution numpy of 'mine:PULLED' is not the same here: 0\.1 then"):
        load_expected(Plugin("method", "mine:PULLED", {**parts, "distribution numpy": "0.1"}), tmp_path)


@pytest.mark.slow
def test_a_metric_that_fails_is_named_and_loses_nothing(mine, epsearch, small_options, tmp_path):
    mine(OTHERS.replace("record.accuracies[-1].min()", "record.accuracies[99]"))
    told = ["run", *small_options, "--name", "one", "--out", tmp_path]
    one_line(
        epsearch(*told, "--add-metrics", "mine:worst", "--quiet"),
        "metric mine:worst failed with IndexError",
        "mine.py:",
    )
    assert epsearch(*told, "--json").json["effort"]["trained"] == 0


def metric_of(text, mine, measured):
    """Returns the message of the error of a metric whose function returns an expression of `record`."""
    mine(OTHERS.replace("record.accuracies[-1].min()", text))
    with pytest.raises(PluginError) as refusal, add_plugins({"add_metrics": ("mine:worst",)}):
        METRICS["worst"].of(measured)
    return str(refusal.value)


@pytest.mark.parametrize("array", ["accuracies", "initial", "within", "violations", "inside"])
def test_a_metric_cannot_change_a_run(array, mine):
    run = record()
    said = metric_of(f"record.{array}.fill(0)", mine, run)
    assert said.startswith("metric mine:worst failed with ValueError: assignment destination is read-only, at mine.py:")
    assert np.array_equal(run.accuracies, record().accuracies, equal_nan=True)


@pytest.mark.parametrize(
    ("text", "got"),
    [("'0.5'", "'0.5'"), ("None", "None"), ("record.accuracies", "array([[")],
    ids=("text", "none", "array"),
)
def test_a_metric_that_returns_no_number_is_one_line(text, got, mine):
    said = metric_of(text, mine, record())
    assert said.startswith(f"metric mine:worst must return a number, got {got}") and "\n" not in said


@pytest.mark.parametrize(
    ("part", "line", "needed"),
    [
        ("draw", "return go.Figure(go.Bar(y=numbers)).update_layout(height=300)", "a Plotly figure"),
        ("caption", 'return "What is left of the first task, in each member of the search."', "text"),
        ("tables", 'return {"first_task": pd.DataFrame({"first": numbers})}', "tables by name"),
    ],
)
def test_a_figure_that_returns_something_else_is_one_line(part, line, needed, mine):
    assert line in OTHERS
    mine(OTHERS.replace(line, "return 7"))
    said = f"{part} of figure mine:first_task must return {needed}, got a int"
    with pytest.raises(PluginError, match=said), add_plugins({"add_figures": ("mine:first_task",)}):
        ((figure, numbers),) = plugins.numbers(SimpleNamespace(search=[record()])).values()
        getattr(figure, part)(numbers)


class TestEntryPoints:
    @pytest.fixture(autouse=True)
    def installed(self, monkeypatch):
        """A function that says which entry points there are: (group, name, reference)."""
        names.installed_plugins.cache_clear()

        def say(*points):
            made = [EntryPoint(name, reference, group) for group, name, reference in points]
            monkeypatch.setattr(names, "entry_points", lambda group: [one for one in made if one.group == group])

        yield say
        names.installed_plugins.cache_clear()

    def test_a_name_stands_for_what_it_means(self, installed, mine, small_study):
        installed(("epsearch.methods", "pulled", "mine:PULLED"), ("epsearch.strategies", "ends", "mine:ENDS"))
        study = small_study(**SEARCH | {"method": "pulled", "strategy": "ends"})
        assert (study.method, study.strategy) == ("mine:PULLED", "mine:ENDS")

    @pytest.mark.slow
    def test_ours_is_not_shadowed_and_that_is_said(self, installed, mine, epsearch, small_options):
        installed(("epsearch.methods", "agem", "mine:PULLED"))
        shown = epsearch("run", *small_options, "--method", "agem", "--search", "lr=0.01..0.1", "--json")
        assert shown.json["config"]["method"] == "agem"
        assert "method agem is epsearch's own; that of a package without a name is mine:PULLED" in shown.err
        (row,) = json.loads(epsearch("plugins", "--json").out)
        assert row["name"] == "agem" and row["note"] == "the name is epsearch's own: use what it stands for"

    def test_two_packages_with_one_name_are_told_apart(self, installed, epsearch, small_options):
        installed(("epsearch.methods", "pulled", "mine:PULLED"), ("epsearch.methods", "pulled", "theirs:PULLED"))
        one_line(epsearch("run", *small_options, "--method", "pulled"), "provided by several packages", "theirs:PULLED")

    def test_they_are_listed_and_misspelt_ones_found(self, installed, epsearch, small_options):
        installed(("epsearch.methods", "pulled", "mine:PULLED"), ("epsearch.streams", "tiles", "mine:tiles"))
        shown = epsearch("plugins").out
        assert all(text in shown for text in ("method", "pulled", "mine:PULLED", "stream", "tiles"))
        one_line(epsearch("run", *small_options, "--method", "puled"), "did you mean 'pulled'?")

    def test_none_is_said(self, installed, epsearch):
        installed()
        assert "no installed package provides a plug-in" in epsearch("plugins").out


@pytest.mark.slow
def test_code_that_has_gone_is_said(mine, small_study, epsearch, tmp_path):
    train(small_study(**SEARCH))
    (tmp_path / "mine.py").unlink()
    one_line(epsearch("show", "one"), "study 'one' cannot be read, its code cannot be loaded")
    first, row, *reason = epsearch("list").out.splitlines()
    assert row.split()[:2] == ["one", "unreadable"] and len(row.rstrip()) <= 80 and first.startswith("study")
    assert " ".join(reason).startswith("one: its code cannot be loaded: cannot import 'mine'")


def test_a_search_knows_the_limits_of_its_hyperparameters(mine, small_study):
    limits = _limits(small_study(**SEARCH))
    assert limits["pull"] == (0, 1) and limits["memory"][0] == 1 and "pull_when" not in limits


def test_what_is_loaded_raises_its_own_error(mine):
    with pytest.raises(PluginError):
        load_plugin("method", "nowhere:X")
