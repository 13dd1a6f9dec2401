"""LaTeX tables: metrics that were asked for, arrows, bold means, decimals; and that pdfLaTeX sets them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from results.pages.comparison import write_comparison
from results.pages.latex import best_row, decimals, with_scores
from results.pages.memory import write_memory_study
from results.pages.search.latex import evaluation_sheet
from results.pages.sheet import BEST, Line, Sheet, as_latex
from results.pages.side_by_side import write_strategies
from tests.results.pages.test_comparison_files import BAD, check_latex
from tests.support.limits import HANGS
from tests.support.synthetic import study
from tests.support.synthetic_methods import compared_row, comparison, memory_study
from tests.support.synthetic_points import learning_rates

IN_CI = bool(os.environ.get("CI"))


def written(page: Path) -> str:
    text = page.with_suffix(".tex").read_text(encoding="utf-8")
    check_latex(text)
    return text


def heads(text: str) -> list[str]:
    return text.partition("\\toprule\n")[2].partition(" \\\\")[0].split(" & ")


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.slow
def test_all_metrics_with_their_directions(tmp_path: Path) -> None:
    arrows = dict.fromkeys(("A_T", "a_1", "a_t", "LCA_10", "BWT", "FWT"), "uparrow") | {"F_T": "downarrow"}
    found = heads(written(write_comparison(comparison(), tmp_path)))
    assert found[0] == "method" and found[-1] == "n (seeds)" and len(found) == 10
    for head in found[2:-1]:
        name = re.sub(r"[$\\{}]|mathrm", "", head.partition(" ")[0])
        assert f"$\\{arrows.pop(name)}$" in head, head
    assert not arrows
    assert r"$F_T$ $\downarrow$ (\%)" in found


@pytest.mark.slow
@pytest.mark.parametrize("metrics", [("A_T", "F_T"), ("F_T", "A_T")])
def test_only_the_metrics_that_were_asked_for(tmp_path: Path, metrics: tuple[str, ...]) -> None:
    every = comparison()
    for page, axes in (
        (write_comparison(replace(every, latex_metrics=metrics), tmp_path / "c"), 2),
        (write_memory_study(replace(memory_study(), latex_metrics=metrics), tmp_path / "m"), 3),
    ):
        text = written(page)
        assert [head.partition(" ")[0] for head in heads(text)[axes:-1]] == [f"${metric}$" for metric in metrics]
        assert "LCA" not in text and "All metrics are in percent" in text
        assert "LCA" in page.with_suffix(".md").read_text(encoding="utf-8") or page.stem == "memory"
    text = written(write_comparison(replace(every, latex_metrics=("F_T",)), tmp_path / "one"))
    assert text.count("diverged (3 of 3)") == 1  # of PI, in the first column of a metric


@pytest.mark.slow
def test_the_best_mean_is_bold_where_it_is_resolved(tmp_path: Path) -> None:
    rows = [compared_row("low", "van", 6, learned=0.8), compared_row("high", "agem", 6, learned=0.95)]
    text = written(write_comparison(replace(comparison(*rows, comparable=False), latex_metrics=("A_T",)), tmp_path))
    (line,) = (line for line in text.splitlines() if r"\textbf" in line)
    assert line.startswith("high") and "Bold: the best mean of a column" in flat(text)
    assert "p $<$ 0.05" in text


def test_no_mean_is_bold_where_none_is_resolved(tmp_path: Path) -> None:
    """Five seeds are too few for the exact test, whatever they say."""
    rows = [compared_row("low", "van", 5, learned=0.8), compared_row("high", "agem", 5, learned=0.95)]
    text = written(write_comparison(comparison(*rows, comparable=False), tmp_path))
    assert r"\textbf" not in text
    assert "No mean is bold, because no best mean is resolved" in text and "at least 6 seeds are needed" in text


def test_the_best_row_is_tested_on_common_seeds() -> None:
    level = {seed: 80.0 + seed for seed in range(8)}
    above = {seed: score + 0.1 for seed, score in level.items()}
    assert best_row([level, above, {}]) == 1 and best_row([level, above], lower=True) == 0
    assert best_row([level, dict(level)]) is None, "equal rows"
    assert best_row([level]) is None and best_row([]) is None and best_row([{}, level]) is None
    noisy = {seed: score + (0.5 if seed % 2 else -0.4) for seed, score in level.items()}
    assert best_row([level, noisy]) is None
    others = {seed + 4: score + 0.1 for seed, score in list(level.items())}
    assert best_row([level, others]) is None, "higher only because of other seeds"
    third = {seed: score - 30 for seed, score in level.items()}
    assert best_row([level, third, dict(level)]) is None, "the third is worse, but the first two are equal"
    assert best_row([level, {0: float("inf")}]) is None


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([0.2], 2),
        ([2.0], 1),
        ([20.0], 0),
        ([2000.0], 0),
        ([0.02], 3),
        ([0.0002], 3),
        ([20.0, 0.3], 2),
        ([20.0, 0.3, 30.0], 0),
        ([0.0996], 2),
        ([0.996], 1),
        ([0.0, float("nan")], 5),
        ([], 5),
    ],
)
def test_decimals_follow_from_the_standard_error(errors: list[float], expected: int) -> None:
    assert decimals(errors, 5) == expected


def test_a_column_has_one_number_of_decimals() -> None:
    """That of its median standard error; of two, the smaller one: 0.41 here, of the second row."""
    sheet = Sheet("", (("method", ""), ("A_T", "%")), tuple(((Line(name),), (Line("?"),)) for name in "ab"))
    made, bold = with_scores(sheet, 1, "A_T", [{0: 80.0, 1: 90.0}, {0: 50.0, 1: 50.82}], [7.0711, 0.5798])
    assert [row[1][0].text for row in made.rows] == ["85.00 ± 7.07", "50.41 ± 0.58"] and not bold
    made, _ = with_scores(sheet, 1, "A_T", [{0: 80.0, 1: 90.0}, {}], [7.0711, float("nan")])
    assert [row[1][0].text for row in made.rows] == ["85.0 ± 7.1", "?"]
    assert made.header[1] == ("A_T ↑", "%") and all(row[1][0].look != BEST for row in made.rows)


def test_forgetting_is_in_percent_and_the_lowest_is_best() -> None:
    sheet = Sheet("", (("method", ""), ("F_T", "%")), tuple(((Line(name),), (Line("?"),)) for name in "ab"))
    scores = [{seed: 3.0 + 0.1 * seed for seed in range(6)}, {seed: 4.0 + 0.1 * seed for seed in range(6)}]
    made, bold = with_scores(sheet, 1, "F_T", scores, [0.187, 0.187])
    assert bold and [row[1][0].look == BEST for row in made.rows] == [True, False]
    assert made.rows[0][1][0].text == "3.250 ± 0.187" and made.header[1] == ("F_T ↓", "%")


def lacking() -> str:
    """What is missing to set LaTeX; "" if nothing is."""
    if shutil.which("pdflatex") is None:
        return "no pdflatex is installed (texlive-latex-base)"
    found = subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True, timeout=HANGS)
    return "" if found.returncode == 0 else "LaTeX's booktabs is not installed (texlive-latex-recommended)"


@pytest.mark.service
def test_pdflatex_sets_every_table(tmp_path: Path) -> None:
    if reason := lacking():
        pytest.skip(reason)
    odd = compared_row(BAD, "agem", 6, diverged=1)
    rows = [
        compared_row("low, λ = 0.1", "van", 6, learned=0.8),
        compared_row("high", "agem", 6),
        replace(odd, remark=BAD),
    ]
    studies = [replace(learning_rates(), name="first"), replace(learning_rates(), name="second_one")]
    pages = [
        write_comparison(comparison(), tmp_path / "all"),
        write_comparison(replace(comparison(*rows), latex_metrics=("A_T", "F_T"), notes=(BAD,)), tmp_path / "some"),
        write_memory_study(memory_study(), tmp_path / "memory"),
        write_strategies(studies, tmp_path / "strategies"),
    ]
    files = [page.with_suffix(".tex") for page in pages]
    for number, search in enumerate((study(), replace(study(), with_printed=True, dataset=BAD))):
        files.append(tmp_path / f"search{number}.tex")
        files[-1].write_text(as_latex(evaluation_sheet(search)), encoding="utf-8")
    tables = "".join(f"\\input{{{file.relative_to(tmp_path)}}}\n" for file in files)
    document = f"\\documentclass{{article}}\n\\usepackage{{booktabs}}\n\\begin{{document}}\n{tables}\\end{{document}}\n"
    (tmp_path / "paper.tex").write_text(document, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=HANGS)
    assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "paper.log").read_text(encoding="utf-8", errors="replace")
    assert "Missing character" not in log and "undefined" not in log.lower()
    assert (tmp_path / "paper.pdf").stat().st_size > 1000
