"""Lines of reference rows beside the curve of a search."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from results.figures import parameter_curve
from results.figures.paper import paper_style
from results.figures.parameter_drawing import REFERENCE, ROOM
from results.figures.style import heights
from results.pages.search.report import figures, write_report
from results.search_tables import reference_label, reference_table
from results.statistics.paired import student_quantile
from results.verdict.answer import answer
from results.verdict.summary import summary
from tests.support.synthetic import record, study

SEEDS = 5


def row(method, level, seeds=SEEDS, step=0.001):
    """Members whose A_T is level + step · seed; joint training has the last row of accuracies alone."""
    rows = {"joint": np.array([[False], [False], [True]]), "iid": True}
    return tuple(
        replace(
            record(0.1, seed),
            key=f"{method}-{seed}",
            method=method,
            accuracies=np.where(np.tri(3, dtype=bool) & rows[method], level + step * seed, np.nan),
        )
        for seed in range(seeds)
    )


def beside(results=None, **levels):
    return replace(results or study(), references={method: row(method, level) for method, level in levels.items()})


def drawn(results):
    """Figure as JSON, lines of reference rows, and texts of the annotations with their place."""
    figure = parameter_curve.draw(parameter_curve.numbers(results, "A_T"))
    lines = [trace for trace in figure.data if trace.meta == REFERENCE]
    texts = {one.text: one for one in figure.layout.annotations if "chosen" not in one.text}
    return figure, lines, texts


@pytest.mark.slow
def test_the_mean_is_a_dashed_line_over_all_values_with_its_interval():
    results = beside(joint=0.94, iid=0.91)
    figure, (joint, iid), texts = drawn(results)
    values = sorted({float(point[0]) for point in results.points})
    assert joint.x == iid.x == tuple(values)
    for line, mean in ((joint, 94.2), (iid, 91.2)):
        assert list(line.y) == pytest.approx([mean] * len(values))
    assert joint.line.dash != iid.line.dash and "dash" in joint.line.dash and "dash" in iid.line.dash
    half = student_quantile(0.975, SEEDS - 1) * np.std([0.0, 0.1, 0.2, 0.3, 0.4], ddof=1) / np.sqrt(SEEDS)
    assert f"94.2 ± {half:.2g} (95 %), n = 5" in joint.hovertemplate
    assert list(texts) == [f"{reference_label('joint')} 94.20", f"{reference_label('iid')} 91.20"]
    low, high = figure.layout.yaxis.range
    assert low < min(heights(figure)) and max(heights(figure)) < high


@pytest.mark.slow
def test_the_points_of_the_curve_are_the_same_with_and_without():
    """A row has no ε of its own: as ε-SOFT-GEM's at ε = 0.1 it would be one of the values."""
    ours, plain = (parameter_curve.numbers(each, "A_T") for each in (beside(joint=0.99, iid=0.5), study()))
    assert ours.points.equals(plain.points) and ours.members.equals(plain.members)
    assert ours.peak.text == plain.peak.text and ours.at_baseline == plain.at_baseline
    assert plain.references.empty and len(ours.references) == 2
    before, after = (json.loads(parameter_curve.draw(each).to_json()) for each in (plain, ours))
    assert before["data"] == [trace for trace in after["data"] if trace.get("meta") != REFERENCE]
    assert "range" not in before["layout"]["yaxis"]


def level_curve():
    """A search whose A_T lies between 86 and 94 %."""
    return study(repeats=1, peak=0.5)


@pytest.mark.slow
@pytest.mark.parametrize(("level", "arrow"), [(0.99, "↑"), (0.5, "↓")])
def test_a_line_far_from_the_curve_is_a_note_at_the_edge(level, arrow):
    own = list(heights(parameter_curve.draw(parameter_curve.numbers(level_curve(), "A_T"))))
    low, high = min(own), max(own)
    figure, (line,), texts = drawn(beside(level_curve(), joint=level))
    assert line.x == line.y == (None,)
    ((text, note),) = texts.items()
    assert text.endswith(f" {100 * level + 0.2:.2f} {arrow}") and note.yref == "y domain"
    axis = figure.layout.yaxis.range
    assert high - low > 0.8 * (axis[1] - axis[0]), "the curve keeps its height"
    near = (high + 0.99 * ROOM * (high - low) - 0.2) / 100
    figure, (line,), _ = drawn(beside(level_curve(), joint=near))
    axis = figure.layout.yaxis.range
    assert high < line.y[0] < axis[1] and high - low > 0.5 * (axis[1] - axis[0])


@pytest.mark.slow
def test_labels_of_close_lines_stand_apart():
    _, _, texts = drawn(beside(joint=0.94, iid=0.9395))
    assert [one.yanchor for one in texts.values()] == ["bottom", "top"]
    _, _, texts = drawn(beside(level_curve(), joint=0.99, iid=0.98))
    assert len({one.yshift for one in texts.values()}) == 2


@pytest.mark.slow
def test_a_metric_that_a_row_lacks_has_no_line():
    results = beside(joint=0.94, iid=0.9)
    curve = parameter_curve.numbers(results, "F_T")
    assert curve.references["mean"].tolist() == [0.0], "of i.i.d. training"
    assert len([trace for trace in parameter_curve.draw(curve).data if trace.meta == REFERENCE]) == 1
    curve = parameter_curve.numbers(beside(joint=0.94), "F_T")
    assert curve.references.empty and "Labelled lines" not in parameter_curve.caption(curve)
    lost = replace(results, references={"joint": tuple(replace(one, status="diverged") for one in row("joint", 0.9))})
    assert parameter_curve.numbers(lost, "A_T").references.empty
    one = replace(results, references={"joint": row("joint", 0.94, seeds=1)})
    _, (line,), _ = drawn(one)
    assert "94, n = 1" in line.hovertemplate and "±" not in line.hovertemplate


@pytest.mark.slow
def test_in_a_paper_lines_keep_their_labels_and_notes_are_in_the_legend():
    figure, *_ = drawn(beside(level_curve(), joint=0.99, iid=0.94))
    styled = paper_style(figure)
    joint, iid = (trace for trace in styled.data if trace.meta == REFERENCE)
    assert joint.showlegend and joint.name.endswith("↑") and not iid.showlegend
    assert [one.text for one in styled.layout.annotations] == [iid.name]


@pytest.mark.slow
def test_caption_tables_and_answer_have_them(tmp_path):
    results = beside(joint=0.94, iid=0.91)
    curve = parameter_curve.numbers(results, "A_T")
    assert "training (94.20 %) and" in parameter_curve.caption(curve)
    table = reference_table(results)
    assert table["method"].tolist() == ["joint", "iid"] and table["A_T_mean"].tolist() == pytest.approx([94.2, 91.2])
    chosen = {one.seed: 100 * one.accuracies[2].mean() for one in results.members_of(results.chosen)}
    leads = [94 + 0.1 * seed - chosen[seed] for seed in range(SEEDS)]
    assert table["lead"][0] == pytest.approx(np.mean(leads))
    assert table["lead_error"][0] == pytest.approx(np.std(leads, ddof=1) / np.sqrt(SEEDS))
    lines = summary(results).references
    assert f"A_T 94.20 ± 0.16 %, chosen ε {np.mean(leads):.2f} ± " in lines[0] and lines[0].endswith("below")
    assert lines[1].endswith("above") and all(line in answer(results) for line in lines)
    path = write_report(results, tmp_path)
    assert pd.read_csv(tmp_path / "references.csv")["A_T_mean"].tolist() == pytest.approx([94.2, 91.2])
    csv = pd.read_csv(tmp_path / "figures" / "epsilon_A_T_references.csv")
    assert csv["mean"].tolist() == pytest.approx([94.2, 91.2]) and csv.columns.tolist() == [
        "row",
        "n",
        "mean",
        "half_width",
    ]
    assert set(pd.read_csv(tmp_path / "runs.csv")["method"]) == {"soft_agem", "joint", "iid"}
    assert "10 of reference rows" in path.read_text()


@pytest.mark.slow
def test_without_rows_nothing_is_written(tmp_path):
    write_report(study(repeats=1), tmp_path)
    assert not [*tmp_path.rglob("*references*")] and "reference rows" not in (tmp_path / "report.html").read_text()
    assert len(reference_table(study(repeats=1))) == 0 and "epsilon_A_T" in figures(study(repeats=1))
