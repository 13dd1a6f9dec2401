"""The three scenarios of continual learning, by the outputs that compete on an example.

Source: van de Ven & Tolias 2019, "Three scenarios for continual learning" (arXiv 1904.07734). Without NumPy, as methods
and options are declared without it; `streams/competing.py` has what a stream does with them.
"""

TASK, DOMAIN, CLASS = SCENARIOS = ("task", "domain", "class")
"""Task-incremental: outputs of the example's own task. Domain-incremental: all. Class-incremental: all seen so far."""
