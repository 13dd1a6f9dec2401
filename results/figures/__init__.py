"""One file a figure: `numbers(...)` computes, `draw(numbers)` draws with plotly, `caption(numbers)` says what
is seen.

plotly is imported only when a figure is drawn.
"""
