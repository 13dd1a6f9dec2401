"""The figures, one module each.

`numbers(...)` computes what a figure shows, `draw(numbers)` draws it with plotly, `caption(numbers)` describes it, and
`tables(numbers)` returns its data for CSV files. plotly is imported only when a figure is drawn.
"""

FORMATS = ("svg", "pdf")
"""In which figures are written for papers."""
