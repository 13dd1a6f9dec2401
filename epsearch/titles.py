"""How names are printed: reports are told what methods, datasets, strategies and hyperparameters call themselves."""

from results.labels import entitle
from search_spaces.published.definition import definitions, load_definition
from search_spaces.strategies import STRATEGIES
from trainers.methods import METHODS, hyperparameters


def _method(name: str) -> str | None:
    return METHODS[name].title if name in METHODS else None


def _dataset(name: str) -> str | None:
    return load_definition(name).title if name in definitions() else None


def _strategy(name: str) -> str | None:
    return STRATEGIES[name].title if name in STRATEGIES else None


def _hyperparameter(name: str) -> str | None:
    known = hyperparameters()
    return known[name].title if name in known else name.replace("_", " ")


def tell_reports() -> None:
    """The declarations are read when a name is printed, not now."""
    entitle("method", _method)
    entitle("dataset", _dataset)
    entitle("strategy", _strategy)
    entitle("hyperparameter", _hyperparameter)
