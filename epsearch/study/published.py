"""Published settings of datasets, by names of options."""

from typing import Any

from search_spaces.published.definition import load_definition
from trainers.hyperparameters import Value
from trainers.methods import METHODS, PLUGGED, hyperparameters


def published(dataset: str, method: str | None = None) -> dict[str, Any]:
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


def of_methods(dataset: str) -> dict[str, dict[str, Value]]:
    """Returns method -> published values by hyperparameter."""
    # Definitions have learning_rate for the option lr; keys that are no options are left out.
    names = {each.published or each.name: each.name for each in hyperparameters().values()}
    own = load_definition(dataset).methods
    alike = {name: own[one.settings_of] for name, one in METHODS.items() if one.settings_of in own}
    return {
        method: {names[written]: value for written, value in settings.items() if written in names}
        for method, settings in {**own, **alike}.items()
    }


def _hyperparameters(dataset: str, method: str | None) -> dict[str, Value]:
    """Returns published hyperparameters: the method's, else the dataset's, else the declared default."""
    definition = load_definition(dataset)
    of_all = {each: getattr(definition, each.published, None) for each in hyperparameters().values() if each.published}
    values = {each.name: each.default if value is None else value for each, value in of_all.items()}
    if method is not None and method not in PLUGGED:  # plug-ins have no published values
        declared = METHODS.get(method)
        definition.method((declared and declared.settings_of) or method)  # raises without values
        values |= of_methods(dataset)[method]
    return values
