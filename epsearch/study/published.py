"""Published settings of datasets, by names of options."""

from typing import Any

from search_spaces.published.definition import load_definition
from trainers.hyperparameters import Value
from trainers.methods import METHODS, PLUGGED, hyperparameters
from trainers.methods import method as method_of


def published_settings(dataset: str, method: str | None = None) -> dict[str, Any]:
    """Returns the published settings of a dataset, with a method's own hyperparameters if it is named.

    Comments in the definition's YAML file name the sources. Raises ValueError where the definition has none for the
    method, and UnknownDataset.
    """
    definition = load_definition(dataset)
    return _hyperparameters(dataset, method) | {
        "repeats": definition.repeats,
        "points": definition.points,
        "seeds": tuple(range(definition.seeds)),
        "cv_tasks": definition.cv_tasks or 0,
        "scenario": next(iter(definition.scenarios), None),
        "tasks": definition.tasks,
        "classes_per_task": None if definition.image_size is None else definition.classes,
        "image_size": definition.image_size,
        "network": definition.network,
        "pretrained": definition.pretrained,
        "sizes": definition.memory_sizes,
        "interval": (definition.interval.low, definition.interval.high),
    }


def known_values(dataset: str, method: str, name: str) -> dict[str, float]:
    """Returns "default", the declared value of a method's hyperparameter, and "published", the data set's; if any.

    Raises UnknownDataset.
    """
    declared = next(
        hyperparameter for hyperparameter in method_of(method).hyperparameters if hyperparameter.name == name
    )
    values = {"default": declared.default, "published": settings_of_dataset(dataset, method).get(name)}
    return {which: float(value) for which, value in values.items() if isinstance(value, (int, float))}


def settings_of_dataset(dataset: str, method: str | None = None) -> dict[str, Value]:
    """Returns the hyperparameters for which the definition of a dataset has a value: its own, then those of a method.

    A value that every method has for itself, as the learning rate, is the dataset's only where no method is named.
    """
    definition, named = load_definition(dataset), hyperparameters().values()
    shared = {
        hyperparameter.name: getattr(definition, hyperparameter.published, None)
        for hyperparameter in named
        if hyperparameter.published
    }
    apart = {hyperparameter.name for hyperparameter in named if hyperparameter.per_method and method is not None}
    values = {name: value for name, value in shared.items() if value is not None and name not in apart}
    return values | (of_methods(dataset).get(method, {}) if method is not None else {})


def of_methods(dataset: str) -> dict[str, dict[str, Value]]:
    """Returns method -> published values by hyperparameter."""
    # Definitions have learning_rate for the option lr; keys that are no options are left out.
    names = {
        hyperparameter.published or hyperparameter.name: hyperparameter.name
        for hyperparameter in hyperparameters().values()
    }
    own = load_definition(dataset).methods
    alike = {name: own[declared.settings_of] for name, declared in METHODS.items() if declared.settings_of in own}
    return {
        method: {names[written]: value for written, value in settings.items() if written in names}
        for method, settings in {**own, **alike}.items()
    }


def _hyperparameters(dataset: str, method: str | None) -> dict[str, Value]:
    """Returns published hyperparameters: the method's, else the dataset's, else the declared default."""
    declared = {
        hyperparameter.name: hyperparameter.default
        for hyperparameter in hyperparameters().values()
        if hyperparameter.published
    }
    if method is None or method in PLUGGED:  # plug-ins have no published values
        return declared | settings_of_dataset(dataset)
    known = METHODS.get(method)
    load_definition(dataset).method((known and known.settings_of) or method)  # raises without values
    return declared | settings_of_dataset(dataset) | settings_of_dataset(dataset, method)
