"""What a dataset's definition fixes, under the names of the options."""

from typing import Any

from search_spaces.published.definition import load_definition

FALLBACK_EPSILON = 0.5  # where the paper gives none


def published(dataset: str, method: str | None = None) -> dict[str, Any]:
    """The published settings of a dataset; learning rate and λ are the method's where one is named.

    Raises ValueError where the sources give none for the method on this dataset.
    """
    definition = load_definition(dataset)
    rate, strength = definition.learning_rate, None
    if method is not None:
        settings = definition.method(method)
        rate, strength = settings.learning_rate, settings.strength
    return {
        "repeats": definition.repeats,
        "points": definition.points,
        "seeds": tuple(range(definition.seeds)),
        "cv_tasks": definition.cv_tasks,
        "tasks": definition.tasks,
        "classes_per_task": None if definition.image_size is None else definition.classes,
        "image_size": definition.image_size,
        "network": definition.network,
        "pretrained": definition.pretrained,
        "memory": definition.memory,
        "memory_batch": definition.memory_batch,
        "sizes": definition.memory_sizes,
        "batch_size": definition.batch_size,
        "lr": rate,
        "strength": strength,
        "interval": (definition.interval.low, definition.interval.high),
        "epsilon": FALLBACK_EPSILON if definition.reported_epsilon is None else definition.reported_epsilon,
        "fisher_every": definition.fisher_every,
    }
