"""--metrics says which metrics a LaTeX table has; a wrong name is one line before anything is trained."""

import pytest

from tests.epsearch.conftest import TINY

OPTIONS = [part for name, value in TINY.items() for part in ("--" + name.replace("_", "-"), str(value))]


def heads(page):
    """The columns of the metrics in the LaTeX table beside a page."""
    line = page.with_suffix(".tex").read_text(encoding="utf-8").partition("\\toprule\n")[2].splitlines()[0]
    return [head.partition(" ")[0] for head in line.split(" & ") if "arrow" in head]


@pytest.mark.slow
def test_metrics_of_a_comparison(epsearch, tmp_path):
    command = ["compare", "--methods", "van,agem", *OPTIONS, "--name", "table"]
    page = tmp_path / "runs" / "table" / "comparison.html"
    wrong = epsearch(*command, "--metrics", "A_T,F_t")
    assert wrong.status == 2 and "no metric 'F_t'; known: A_T, F_T" in wrong.err and "did you mean 'F_T'?" in wrong.err
    assert len(wrong.err.splitlines()) == 1 and not page.exists()
    assert "table" not in epsearch("list").out, "nothing is stored"
    assert epsearch(*command, "--metrics", "F_T, A_T").status == 0
    assert heads(page) == ["$F_T$", "$A_T$"]
    assert epsearch("report", "table").status == 0 and len(heads(page)) == 7
    assert epsearch("report", "table", "--metrics", "a_1").status == 0 and heads(page) == ["$a_1$"]
    wrong = epsearch("report", "table", "--metrics", "LCA_1")
    assert wrong.status == 2 and "did you mean 'LCA_10'?" in wrong.err and heads(page) == ["$a_1$"]


def test_metrics_of_a_memory_study(epsearch):
    """It has fewer than a comparison."""
    sizes = [part for part in OPTIONS if part not in ("--memory", str(TINY.get("memory")))]
    answer = epsearch("memory", "--methods", "agem", "--sizes", "2,3", *sizes, "--metrics", "BWT")
    assert answer.status == 2 and "no metric 'BWT'; known: A_T, a_1, a_t, F_T" in answer.err


@pytest.mark.slow
def test_a_search_has_no_such_table(epsearch, small_options):
    answer = epsearch("report", "one", "two", "--metrics", "A_T")
    assert answer.status == 2 and "--metrics is for the report of one study, got 2" in answer.err
    assert epsearch("run", "--metrics", "A_T").status == 2
    assert epsearch("run", *small_options, "--repeats", "1", "--seeds", "1", "--certify", "0").status == 0
    answer = epsearch("report", "--metrics", "A_T")
    assert answer.status == 2 and "--metrics is for the LaTeX table of a comparison or memory study" in answer.err


@pytest.mark.parametrize("command", [["report", "one"], ["compare"]])
def test_a_service_has_all_metrics(epsearch, command):
    answer = epsearch(*command, "--metrics", "A_T", "--server", "http://127.0.0.1:9")
    assert answer.status == 2 and "--metrics cannot be combined with --server" in answer.err
