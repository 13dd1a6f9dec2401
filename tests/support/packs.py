"""A pack of tests: ER on a small stream, with a printed row that somebody made up."""

OWN = {
    "source": "Doe et al. 2031, table 4",
    "dataset": "permuted_digits",
    "method": "er",
    "metric": "A_T",
    "printed": {"mean": 90.0, "spread": 2.0, "spread_is": "sd", "n": 5},
    "margin": 3,
    "seeds": 2,
    "settings": {"tasks": 3, "cv_tasks": 0, "examples_per_task": 60, "lr": 0.1, "memory": 3, "hidden": [16]},
    "anomalies": ["The authors say so themselves."],
}
"""As in its file."""
EXACT = {"spread": None, "spread_is": None, "n": None}
"""Of a printed mean that is taken as exact."""


def own(**fields):
    """The pack as data with other fields."""
    return {"name": "mine"} | OWN | fields
