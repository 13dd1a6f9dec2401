"""Prepares and checks a study's data and network, before anything is trained or stored."""

from typing import Any, NamedTuple, cast

from epsearch.events import Listener, Note, Warned
from epsearch.failures.errors import UsageError, as_usage_error
from epsearch.plugins.loading import PLUGINS, WAYS, load_plugin
from epsearch.plugins.names import find_shadow
from epsearch.preparation.budgets import budgets
from epsearch.preparation.checks import CHECKS
from epsearch.preparation.distances import distances
from epsearch.preparation.images import check_present, decode_for
from epsearch.preparation.trainers import parts_of, parts_of_network
from epsearch.runners.registry import check_runner
from epsearch.study.description import Disjointness, Study
from epsearch.study.limits import LARGE
from trainers.cohort import IMAGE_NETWORKS, SMALLEST_IMAGE
from trainers.methods import method
from trainers.plugins.calls import ForeignError
from trainers.plugins.source import digest
from trainers.streams import DataError, clear_cache
from trainers.streams.base import ImageStream, TaskStream
from trainers.streams.competing import check_scenario
from trainers.streams.disjoint import overlap
from trainers.streams.task_order import drawn_order, splits_classes

MOST_KNOWN = 0.01  # of the test examples; in the search on published CIFAR-100 it is 0.004
FEWEST_TASKS = 3  # two for a search, as nothing is projected on a first one, and one for the evaluation

IN_PROCESSES = {"trainer": parts_of, "network": parts_of_network}  # imported by training processes only


class Prepared(NamedTuple):
    """Checked data of a study."""

    stream: TaskStream
    """The stream of the evaluation."""
    images: dict[str, Any]
    """Description of the stream and network: all that determines results besides the members."""
    disjointness: Disjointness
    """Proof that evaluation and cross-validation share no tasks, where a study trains on both."""


def prepare(study: Study, listener: Listener) -> Prepared:
    """Prepares the data and the network of a study, and checks everything that depends on them.

    Downloads and decodes images, unless the cache has them. Raises UsageError, one line, where data are missing or do
    not fit the study; Interrupted where the listener asks to stop.
    """
    check_runner(study)
    clear_cache()  # files that this process has read for another study may have changed
    check_present(study)  # first, as weights would be downloaded for nothing
    network = describe_network(study)  # missing weights are an error before images are decoded
    note_size(study, listener)
    note_pack(study, listener)
    decode_for(study, listener)
    stream, disjointness = open_evaluation(study)
    if disjointness.warning:
        listener(Warned(disjointness.warning))
    images = stream.describe() | network | plugins(study, listener) | ways(study, stream) | distances(study)
    images |= budgets(study, stream)
    return Prepared(stream, images, disjointness)


def plugins(study: Study, listener: Listener) -> dict[str, Any]:
    """Returns the parts of a study's plug-ins, for the description of the stream.

    Metrics and figures are loaded, too, as a test. Raises UsageError where a plug-in cannot be loaded.
    """
    for kind, names in (("metric", study.add_metrics), ("figure", study.add_figures)):
        for name in names:
            if ":" in name:  # the others are epsearch's own
                load_plugin(kind, name)
    for name, kind in study.code().items():
        if (other := find_shadow(kind, name)) is not None:
            listener(Warned(f"{kind} {name} is epsearch's own; that of {other.package} is {other.reference}"))
    parts = {name: _parts(name, kind, study.foreign) for name, kind in study.plugins().items()}
    return {PLUGINS: parts} if parts else {}


def _parts(name: str, kind: str, foreign: bool) -> dict[str, str]:
    """Returns the parts of a plug-in; foreign: of a plug-in trainer, whose code is not imported here."""
    if foreign and kind in IN_PROCESSES:
        return IN_PROCESSES[kind](name)
    return dict(load_plugin(kind, name).parts)


def ways(study: Study, stream: TaskStream) -> dict[str, Any]:
    """Returns how members of a plug-in network are trained, in words; {} for other networks.

    The keys say whether members are trained one after another. Raises ValueError and ForeignError for a network that
    cannot be made or trained.
    """
    if study.foreign or not study.architecture.own:
        return {}
    from trainers.networks import make_network

    network: Any = make_network(study.architecture, stream)
    return {WAYS: {str(alone): network.way(alone) for alone in (True, False)}}


def note_size(study: Study, listener: Listener) -> None:
    """Notifies of a large study, whose preparation takes up to two minutes."""
    sizes = {
        "members": study.tried * len(study.stream_seeds("cv")),
        "different tasks": len(study.all_seeds) * study.tasks,
    }
    if max(sizes.values()) > LARGE:
        counts = " and ".join(f"{count:,} {name}" for name, count in sizes.items())
        listener(Note(f"a large study, up to {counts}: getting ready takes a while"))


def note_pack(study: Study, listener: Listener) -> None:
    """Notifies of settings of a pack that this kind of study has no option for."""
    if (pack := study.from_pack) is None:
        return
    names = {*study.options()}
    if "settings" in names:  # tables have values of one method under its name
        names |= {
            hyperparameter.name for hyperparameter in method(pack.method).hyperparameters if hyperparameter.per_method
        }
    if left := [name.replace("_", "-") for name in pack.settings if name not in names]:
        listener(Note(f"pack {pack.name}: {', '.join(left)} left out, as epsearch {study.kind} has no such option"))


def open_evaluation(study: Study) -> tuple[TaskStream, Disjointness]:
    """Returns the checked evaluation stream, and the proof that it shares no tasks with the cross-validation.

    The report says which images both streams share. Raises UsageError where both have the same permutation, and where
    more than MOST_KNOWN of the test examples are known from the cross-validation, unless the study allows that.
    """
    stream = _open(study, "eval")
    if not (study.searches and study.cv_tasks):  # else scored on the evaluation stream itself
        CHECKS[study.kind].check_on(study, {"eval": stream})
        return stream, Disjointness()
    searched = _open(study, "cv")
    CHECKS[study.kind].check_on(study, {"cv": searched, "eval": stream})
    with as_usage_error(DataError):  # of too few rotations
        # With all tasks that the search may go on to.
        whole = study.request("cv", more=study.further_tasks).open() if study.further_tasks else searched
        disjointness = overlap(whole, stream, study.stream_seeds("cv"), study.stream_seeds("eval"))
    if not disjointness.sound and disjointness.moved:
        raise UsageError(
            f"cross-validation and evaluation must not share tasks on {study.dataset}: {disjointness.sentence}"
        )
    if disjointness.known > MOST_KNOWN and not study.value("allow_shared"):
        raise UsageError(
            f"at most {100 * MOST_KNOWN:g} % of the test {disjointness.what} may be known, on {study.dataset} "
            f"{disjointness.known_tests}; --allow-shared goes on with them"
        )
    return stream, Disjointness(disjointness.sound, disjointness.sentence, disjointness.warning)


def _open(study: Study, phase: str) -> TaskStream:
    """Returns the stream of D^CV ("cv") or D^EV ("eval"), after checks of its network and batch size."""
    try:
        stream = study.request(phase).open()
    except DataError as error:
        more = "" if error.classes is None else f"; {_fitting_options(study, error.classes)}"
        raise UsageError(f"{error}{more}") from error
    if not study.foreign:
        _check_network(study, stream)
    orders = _in_orders(study, phase, stream)
    # The last mini-batch of a task may be short, but not its only one.
    least = min(
        stream.size(seed, task) for stream in orders for seed in study.stream_seeds(phase) for task in stream.tasks
    )
    if least < study.largest_batch:
        raise UsageError(f"batch-size must be <= the {least} training examples of a task, got {study.largest_batch}")
    return stream


def _in_orders(study: Study, phase: str, stream: TaskStream) -> list[TaskStream]:
    """Returns the stream in every order in which its tasks differ. Raises UsageError where there are fewer orders."""
    try:
        if splits_classes(stream):
            return [study.request(phase, order=order).open() if order else stream for order in study.order_numbers]
        drawn_order(max(study.order_numbers), min(stream.tasks), len(stream.tasks))
    except (DataError, ValueError) as error:
        more = "more --cv-tasks have" if phase == "cv" else "more --tasks have"
        by_seed = "order-by-seed: " if study.orders == 1 and max(study.order_numbers) else ""
        raise UsageError(f"{by_seed}{error}; {more}") from error
    return [stream]


def _fitting_options(study: Study, classes: int) -> str:
    """Returns options for which this number of classes is enough, with at least two classes a task."""
    if classes < 2 * FEWEST_TASKS:
        return f"at least {2 * FEWEST_TASKS} are needed, two for each of {FEWEST_TASKS} tasks"
    per_task = min(study.classes_per_task or 2, max(2, classes // (2 * FEWEST_TASKS)))
    tasks = min(study.tasks, classes // per_task)
    fitting = {"tasks": tasks, "cv_tasks": min(study.cv_tasks, max(2, tasks // 3)), "classes_per_task": per_task}
    changed = (name for name, value in fitting.items() if value != getattr(study, name))
    return f"{' '.join(f'{study.options()[name].flag} {fitting[name]}' for name in changed)} would do"


def _check_network(study: Study, stream: TaskStream) -> None:
    """Raises UsageError unless the network takes the stream's examples."""
    pixels = getattr(stream, "pixels", None)  # a stream of images has them; one of rows has none
    takes = ("mlp",) if pixels is None else IMAGE_NETWORKS
    with as_usage_error(ValueError):
        for learner in CHECKS[study.kind].trained(study):
            check_scenario(learner.declared, stream)
            study.architecture.check(learner.declared)
    if study.architecture.own:
        with as_usage_error(ValueError, ForeignError):
            ways(study, stream)  # a trial is the only test of whether it can be trained
        return
    if study.network not in takes:
        raise UsageError(f"network must be {' or '.join(takes)} on {study.dataset}, got {study.network!r}")
    if pixels is None:
        return
    side, smallest = min(pixels.shape[1:3]), SMALLEST_IMAGE[study.network]
    if side < smallest:
        raise UsageError(f"images must be >= {smallest} pixels wide for network {study.network}, got {side}")
    embedding = cast(ImageStream, stream).attributes is not None
    if embedding and "prognn" in [learner.method for learner in CHECKS[study.kind].trained(study)]:
        raise UsageError(f"method 'prognn' has no form with a joint embedding, which {study.dataset} has; leave it out")


@as_usage_error(DataError)
def describe_network(study: Study) -> dict[str, Any]:
    """Returns the network's part of the description: its name, and a hash of pretrained weights.

    Raises UsageError for missing weights, or those of another network.
    """
    if study.foreign or study.network == "mlp":
        return {}
    if study.architecture.own:
        return {"network": study.network, "network_parts": digest(load_plugin("network", study.network).parts)}
    if study.pretrained is None:
        return {"network": study.network}
    from trainers.networks.weights import check, clear_cache

    clear_cache()
    return {"network": study.network, "pretrained": check(study.pretrained)}
