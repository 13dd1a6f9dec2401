"""The style of a figure in a paper: small, on white, its legend inside, told apart also without colours."""

import math
from typing import Any

from results.figures.parameter_drawing import BAND, CHOICE, CURVE, MEANS, REFERENCE, SEEDS, SET
from results.figures.style import FONT, INK, SYMBOLS, heights, pad_range, plotly

INCH = 96
"""Pixels of an inch, as browsers and kaleido have it; a pixel is 0.75 points."""
WIDEST = 12
"""Most inches of a figure."""
RATIO = 150 / 245
"""Height of a figure as a share of its width."""
LETTERS = 7 / 0.75
"""Pixels of the letters: 7 points."""
ENTRY, MARK, LETTER = 19, 38, 0.54
"""Pixels of a line of the legend and of the mark before a name; width of a letter as a share of its height."""
MARGINS = {"l": 40, "r": 6, "t": 6, "b": 32}
"""Pixels around the panel."""
GREY = "#8a8a8a"
NAMES = {MEANS: "mean ± s.e.", CURVE: "curve (95 %)", CHOICE: "chosen", SET: "95 % set"}
"""Short names of the legend."""


def paper_style(figure: Any, width: float = 3.3) -> Any:
    """Returns a copy of a plotly figure in the style of a paper.

    White, letters of 7 points, a marker of its own for each trace so that greys tell them apart, and without colours
    for the rounds of a search. The legend lies inside a single panel, whose axis leaves room above the data, else above
    the panels. The size is `width` inches (in pixels of 1/96 inch) by 0.61 of it: 3.3 is a column of two, 6.9 both.
    `figure.write_image("f.pdf")` keeps it.

    figure  as in `results.figures` of a stored study; it is not changed
    width   inches, in (0, 12]

    Raises ValueError for another width.

    >>> paper_style(None, 13)
    Traceback (most recent call last):
        ...
    ValueError: width must be in (0, 12] inches, got 13
    """
    if not (isinstance(width, int | float) and 0 < width <= WIDEST):  # NaN, too, is not in it
        raise ValueError(f"width must be in (0, {WIDEST}] inches, got {width}")
    styled = plotly("graph_objects").Figure(figure)
    _restyle(styled)
    single = len(list(styled.select_xaxes())) == 1
    styled.update_layout(
        width=INCH * width,
        height=INCH * width * RATIO,
        paper_bgcolor="white",
        plot_bgcolor="white",
        font={"family": FONT, "size": LETTERS, "color": "black"},
        margin=MARGINS if single else {**MARGINS, "t": 30},
        legend={"font_size": LETTERS, "tracegroupgap": 0, "itemwidth": 30},
    )
    styled.update_annotations(font={"size": LETTERS, "color": "black"})
    for axis in (*styled.select_xaxes(), *styled.select_yaxes()):
        axis.update(tickfont_size=LETTERS, ticklen=3, nticks=6, title={"font_size": LETTERS, "standoff": 3})
    if single:
        # The chosen value stands in the legend; its line stays.
        styled.layout.annotations = [note for note in styled.layout.annotations if note.name == REFERENCE]
        styled.update_layout(legend={"x": 0, "y": 1, "yref": "paper", "xanchor": "left", "yanchor": "top"})
        _make_room(styled)
    return styled


def _restyle(figure: Any) -> None:
    """Gives each trace a name, thin lines, and a marker that is told apart without colours."""
    symbols = iter(SYMBOLS * len(figure.data))
    means = [trace for trace in figure.data if trace.meta == MEANS]
    for place, trace in enumerate(figure.data):
        trace.name = NAMES.get(trace.meta) or trace.name or trace.legendgroup or f"trace {place + 1}"
        if trace.type != "scatter":
            continue
        if trace.meta == REFERENCE:  # a line has a label
            trace.showlegend = trace.x[0] is None
        elif trace.meta == SEEDS:
            trace.marker.update(color=GREY, size=2, opacity=0.5)
        elif trace.meta == MEANS:
            # All rounds look the same: which one tried a value is no result.
            trace.marker.update(color=INK, size=4, symbol="circle")
            trace.update(legendgroup=MEANS, showlegend=trace is means[0])
            trace.error_y.update(visible=True, thickness=0.8, width=1.5, color=INK)
        elif trace.meta != BAND and "markers" in (trace.mode or ""):
            fixed = trace.marker.symbol not in (None, "circle")
            symbol = trace.marker.symbol if fixed else next(symbols)
            trace.marker.update(symbol=symbol, size=_smaller(trace.marker.size), line={"width": 0.6, "color": INK})
            trace.error_y.update(thickness=0.8, width=1.5)
        if trace.line.width:
            trace.line.width = min(trace.line.width, 1.2)


def _smaller(size: Any) -> float:
    """Returns the size of a marker in a small figure, in pixels."""
    return min(0.6 * float(size), 8.0) if isinstance(size, int | float) else 5.0


def _make_room(figure: Any) -> None:
    """Widens the vertical axis upwards by the lines of the legend, where they would lie on the data."""
    values = list(heights(figure))
    lines = _lines(figure)
    if not values or not lines:
        return
    panel = figure.layout.height - MARGINS["t"] - MARGINS["b"]
    low, high = pad_range(min(values), max(values))
    free = min(lines * ENTRY / panel, 0.6)
    figure.update_yaxes(range=(low, low + (high - low) / (1 - free)))


def _lines(figure: Any) -> int:
    """Returns the lines of a horizontal legend; 0 without one."""
    names = [trace.name for trace in figure.data if trace.showlegend is not False]
    if figure.layout.showlegend is False or len(names) < 2:
        return 0
    across = figure.layout.width - MARGINS["l"] - MARGINS["r"]
    widths = [MARK + LETTER * LETTERS * len(name) for name in names]
    if sum(widths) <= across:
        return 1
    return math.ceil(len(names) / max(1, int(across // max(widths))))
