"""The drawing of `parameter_curve`, and what it shows."""

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from results.figures.style import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    VERMILLION,
    add_legend_entry,
    axis_title,
    faint,
    finish,
    heights,
    on_axis,
    ordered_colours,
    pad_range,
    plotly,
    value_axis,
)
from results.labels import number_text, subscripts
from results.metrics import METRICS, Metric
from results.points import parameter_label, value_text
from results.verdict.peak import Peak

SET_HEIGHT = 0.025
"""Height of the bar of the confidence set, as a part of a panel."""

MOST_BARS = 100
"""Error bars that the width of a figure has room for."""

LINES = ((GREEN, "longdash"), (PURPLE, "dashdot"))
"""Colours and dashes of reference rows."""

ROOM = 0.5
"""Height for lines above or below the curve, as a share of its own; farther ones are a note, or it would look level."""

CROWDED = 0.16
"""Distance of two lines between which no label fits, as a share of the curve's height."""

LABEL = 17
"""Pixels between notes at an edge."""

SEEDS, MEANS, BAND, CURVE, CHOICE, SET = "seeds", "means", "band", "curve", "choice", "set"
REFERENCE = "reference"
"""Kinds of traces, stored as their `meta`; `paper_style` has a look for each."""


class ParameterCurve(NamedTuple):
    """Data of the figure; values in the units of `summarize`."""

    metric: str
    """"A_T" or "F_T"."""
    stream: str
    """The stream of the search: "cv" or "eval"."""
    parameter: str
    """Name of the parameter, which is also a column of `members` and `points`."""
    log: bool
    """Whether its axis is logarithmic."""
    chosen: float
    """The chosen value."""
    role: str
    """Its name in the figure: "chosen", or "leading" before the first round is finished."""
    baseline: float | None
    """The value of the baseline; None if there is none."""
    baseline_text: str
    """Its name in the legend."""
    zero_is_agem: bool
    """Whether the parameter is ε of ε-SOFT-GEM, which has another formula at 0: A-GEM's."""
    members: pd.DataFrame
    """One row a tried value and seed: repeat, <parameter>, seed, value."""
    points: pd.DataFrame
    """One row a tried value: repeat, <parameter>, n, diverged, mean, std (of the seeds), within_error (of the mean)."""
    intervals: tuple[int, ...]
    """Numbers of the rounds that searched an interval; without any, all points have the same colour."""
    peak: Peak | None
    """The curve and the confidence set of its top."""
    by_curve: bool
    """True for the choice of the curve."""
    at_summit: bool
    """True if the curve is highest at the chosen value."""
    objective: str
    """The metric that made the choice."""
    references: pd.DataFrame
    """One row a reference row: row (its name), n, mean, half_width (of the 95 % interval of the mean)."""
    indistinct: tuple[int, ...] = ()
    """Numbers of later rounds whose values differ by noise alone, see `noise.indistinct_rounds`."""
    scope: str = ""
    """Which stage of a search along tasks the values are from, in a sentence; "" for other searches."""

    @property
    def label(self) -> str:
        """The name of the parameter as people write it."""
        return parameter_label(self.parameter)

    @property
    def later(self) -> tuple[int, ...]:
        """Numbers of the rounds with an interval, but for the first, whose interval is that of the whole figure."""
        return tuple(number for number in self.intervals if number > 1)

    def has_room(self, number: int) -> bool:
        """Returns whether the bars of a round stand apart in the figure; else they would be a block of colour."""
        places = [on_axis(value, self.log) for value in self.points[self.parameter]]
        places_of_repeat = [
            on_axis(value, self.log) for value in self.points[self.points["repeat"] == number][self.parameter]
        ]
        return (
            max(places_of_repeat) - min(places_of_repeat)
            >= (max(places) - min(places)) * (len(places_of_repeat) - 1) / MOST_BARS
            or number not in self.later
        )

    @property
    def at_baseline(self) -> float | None:
        """The mean at the baseline; None where it has none."""
        rows = self.points[(self.points[self.parameter] == self.baseline) & self.points["mean"].notna()]
        return None if rows.empty else float(rows["mean"].iloc[0])


def draw(curve: ParameterCurve) -> Any:
    """Returns a plotly figure of one panel over the whole interval.

    Dots are means with bars of ± one standard error within seeds, faint dots single seeds, in the colour of their round
    from dark (early) to light. A search without intervals has one colour.
    """
    curve = to_display_unit(curve)
    figure = plotly("subplots").make_subplots(rows=1, cols=1)
    for number, colour in colours(curve).items():
        add_round(figure, curve, number, colour)
    # Above all points: what comes later is drawn on top.
    _add_curve(figure, curve)
    add_level(figure, curve)
    _add_choice(figure, curve)
    if add_set(figure, curve, curve.points[curve.parameter]):
        # A rectangle has no entry in the legend.
        add_legend_entry(figure, "best may lie here (95 %)", {"symbol": "square", "size": 12, "color": BLUE}, rank=5)
        figure.data[-1].meta = SET
    _add_references(figure, curve)
    finish(figure, height=430)
    figure.update_layout(margin_t=86)  # three lines of a legend, and the name of the chosen value
    figure.update_xaxes(title_text=curve.label, **value_axis(curve.points[curve.parameter], curve.log))
    figure.update_yaxes(title_text=title(curve))
    return figure


def title(curve: ParameterCurve) -> str:
    """Returns the title of the vertical axis."""
    return axis_title(curve.metric, _metric(curve).display_unit)


def colours(curve: ParameterCurve) -> dict[int, str]:
    """Returns the number of each round with its colour."""
    rounds = sorted(int(r) for r in curve.points["repeat"].unique())
    return dict(zip(rounds, ordered_colours(len(rounds)) if curve.intervals else [BLUE] * len(rounds), strict=True))


def to_display_unit(curve: ParameterCurve) -> ParameterCurve:
    """Returns the points in the unit that people see; the fitted curve follows in `_add_curve`."""
    points, columns = curve.points, ["mean", "std", "within_error"]
    return curve._replace(
        members=curve.members.assign(value=_factor(curve) * curve.members["value"]),
        points=points.assign(**{column: _factor(curve) * points[column] for column in columns}),
        references=curve.references.assign(
            **{column: _factor(curve) * curve.references[column] for column in ("mean", "half_width")}
        ),
    )


def _metric(curve: ParameterCurve) -> Metric:
    """Returns the declaration of the metric; that of A_T for an objective, which is in percent, too."""
    return METRICS.get(curve.metric, METRICS["A_T"])


def _factor(curve: ParameterCurve) -> float:
    return _metric(curve).display_factor


def add_round(figure: Any, curve: ParameterCurve, number: int, colour: str, col: int = 0) -> None:
    """Adds faint seeds, then means with error bars; the baseline has its own marker.

    col: of the round's own panel, from 1; 0 for a figure of all rounds, whose legend names them.
    """
    place = {"row": 1, "col": col or 1}
    seeds = curve.members[(curve.members["repeat"] == number) & curve.members["value"].notna()]
    means = curve.points[(curve.points["repeat"] == number) & curve.points["mean"].notna()]
    # "tried" where no round has an interval: then rounds are batches, whose number says nothing.
    name = f"{'repeat' if number in curve.intervals else 'batch'} {number}" if curve.intervals else "tried"
    hover = f"{curve.label} = %{{x:.6g}}<br>{subscripts(curve.metric)} = %{{y:.4g}}"
    figure.add_scatter(
        x=seeds[curve.parameter],
        y=seeds["value"],
        customdata=seeds["seed"],
        mode="markers",
        marker={"size": 4, "color": colour, "opacity": 0.3},
        name=f"{name}, single seeds",
        meta=SEEDS,
        legendgroup=name,
        showlegend=False,
        hovertemplate=f"{hover}<br>seed %{{customdata}}<extra></extra>",
        **place,
    )
    # The baseline is shared by all repeats: it has one marker in each panel.
    labels, plain = {trace.name for trace in figure.data}, means[curve.parameter] != curve.baseline
    dot = {"size": 7 if col else 6, "color": colour}
    bars = col > 0 or curve.has_room(number)
    diamond = {"symbol": "diamond", "size": 11, "color": VERMILLION}
    for label, part, marker, rank in (
        (name, means[plain], dot, 2),
        (curve.baseline_text, means[~plain], diamond, 1),
    ):
        if part.empty or (not col and rank == 1 and label in labels):
            continue
        figure.add_scatter(
            x=part[curve.parameter],
            y=part["mean"],
            error_y={
                "array": part["within_error"].fillna(0),
                "thickness": 1.2,
                "width": 3,
                "visible": bars or rank == 1,
            },
            customdata=part[["n", "within_error"]],
            mode="markers",
            hovertemplate=f"{hover} ± %{{customdata[1]:.2g}} (n = %{{customdata[0]}})<extra></extra>",
            marker=marker,
            name=label,
            meta=MEANS if rank == 2 else None,
            legendgroup=label,
            showlegend=not col and label not in labels,
            legendrank=rank,
            **place,
        )


def _add_curve(figure: Any, curve: ParameterCurve) -> None:
    """Adds the curve with its band as far as values were tried, and the choice as a star."""
    drawn = None if curve.peak is None else curve.peak.curve
    values = curve.points[curve.parameter]
    if drawn is not None:
        drawn = drawn.assign(**{column: _factor(curve) * drawn[column] for column in ("mean", "low", "high")})
        # Not beyond the tried values, where nothing but the model speaks.
        drawn = drawn[(drawn["value"] >= values.min()) & (drawn["value"] <= values.max())]
        if curve.zero_is_agem:
            usual = values[values > 0]
            drawn = drawn[drawn["value"] >= usual.min()]
        both = {"x": [*drawn["value"], *drawn["value"][::-1]], "y": [*drawn["high"], *drawn["low"][::-1]]}
        band: dict[str, Any] = {"fill": "toself", "fillcolor": faint(INK), "line": {"width": 0}, "hoverinfo": "skip"}
        band |= {"name": "95 % band", "meta": BAND, "showlegend": False, "legendgroup": "curve"}
        figure.add_scatter(**both, **band, mode="lines", row=1, col=1)
        figure.add_scatter(
            x=drawn["value"],
            y=drawn["mean"],
            mode="lines",
            line={"color": INK, "width": 1.6},
            legendrank=3,
            legendgroup="curve",
            name="curve, 95 % band",
            meta=CURVE,
            hoverinfo="skip",
            row=1,
            col=1,
        )
    height = _height_of_the_choice(curve, drawn)
    if height is None or (curve.chosen == curve.baseline and drawn is None):
        return
    figure.add_scatter(
        x=[curve.chosen],
        y=[height],
        mode="markers",
        marker={"symbol": "star", "size": 14, "color": ORANGE, "line": {"width": 1, "color": INK}},
        name=curve.role,
        meta=CHOICE,
        legendrank=4,
        hovertemplate=f"{curve.role} {curve.label} = %{{x:.4g}}<extra></extra>",
        row=1,
        col=1,
    )


def _height_of_the_choice(curve: ParameterCurve, drawn: pd.DataFrame | None) -> float | None:
    """Returns where the star stands: on the curve if that has chosen, else on the choice's mean."""
    if curve.by_curve and drawn is not None and not (curve.zero_is_agem and curve.chosen == 0):
        return float(np.interp(curve.chosen, drawn["value"], drawn["mean"]))
    means = curve.points[(curve.points[curve.parameter] == curve.chosen) & curve.points["mean"].notna()]
    return None if means.empty else float(means["mean"].iloc[0])


def add_set(figure: Any, curve: ParameterCurve, values: pd.Series, col: int = 1) -> bool:
    """Adds the confidence set of the best value to a panel, a bar along the axis as far as its values go.

    Returns whether there is a confidence set.
    """
    if curve.peak is None:
        return False
    # Cut off at the points: a wider rectangle would widen the axis.
    low, high = max(curve.peak.low, float(values.min())), min(curve.peak.high, float(values.max()))
    if low < high:
        style = {"fillcolor": BLUE, "opacity": 0.55, "line_width": 0, "layer": "below"}
        figure.add_vrect(x0=low, x1=high, y0=0, y1=SET_HEIGHT, **style, row=1, col=col)
    return True


def add_level(figure: Any, curve: ParameterCurve, col: int = 1) -> None:
    """Adds the level of the baseline to a panel."""
    if (level := curve.at_baseline) is not None:
        dashed = {"color": VERMILLION, "dash": "dash", "width": 1}
        figure.add_hline(y=level, line=dashed, layer="below", row=1, col=col)


def _add_references(figure: Any, curve: ParameterCurve) -> None:
    """Adds a dashed line with a label for each reference row; one far from the curve is a note at the edge.

    Comes after all that belongs to the curve, whose heights say what is far.
    """
    own, rows = list(heights(figure)), curve.references
    if rows.empty or not own:
        return
    low, high = min(own), max(own)
    means: list[float] = rows["mean"].tolist()
    room = ROOM * (high - low)
    near = [mean for mean in means if low - room <= mean <= high + room]
    figure.update_yaxes(range=pad_range(min([low, *near]), max([high, *near]), share=0.08))
    values, notes = sorted(curve.points[curve.parameter].unique()), {"↑": 0, "↓": 0}
    for name, n, mean, half, (colour, dash) in zip(
        rows["row"], rows["n"], means, rows["half_width"], LINES, strict=False
    ):
        drawn, arrow = mean in near, "↑" if mean > high else "↓"
        text = f"{name} {number_text(mean, _metric(curve).digits)}{'' if drawn else f' {arrow}'}"
        spread = "" if math.isnan(half) else f" ± {half:.2g} (95 %)"
        hover = f"{name}<br>{subscripts(curve.metric)} = {mean:.4g}{spread}, n = {n}"
        figure.add_scatter(
            x=values if drawn else [None],
            y=[mean] * len(values) if drawn else [None],
            mode="lines",
            line={"color": colour, "dash": dash, "width": 1.4},
            name=text,
            meta=REFERENCE,
            showlegend=False,
            hovertemplate=f"{hover}<extra></extra>",
            row=1,
            col=1,
        )
        if drawn:
            # A label stands above its line, but below it where another line is just above.
            crowded = any(0 < other - mean < CROWDED * (high - low) for other in near)
            place: dict[str, Any] = {"y": mean, "yref": "y", "yanchor": "top" if crowded else "bottom"}
        elif arrow == "↑":
            place = {"y": 1, "yref": "y domain", "yanchor": "top", "yshift": -LABEL * notes[arrow]}
        else:
            place = {"y": SET_HEIGHT, "yref": "y domain", "yanchor": "bottom", "yshift": LABEL * notes[arrow]}
        notes[arrow] += not drawn
        right = _is_free_on_the_right(curve, min(max(mean, low), high))
        side: dict[str, Any] = {"x": 1, "xanchor": "right"} if right else {"x": 0, "xanchor": "left"}
        font = {"color": colour, "size": 12}
        # In a paper, labels of lines stay; notes at an edge, where the legend lies, become a part of it.
        named = {"name": REFERENCE} if drawn else {}
        figure.add_annotation(
            xref="x domain", **side, **place, **named, text=text, hovertext=hover, font=font, showarrow=False
        )


def _add_choice(figure: Any, curve: ParameterCurve) -> None:
    """Adds a line at the chosen value, with its name."""
    if curve.chosen == curve.baseline:
        return
    figure.add_vline(x=curve.chosen, line={"color": BLUE, "width": 1}, layer="below", row=1, col=1)
    # Not the annotation of add_vline, which is misplaced on a logarithmic axis: that expects the logarithm.
    figure.add_annotation(
        x=on_axis(curve.chosen, curve.log),
        y=1,
        xref="x",
        yref="y domain",
        text=f"{curve.role} {curve.label} = {value_text(curve.chosen)}",
        font={"color": BLUE, "size": 12},
        showarrow=False,
        yanchor="bottom",
        xanchor="left" if _is_left(curve) else "right",
    )


def _is_free_on_the_right(curve: ParameterCurve, height: float) -> bool:
    """Returns whether a label at a height is farther from means and their bars in the right third than in the left."""
    places = curve.points[curve.parameter].map(lambda value: on_axis(value, curve.log))
    apart = (curve.points["mean"] - height).abs() - curve.points["within_error"].fillna(0)
    share = (places - places.min()) / ((places.max() - places.min()) or 1)
    left, right = (apart[part].clip(lower=0).min() for part in (share < 1 / 3, share > 2 / 3))
    return bool(right > left)


def _is_left(curve: ParameterCurve) -> bool:
    """Returns whether the chosen value is in the left half, where there is more room for its name on the right."""
    chosen = on_axis(curve.chosen, curve.log)
    places = [on_axis(value, curve.log) for value in curve.points[curve.parameter]] or [chosen]
    return chosen < (min(places) + max(places)) / 2
