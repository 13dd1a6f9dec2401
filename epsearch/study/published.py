"""What a dataset's definition fixes, under the names of the options."""

from typing import Any

from search_spaces.published.definition import load_definition
from trainers.hyperparameters import Value
from trainers.methods import PLUGGED, hyperparameters


def published(dataset: str, method: str | None = None) -> dict[str, Any]:
    """The published settings of a dataset; of hyperparameters, the method's own values where one is named.

    Which source each value is from, a comment beside it in the definition's YAML file says. Raises ValueError where the
    sources give none for the method on this dataset, and UnknownDataset where no definition has the name.
    """
    definition = load_definition(dataset)
    return _hyperparameters(dataset, method) | {
        "repeats": definition.repeats,
        "points": definition.points,
        "seeds": tuple(range(definition.seeds)),
        "cv_tasks": definition.cv_tasks,
        "tasks": definition.tasks,
        "classes_per_task": None if definition.image_size is None else definition.classes,
        "image_size": definition.image_size,
        "network": definition.network,
        "pretrained": definition.pretrained,
        "sizes": definition.memory_sizes,
        "interval": (definition.interval.low, definition.interval.high),
    }


def of_methods(dataset: str) -> dict[str, dict[str, Value]]:
    """Method -> the values that the definition gives for it, by hyperparameter."""
    # Definitions say learning_rate where options say lr; what is no option is left out.
    names = {one.published or one.name: one.name for one in hyperparameters().values()}
    return {
        method: {names[written]: value for written, value in settings.items() if written in names}
        for method, settings in load_definition(dataset).methods.items()
    }


def _hyperparameters(dataset: str, method: str | None) -> dict[str, Value]:
    """Those that definitions give: the dataset's, else the declared default; of a method, its own over both."""
    definition = load_definition(dataset)
    of_all = {one: getattr(definition, one.published, None) for one in hyperparameters().values() if one.published}
    values = {one.name: one.default if value is None else value for one, value in of_all.items()}
    if method is not None and method not in PLUGGED:  # nothing is published of methods of others
        definition.method(method)  # raises where the sources give none
        values |= of_methods(dataset)[method]
    return values
