"""How names are printed: reports are told what methods, datasets, strategies and hyperparameters call themselves.

The declarations are imported when a name is printed: importing epsearch loads none of them.
"""

from results.labels import entitle


def _method(name: str) -> str | None:
    from trainers.methods import METHODS

    return METHODS[name].title if name in METHODS else None


def _dataset(name: str) -> str | None:
    from search_spaces.published.definition import definitions, load_definition

    return load_definition(name).title if name in definitions() else None


def _strategy(name: str) -> str | None:
    from search_spaces.strategies import STRATEGIES

    return STRATEGIES[name].title if name in STRATEGIES else None


def _hyperparameter(name: str) -> str | None:
    from trainers.methods import hyperparameters

    known = hyperparameters()
    return known[name].title if name in known else name.replace("_", " ")


def tell_reports() -> None:
    """Hands the look-ups to `results.labels`, which prints names but may not import those who declare them."""
    titles = {"method": _method, "dataset": _dataset, "strategy": _strategy, "hyperparameter": _hyperparameter}
    for kind, title in titles.items():
        entitle(kind, title)
