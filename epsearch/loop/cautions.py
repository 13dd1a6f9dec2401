"""Cautions for searches: of ε, from measurements on the paper's streams (docs/parabola.md), and of few tasks.

The figures are those of benchmarks/results: parabola.json, with the exact gradient, and forecasts.json; tests compare
them.
"""

from collections.abc import Mapping
from typing import cast

from epsearch.study.description import Study
from epsearch.study.hyperparameters import EPSILON
from epsearch.study.kinds import OneMethod, Search
from epsearch.study.kinds.search import CV_TASKS
from trainers import methods
from trainers.methods.rules import RESERVOIR

FULL_TASKS = {"permuted_mnist": 60_000}  # dataset that was measured -> images of a full task
SMALL, AT_THE_END = "permuted_digits", 0.9
METHOD = "soft_agem"
FEW_TASKS = 5  # full tasks of a search: so many still chose an ε that is too small for the evaluation, 10 did not

FEW_TO_PREDICT = 4  # with fewer tasks nothing tells how forgetting goes on

COMMAND = "epsearch run --dataset {dataset} --cv-tasks 10 --seeds 6"
"""The search that chose right where it was measured, with seeds enough for a test."""

FEWER_IMAGES = (
    "With {images:,} images a task instead of all {full:,} the best ε tends to be larger: the choice holds for tasks "
    "of this size. Highest of 11 tried values on 3 tasks, by images: 1 with 500, 0.85 with 2,000, 0.1 with 8,000, "
    "0.07185 with 20,000, 0 with 60,000 (docs/parabola.md). For full tasks: {command}"
)
FEWER_IMAGES_AND_TASKS = (
    "The best ε depends on the size of the search: it tends to be larger with fewer images a task ({images:,} of "
    "{full:,} here) and smaller on fewer tasks ({tasks} here, {evaluated} in the evaluation) "
    "(docs/parabola.md). For full tasks: {command}"
)
FEW_SEARCH_TASKS = (
    "A search on so few tasks ({tasks}) tends to choose a smaller ε than is best on the {evaluated} of the evaluation. "
    "Highest of 11 tried values on full tasks: 0 on 3, 0 on 5, 0.07185 on 10, 0.07185 on the evaluation's 17 "
    "(docs/parabola.md). On more tasks: {command}"
)
SMALL_STREAM = (
    "On a stream as small as these digits the best ε lies at or near 1, as with 500 images a task of Permuted MNIST; "
    "on its full tasks it lies inside (docs/parabola.md). On larger tasks: epsearch run --dataset permuted_mnist "
    "--examples-per-task 2000 --strategy kg --seeds 6"
)
ZERO = (
    "ε = 0 was chosen on few tasks ({tasks}), which can cost A_T on the {evaluated} of the evaluation: 1.97 ± "
    "0.36 points on 17 full tasks (3 seeds), against ε = 0.07185 "
    "(docs/parabola.md). Before you take A-GEM: {command}"
)

THREE_TASKS = (
    "Of 3 tasks any course of forgetting fits: choices by their prediction lost 0.86 points on 14 streams, by that of "
    "4 tasks 0.22 (docs/along.md). Give the search a fourth task: --cv-tasks 4."
)


def cautions(study: Study, chosen: Mapping[str, object] | None = None, seen: int | None = None) -> tuple[str, ...]:
    """Returns the cautions for a study; chosen: values that its search chose, by name; seen: see `of_protocol`.

    Measured ones are there for the datasets, methods and kinds of study of these measurements alone.
    """
    misleading = of_protocol(cast(OneMethod, study), seen)  # only these kinds see a part of the tasks
    few = THREE_TASKS if study.extrapolates and study.cv_tasks + study.further_tasks < FEW_TO_PREDICT else ""
    return (*filter(None, [misleading, few]), *_measurement(study, chosen))


def of_protocol(study: OneMethod, seen: int | None) -> str:
    """Returns why a choice by few tasks misleads; "" where it does not.

    seen: how many first tasks of the evaluation choose; None for all, or for tasks of the search. What acts on the
    first of them only by replaying it says nothing on how much of earlier tasks is to be kept.
    """
    if seen != 1 or study.foreign:
        return ""
    method = methods.method(study.method)
    replayed = [name for name in study.space.names if name in method.names and method.memory == RESERVOIR]
    if not replayed:
        return ""
    act = f"{' and '.join(replayed)} act{'s' * (len(replayed) == 1)}"
    return f"Misleading: on one task {act} only by replaying the same task."


def _measurement(study: Study, chosen: Mapping[str, object] | None) -> tuple[str, ...]:
    """Returns what was measured of searches of ε; for the arguments see `cautions`."""
    if not _searches_epsilon(study):
        return ()
    if study.dataset == SMALL:
        at_the_end = chosen is not None and float(str(chosen.get(EPSILON, 0))) >= AT_THE_END
        return (SMALL_STREAM,) if at_the_end else ()
    if study.dataset not in FULL_TASKS:
        return ()
    full, images = FULL_TASKS[study.dataset], study.examples_per_task
    tasks, evaluated = study.cv_tasks, study.tasks - study.cv_tasks
    fewer_images = images is not None and images < full
    few_tasks = (
        study.value("score_on") == "cv"
        and study.value("protocol") == CV_TASKS
        and tasks <= FEW_TASKS
        and tasks < evaluated
    )
    zero = few_tasks and chosen is not None and chosen.get(EPSILON) == 0
    text = {
        (True, True): FEWER_IMAGES_AND_TASKS,
        (True, False): FEWER_IMAGES,
        (False, True): ZERO if zero else FEW_SEARCH_TASKS,
    }.get((fewer_images, few_tasks))
    if text is None:
        return ()
    command = COMMAND.format(dataset=study.dataset)
    return (text.format(images=images, full=full, tasks=tasks, evaluated=evaluated, command=command),)


def _searches_epsilon(study: Study) -> bool:
    if study.kind != Search.kind or study.value("method") != METHOD:
        return False
    space = study.value("search")
    return space is None or EPSILON in space.names
