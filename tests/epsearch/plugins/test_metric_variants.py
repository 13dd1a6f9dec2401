"""Metrics of other tools by name: on run, compare, report and export, beside plug-ins, and misspelt."""

import csv
import zipfile
from pathlib import Path

import pytest

from epsearch.failures.errors import UsageError
from epsearch.plugins.names import all_installed, column
from epsearch.plugins.registration import add_plugins
from epsearch.study.kinds import Search
from results.metric_variants import SHORT_NAMES, VARIANTS
from results.metrics import METRICS
from results.pages import vector
from tests.epsearch.test_cli import one_line
from tests.support import others

BESIDE = ("aia", "bwt-libcontinual", "forgetting-avalanche")
TITLES = [column(name) for name in BESIDE]


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = Path(others.__file__).read_text(encoding="utf-8")
    (tmp_path / "mine.py").write_text(f"{text}\nAIA = worst\n", encoding="utf-8")


@pytest.fixture
def no_browser(monkeypatch):
    """A machine that cannot draw, which takes long."""

    def fail(*_, **__):
        raise vector.DrawingError("no Chromium is here")

    monkeypatch.setattr(vector, "write_vectors", fail)


def header(path):
    with path.open(encoding="utf-8", newline="") as file:
        return next(csv.reader(file))


@pytest.mark.slow
def test_a_search_has_them_in_json_pages_and_files_and_trains_nothing_again(
    epsearch, small_options, tmp_path, no_browser
):
    arguments = ["run", *small_options, "--name", "one", "--out", tmp_path / "runs"]
    before = epsearch(*arguments, "--json")
    assert before.status == 0, before.err
    after = epsearch(*arguments, "--add-metrics", *BESIDE, "--json")
    assert after.status == 0, after.err
    assert after.json["effort"]["trained"] == 0 and after.json["config"]["add_metrics"] == list(BESIDE)
    for old, new in zip(before.json["evaluation"], after.json["evaluation"], strict=True):
        assert new.items() >= old.items()
        assert new["Forgetting (Avalanche)_mean"] == -new["BWT_mean"]
        assert new["BWT (LibContinual)_mean"] is None, "the evaluation has two tasks"
        assert 0 <= new["AIA_mean"] <= 100
    assert not any(title in str(before.json) for title in TITLES)
    folder = tmp_path / "runs" / "one"
    report = (folder / "report.html").read_text(encoding="utf-8")
    assert all(title in report for title in TITLES)
    assert "BWT (LibContinual) is not defined here: it needs a third task." in report
    assert "Lower values of F<sub>T</sub> and Forgetting (Avalanche) are better." in report
    assert set(TITLES) <= set(header(folder / "runs.csv"))
    reasons = epsearch("show", "one", "--why").out
    assert all(title in reasons for title in ("AIA %", "Forgetting (Avalanche) %"))
    assert epsearch("report", "one").status == 0
    assert set(TITLES) <= set(header(folder / "runs.csv")), "the ledger has the request of the newest run"
    answer = epsearch("export", "one", "one.zip", "--paper")
    assert answer.status == 0, answer.err
    with zipfile.ZipFile(tmp_path / "one.zip") as paper:
        (table,) = (name for name in paper.namelist() if name.endswith("tables/evaluation.tex"))
        assert r"Forgetting (Avalanche) $\downarrow$ (\%)" in paper.read(table).decode()


@pytest.mark.slow
def test_a_comparison_has_them_and_its_latex_table_takes_their_names(epsearch, small_options, tmp_path):
    pairs = zip(small_options[::2], small_options[1::2], strict=True)
    tiny = [part for pair in pairs if pair[0] not in ("--points", "--repeats") for part in pair]
    arguments = ["compare", *tiny, "--methods", "van,agem", "--name", "c", "--add-metrics", ",".join(BESIDE)]
    answer = epsearch(*arguments, "--metrics", "A_T,aia", "--json")
    assert answer.status == 0, answer.err
    assert all(f"{title}_mean" in row for row in answer.json["rows"] for title in TITLES)
    folder = tmp_path / "runs" / "c"
    assert {f"{title}_{part}" for title in TITLES for part in ("mean", "std")} <= set(header(folder / "comparison.csv"))
    table = (folder / "comparison.tex").read_text(encoding="utf-8")
    assert r"AIA $\uparrow$ (\%)" in table and "Avalanche" not in table
    assert epsearch("report", "c", "--metrics", "forgetting-avalanche,BWT (LibContinual)").status == 0
    table = (folder / "comparison.tex").read_text(encoding="utf-8")
    assert r"Forgetting (Avalanche) $\downarrow$ (\%)" in table and "BWT (LibContinual)" in table and "AIA" not in table
    one_line(epsearch("report", "c", "--metrics", "forgetting-mammoth"), "no metric 'Forgetting (Mammoth)'; known: A_T")


WRONG = {
    "aiaa": "no metric 'aiaa'; known: aia, .* and \\d+ more; did you mean 'aia'\\?; or module:attribute",
    "bwt-libcontinuel": "did you mean 'bwt-libcontinual'",
    "BWT_LibContinual": "did you mean 'bwt-libcontinual'",
    "forgetting": "no metric 'forgetting'; known: ",
    "aia,wc-acc-task-end": "did you mean 'wc-acc-task-ends'",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_misspelt_name_is_one_line_with_the_nearest(text, epsearch, small_options, tmp_path):
    for command in ("run", "compare"):
        options = small_options if command == "run" else []
        answer = epsearch(command, *options, "--add-metrics", *text.split(","))
        one_line(answer, "no metric ")
        with pytest.raises(UsageError, match=WRONG[text]):
            Search.options()["add_metrics"].parse(text)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("value", ["aia bwt-libcontinual", "aia,bwt-libcontinual", ["aia", "bwt-libcontinual", "aia"]])
def test_names_have_blanks_or_commas_between_and_stay_names(value, small_study):
    study = small_study(add_metrics=value)
    assert study.add_metrics == ("aia", "bwt-libcontinual")
    assert study.digest() == small_study().digest(), "a request, no part of the study"


def test_all_of_them_beside_a_plug_in_in_the_order_of_the_option(mine, small_study):
    study = small_study(add_metrics=["wc-acc-task-ends", "mine:worst", *SHORT_NAMES])
    with add_plugins(study.to_dict()):
        names = list(METRICS)
    first, second, *rest = names[names.index("FWT") + 1 :]
    assert (first, second) == ("WC-ACC (task ends)", "worst")
    assert rest == [title for title in VARIANTS if title != first]
    assert not VARIANTS.keys() & set(METRICS), "only where the study asks for them"


def test_two_metrics_of_one_name_are_refused(mine, small_study):
    study = small_study(add_metrics="aia mine:AIA")
    with (
        pytest.raises(UsageError, match="metrics must have different names, got aia and mine:AIA"),
        add_plugins(study.to_dict()),
    ):
        pass


def test_a_package_cannot_take_a_name(monkeypatch):
    from importlib.metadata import EntryPoint

    from epsearch.plugins import names

    names.installed_plugins.cache_clear()
    points = [EntryPoint("aia", "mine:worst", "epsearch.metrics")]
    monkeypatch.setattr(names, "entry_points", lambda group: [one for one in points if one.group == group])
    (row,) = all_installed()
    assert row.note == "the name is epsearch's own: use what it stands for"
    assert Search.options()["add_metrics"].parse("aia") == ("aia",)
    names.installed_plugins.cache_clear()
