"""Titles of methods, datasets, strategies and hyperparameters, for reports.

Their declarations are imported when a name is printed, not with epsearch.
"""

from results.labels import entitle


def _method(name: str) -> str | None:
    from trainers.methods import METHODS, PLUGGED

    methods = PLUGGED | METHODS
    return methods[name].title if name in methods else None


def _dataset(name: str) -> str | None:
    from search_spaces.published.definition import definitions, load_definition

    return load_definition(name).title if name in definitions() else None


def _strategy(name: str) -> str | None:
    from search_spaces.strategies import PLUGGED, STRATEGIES

    strategies = PLUGGED | STRATEGIES
    return strategies[name].title if name in strategies else None


def _hyperparameter(name: str) -> str | None:
    from trainers.methods import PLUGGED, hyperparameters

    declarations = {
        hyperparameter.name: hyperparameter for method in PLUGGED.values() for hyperparameter in method.own
    } | hyperparameters()
    return declarations[name].title if name in declarations else name.replace("_", " ")


def register_titles() -> None:
    """Registers the titles in `results.labels`, which must not import their declarations."""
    titles = {"method": _method, "dataset": _dataset, "strategy": _strategy, "hyperparameter": _hyperparameter}
    for kind, title in titles.items():
        entitle(kind, title)
