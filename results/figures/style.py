"""The look that all figures share."""

from __future__ import annotations

from importlib import import_module
from typing import Any

FONT = "Inter, 'Helvetica Neue', Helvetica, Arial, sans-serif"
INK, FAINT, GRID = "#1a1a1a", "#6b6b6b", "#e8e8e8"

# Okabe & Ito 2008: distinguishable with every common colour-vision deficiency.
BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"

# Viridis from dark to green; its yellow end is too pale for a white page.
VIRIDIS = ("#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#86c53a")


def plotly(module: str) -> Any:
    """plotly.<module>, loaded now and not at import: it takes most of a second."""
    return import_module(f"plotly.{module}")


def ordered_colours(n: int) -> list[str]:
    """n colours from dark to light, for things that have an order.

    >>> ordered_colours(2)
    ['#440154', '#86c53a']
    """
    last = len(VIRIDIS) - 1
    return [VIRIDIS[round(i * last / max(n - 1, 1))] for i in range(n)]


def finish(figure: Any, height: int) -> Any:
    """Give a figure the common fonts, margins and axes."""
    axis = {
        "showline": True,
        "linecolor": INK,
        "linewidth": 1,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": INK,
        "gridcolor": GRID,
        "zeroline": False,
        "title_standoff": 8,
        "automargin": True,
    }
    figure.update_layout(
        template="plotly_white",
        height=height,
        font={"family": FONT, "size": 13, "color": INK},
        margin={"l": 64, "r": 20, "t": 64, "b": 52},
        hoverlabel={"font": {"family": FONT}},
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yanchor": "top", "yref": "container"},
    )
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis)
    return figure
