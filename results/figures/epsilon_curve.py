"""A metric versus ε: mean and spread of every repeat, every seed, and a parabola through all ε > 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from results.figures.style import BLUE, FAINT, INK, ORANGE, VERMILLION, finish, ordered_colours, plotly
from results.labels import METRIC_DIGITS, METRIC_UNITS, STREAM_LABELS, epsilon_text, number_text, subscripts
from results.metrics import mean_std, summarize
from results.statistics import Parabola, fit_parabola
from results.study import StudyResults

if TYPE_CHECKING:
    import pandas as pd

MOST_ZOOMS = 4
ZERO_NAME = "ε = 0 (A-GEM)"


class EpsilonCurve(NamedTuple):
    """What the figure shows; values in the units of `summarize`."""

    metric: str
    stream: str
    chosen: float
    low: float
    high: float
    members: pd.DataFrame
    """repeat, epsilon, seed, value: one row a grid point and seed."""
    points: pd.DataFrame
    """repeat, epsilon, n, diverged, mean, std: one row a grid point."""
    parabola: Parabola | None

    @property
    def best_is_high(self) -> bool:
        """Accuracy is to be high, forgetting low."""
        return self.metric != "F_T"

    @property
    def vertex(self) -> float | None:
        """ε at the parabola's best, where it has one within the fitted points."""
        fit = self.parabola
        good = fit is not None and fit.inside and (fit.curvature < 0) == self.best_is_high
        return fit.vertex if fit is not None and good else None

    @property
    def at_zero(self) -> float | None:
        """Mean at ε = 0 (A-GEM), or None."""
        rows = self.points[(self.points["epsilon"] == 0) & self.points["mean"].notna()]
        return None if rows.empty else float(rows["mean"].iloc[0])


def numbers(results: StudyResults, metric: str = "A_T") -> EpsilonCurve:
    """Group the search by repeat. An ε of two repeats appears in both; the parabola counts it once."""
    import pandas as pd

    frame = summarize(results.search)
    grid = pd.DataFrame([(r.number, e) for r in results.rounds for e in r.epsilons], columns=["repeat", "epsilon"])
    rows = grid.merge(frame, on="epsilon")
    points = mean_std(rows, by=["repeat", "epsilon"], metrics=[metric])
    points = points.rename(columns={f"{metric}_mean": "mean", f"{metric}_std": "std"})
    members = rows[["repeat", "epsilon", "seed", metric]].rename(columns={metric: "value"})
    once = points.drop_duplicates("epsilon").dropna(subset=["mean"])
    fitted = once[once["epsilon"] > 0]
    parabola = fit_parabola(fitted["epsilon"].tolist(), fitted["mean"].tolist())
    low, high = min(r.low for r in results.rounds), max(r.high for r in results.rounds)
    return EpsilonCurve(metric, results.score_on, results.chosen_epsilon, low, high, members, points, parabola)


def draw(curve: EpsilonCurve) -> Any:
    """A plotly figure: the whole interval on top, a panel for each of the last repeats below, these on one
    common scale.
    """
    repeats = sorted(int(r) for r in curve.points["repeat"].unique())
    zooms = [r for r in repeats if r > 1][-MOST_ZOOMS:]
    figure = _panels(zooms)
    colours = dict(zip(repeats, ordered_colours(len(repeats)), strict=True))
    for repeat in repeats:
        _add_repeat(figure, curve, repeat, colours[repeat], row=1, col=1)
    _add_parabola(figure, curve)
    for col, repeat in enumerate(zooms, start=1):
        _add_repeat(figure, curve, repeat, colours[repeat], row=2, col=col)
    _add_reference_lines(figure, curve, len(zooms))
    finish(figure, height=780 if zooms else 460)
    _title_axes(figure, curve, zooms)
    return figure


def caption(curve: EpsilonCurve) -> str:
    """What is seen, in words."""
    what = "Final average accuracy A_T" if curve.metric == "A_T" else "Forgetting F_T (lower is better)"
    text = (
        f"{what} versus ε on the {STREAM_LABELS[curve.stream]}. Dots: mean over seeds; "
        "bars: ± one standard deviation; faint dots: single seeds."
    )
    if curve.points["repeat"].nunique() > 1:
        text += (
            " Above: every repeat over the whole interval. Below: the later repeats, each over its own "
            "interval, on one common vertical scale."
        )
    if (zero := curve.at_zero) is not None:
        value = number_text(zero, METRIC_DIGITS[curve.metric])
        text += f" Diamond and dashed line: ε = 0, where the formula switches to A-GEM ({value}{_unit(curve)})."
    return f"{text} {_parabola_caption(curve)}"


def tables(curve: EpsilonCurve) -> dict[str, pd.DataFrame]:
    """Name -> table of the data behind the figure."""
    import pandas as pd

    name = f"epsilon_{curve.metric}"
    fit = pd.DataFrame([curve.parabola] if curve.parabola else [], columns=list(Parabola._fields))
    return {name: curve.points, f"{name}_seeds": curve.members, f"{name}_parabola": fit}


def _parabola_caption(curve: EpsilonCurve) -> str:
    fit = curve.parabola
    if fit is None:
        return "Too few values of ε for a parabola."
    place = (
        "no optimum inside the fitted values" if curve.vertex is None else f"its vertex is at ε = {curve.vertex:.3g}"
    )
    return (
        f"Dotted: parabola, plain least squares through the means of all {fit.n} tried ε > 0, each once; "
        f"ε = 0 is left out because another formula holds there (R² = {fit.r_squared:.2f}). "
        f"A description of the shape, not the choice: {place}."
    )


def _unit(curve: EpsilonCurve) -> str:
    return f" {METRIC_UNITS[curve.metric]}" if METRIC_UNITS[curve.metric] else ""


def _hover(curve: EpsilonCurve) -> str:
    return f"ε = %{{x:.6g}}<br>{subscripts(curve.metric)} = %{{y:.4g}}"


def _panels(zooms: list[int]) -> Any:
    if not zooms:
        return plotly("subplots").make_subplots(rows=1, cols=1)
    return plotly("subplots").make_subplots(
        rows=2,
        cols=len(zooms),
        specs=[[{"colspan": len(zooms)}, *[None] * (len(zooms) - 1)], [{}] * len(zooms)],
        row_heights=[0.56, 0.44],
        vertical_spacing=0.17,
        horizontal_spacing=0.03,
        subplot_titles=["", *(f"Repeat {r}" for r in zooms)],
    )


def _add_repeat(figure: Any, curve: EpsilonCurve, repeat: int, colour: str, row: int, col: int) -> None:
    """Faint seeds, then means with error bars; ε = 0 has its own marker."""
    seeds = curve.members[(curve.members["repeat"] == repeat) & curve.members["value"].notna()]
    means = curve.points[(curve.points["repeat"] == repeat) & curve.points["mean"].notna()]
    faint = {"size": 4, "color": colour, "opacity": 0.3}
    dots = plotly("graph_objects").Scatter(
        x=seeds["epsilon"], y=seeds["value"], customdata=seeds["seed"], mode="markers", marker=faint,
        legendgroup=f"repeat {repeat}", showlegend=False,
        hovertemplate=f"{_hover(curve)}<br>seed %{{customdata}}<extra></extra>",
    )  # fmt: skip
    figure.add_trace(dots, row=row, col=col)
    look = {"size": 6 if row == 1 else 7, "color": colour}
    _add_means(figure, curve, means[means["epsilon"] > 0], f"repeat {repeat}", look, row, col)
    if row == 2 or repeat == 1:
        diamond = {"symbol": "diamond", "size": 11, "color": VERMILLION}
        _add_means(figure, curve, means[means["epsilon"] == 0], ZERO_NAME, diamond, row, col)


def _add_means(
    figure: Any, curve: EpsilonCurve, means: pd.DataFrame, name: str, look: dict[str, Any], row: int, col: int
) -> None:
    if means.empty:
        return
    bars = {"array": means["std"].fillna(0), "thickness": 1.2, "width": 3}
    hover = f"{_hover(curve)} ± %{{customdata[1]:.2g}} (n = %{{customdata[0]}})<extra></extra>"
    points = plotly("graph_objects").Scatter(
        x=means["epsilon"], y=means["mean"], error_y=bars, customdata=means[["n", "std"]],
        mode="markers", marker=look, name=name, legendgroup=name, showlegend=row == 1,
        legendrank=1 if name == ZERO_NAME else 2, hovertemplate=hover,
    )  # fmt: skip
    figure.add_trace(points, row=row, col=col)


def _add_parabola(figure: Any, curve: EpsilonCurve) -> None:
    fit, scatter = curve.parabola, plotly("graph_objects").Scatter
    if fit is None:
        return
    x = np.linspace(fit.low, fit.high, 201)
    line = {"color": FAINT, "dash": "dot", "width": 1.6}
    shape = scatter(
        x=x,
        y=[fit.at(v) for v in x],
        mode="lines",
        line=line,
        legendrank=3,
        name="parabola",
        hoverinfo="skip",
    )
    figure.add_trace(shape, row=1, col=1)
    if curve.vertex is not None:
        star = {"symbol": "star", "size": 12, "color": ORANGE, "line": {"width": 1, "color": INK}}
        hover = "vertex: ε = %{x:.4g}<extra></extra>"
        vertex = scatter(
            x=[fit.vertex], y=[fit.peak], mode="markers", marker=star, name="vertex",
            legendrank=4, hovertemplate=hover,
        )  # fmt: skip
        figure.add_trace(vertex, row=1, col=1)


def _add_reference_lines(figure: Any, curve: EpsilonCurve, zooms: int) -> None:
    """A-GEM's level and the chosen ε in every panel."""
    places = [(1, 1), *((2, c) for c in range(1, zooms + 1))]
    for row, col in places:
        if curve.at_zero is not None:
            figure.add_hline(
                y=curve.at_zero,
                line={"color": VERMILLION, "dash": "dash", "width": 1},
                layer="below",
                row=row,
                col=col,
            )
    if curve.chosen != 0:
        figure.add_vline(
            x=curve.chosen,
            line={"color": BLUE, "width": 1},
            layer="below",
            row=1,
            col=1,
            annotation={
                "text": f"chosen ε = {epsilon_text(curve.chosen)}",
                "font": {"color": BLUE, "size": 12},
                "yanchor": "bottom",
            },
        )


def _title_axes(figure: Any, curve: EpsilonCurve, zooms: list[int]) -> None:
    title = subscripts(f"{curve.metric} (%)" if METRIC_UNITS[curve.metric] else f"{curve.metric} (fraction)")
    figure.update_xaxes(title_text="ε")
    figure.update_yaxes(title_text=title, row=1, col=1)
    if not zooms:
        return
    figure.update_yaxes(title_text=title, row=2, col=1)
    shown = curve.members[curve.members["repeat"].isin(zooms)]["value"].dropna().tolist()
    shown += [] if curve.at_zero is None else [curve.at_zero]
    if shown:
        pad = 0.06 * (max(shown) - min(shown)) or 1e-3
        figure.update_yaxes(range=[min(shown) - pad, max(shown) + pad], row=2)
    for col in range(2, len(zooms) + 1):
        figure.update_yaxes(showticklabels=False, ticks="", row=2, col=col)
