"""Checks of the options of every kind of study against the definition of its dataset."""

from epsearch.failures.errors import UsageError
from epsearch.study import limits
from epsearch.study.description import Study
from epsearch.study.limits import check_product
from results.labels import OF_POINTS, count_text
from search_spaces.published.definition import load_definition
from trainers.cohort import IMAGE_NETWORKS, SMALLEST_IMAGE, Architecture


def check_stream(study: Study) -> None:
    """Checks conditions that hold for all kinds of study. Raises UsageError."""
    # First, as further checks of a too large study take long.
    check_product("different tasks", limits.STREAMS, seeds=len(study.all_seeds), tasks=study.tasks)
    examples, batch, size = study.examples_per_task, study.largest_batch, study.image_size
    definition, smallest = load_definition(study.dataset), SMALLEST_IMAGE.get(study.network, 0)
    values, fixed, scenarios = study.hyperparameters, definition.image_size is None, definition.scenarios
    smallest = 0 if study.foreign else smallest
    for wrong, line in (
        (
            study.precision == "tf32" and study.device != "cuda",
            f"precision tf32 is arithmetic of NVIDIA GPUs; with device {study.device} only float32 is allowed",
        ),
        (
            study.scenario not in (scenarios or (None,)),
            f"scenario of {study.dataset} must be {' or '.join(scenarios) or 'left out'}, got {study.scenario}",
        ),
        (
            study.searches and not study.cv_tasks and getattr(study, "score_on", "cv") == "cv",
            f"cv-tasks must be >= 1{', or score-on eval' * ('score_on' in study.options())}, got 0 of the "
            f"{count_text(study.tasks, 'task')} of {study.dataset}",
        ),
        (
            study.validation > 0 and not study.chooses,
            f"validation is for studies that choose: a search, or compare with --tune; got {study.validation:g}",
        ),
        (
            study.foreign and study.maximised in OF_POINTS,
            f"objective {study.maximised} needs tests inside tasks, which a trainer of your own has not",
        ),
        (
            study.measure is None and study.measure_images != study.options()["measure_images"].default,
            f"measure-images is for --measure-every; give it, or leave it out, got {study.measure_images}",
        ),
        (
            study.cv_tasks >= study.tasks,
            "cv-tasks must be < tasks, so that tasks remain for the evaluation; "
            f"got {study.cv_tasks} and {study.tasks}",
        ),
        (
            study.order is not None and study.orders > 1,
            f"order is one order, and orders are drawn: leave one out, got orders {study.orders}",
        ),
        (
            study.order is not None and not _fits(study.order, study.cv_tasks, study.tasks),
            f"order must have the tasks 0…{study.tasks - 1}, {_searched_first(study.cv_tasks)}; "
            f"got {','.join(map(str, study.order or ()))}",
        ),
        (
            examples is not None and examples < batch,
            f"examples-per-task must be >= batch-size, got {examples} and {batch}",
        ),
        (
            values.steps is not None and values.epochs != 1,
            f"epochs and steps exclude each other, got {values.epochs} and {values.steps}; leave one out",
        ),
        (
            fixed and study.classes_per_task is not None,
            f"classes-per-task is for streams of images, got {study.classes_per_task} for {study.dataset}",
        ),
        (fixed and size is not None, f"image-size is for streams of images, got {size} for {study.dataset}"),
        (
            not fixed and study.network == "mlp" and not study.foreign,
            f"network must be {' or '.join(IMAGE_NETWORKS)} on {study.dataset}, got {study.network!r}",
        ),
        (
            study.pretrained is not None and study.network != "resnet18",
            f"pretrained weights are for network resnet18, got {study.network}; allowed: none",
        ),
        (
            study.network != "mlp" and (study.hidden, study.start) != (Architecture.hidden, Architecture.start),
            f"hidden and start are for network mlp, got network {study.network}; leave them out",
        ),
        (
            size is not None and size < smallest,
            f"image-size must be >= {smallest} for network {study.network}, got {size}",
        ),
    ):
        if wrong:
            raise UsageError(line)


def _fits(order: tuple[int, ...], cv_tasks: int, tasks: int) -> bool:
    """Returns whether an order has all tasks, and those of the search first."""
    return len(order) == tasks and sorted(order[:cv_tasks]) == list(range(cv_tasks))


def _searched_first(cv_tasks: int) -> str:
    """Returns the tasks with which an order must begin, in words."""
    return f"those of the search, 0…{cv_tasks - 1}, first" if cv_tasks else "each once"
