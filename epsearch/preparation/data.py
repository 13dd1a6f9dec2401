"""Everything about a study's data and network that is checked before anything is trained or stored."""

from typing import Any, NamedTuple, cast

from epsearch.events import Listener, Note, Warned
from epsearch.failures.errors import UsageError, refused
from epsearch.plugins.loading import PLUGINS, WAYS, loaded
from epsearch.plugins.naming import shadowed
from epsearch.preparation.checks import CHECKS
from epsearch.preparation.images import decode_for, look_for
from epsearch.preparation.trainers import parts_of, parts_of_network
from epsearch.study.description import Disjointness, Study
from epsearch.study.limits import LARGE
from trainers.cohort import IMAGE_NETWORKS, SMALLEST_IMAGE
from trainers.plugins.calls import ForeignError
from trainers.plugins.source import digest
from trainers.streams import DataError, forget
from trainers.streams.base import ImageStream, TaskStream, TooFewClasses
from trainers.streams.disjoint import PERMUTATIONS, overlap

MOST_KNOWN = 0.01  # of what is tested on; in the search on published CIFAR-100 it is 0.004
FEWEST_TASKS = 3  # two for a search, as nothing is projected on a first one, and one for the evaluation

IN_PROCESSES = {"trainer": parts_of, "network": parts_of_network}  # what those that train import, and we do not


class Prepared(NamedTuple):
    """Data that is there and checked."""

    stream: TaskStream
    """That of the evaluation."""
    images: dict[str, Any]
    """What determines results besides the members."""
    proof: Disjointness
    """That its tasks share nothing with those of the cross-validation, where a command trains on both."""


def prepare(study: Study, listener: Listener) -> Prepared:
    """Gets the data and the network of a study ready, and checks everything that depends on them.

    Downloads, and decodes images, where that has not been done. Raises UsageError, one line, where the data cannot be
    had, or does not fit the study; Interrupted where the listener wants it to stop.
    """
    forget()  # what this process has read for another study may have changed on the disk
    look_for(study)  # first, as weights would be downloaded for nothing
    network = described_network(study)  # weights that cannot be had are told before images are decoded
    say_size(study, listener)
    decode_for(study, listener)
    stream, proof = open_evaluation(study)
    if proof.warning:
        listener(Warned(proof.warning))
    images = stream.describe() | network | plugins(study, listener) | ways(study, stream)
    return Prepared(stream, images, proof)


def plugins(study: Study, listener: Listener) -> dict[str, Any]:
    """What code of others is made of, as it is now, for the description of the stream; what only shows is tried, too.

    Raises UsageError where some cannot be loaded.
    """
    for kind, names in (("metric", study.add_metrics), ("figure", study.add_figures)):
        for name in names:
            loaded(kind, name)
    for name, kind in study.code().items():
        if (other := shadowed(kind, name)) is not None:
            listener(Warned(f"{kind} {name} is epsearch's own; that of {other.package} is {other.reference}"))
    found = {name: _parts(name, kind, study.foreign) for name, kind in study.plugged().items()}
    return {PLUGINS: found} if found else {}


def _parts(name: str, kind: str, foreign: bool) -> dict[str, str]:
    """What a plug-in is made of. foreign: of a study of a trainer, of which nothing is imported here."""
    if foreign and kind in IN_PROCESSES:
        return IN_PROCESSES[kind](name)
    return dict(loaded(kind, name).parts)


def ways(study: Study, stream: TaskStream) -> dict[str, Any]:
    """How members of a network of others are trained, in words by whether one after another; {} of ours.

    Raises ValueError and ForeignError where it cannot be made, or trained.
    """
    if study.foreign or not study.architecture.own:
        return {}
    from trainers.networks import make_network

    network: Any = make_network(study.architecture, stream)
    return {WAYS: {str(alone): network.way(alone) for alone in (True, False)}}


def say_size(study: Study, listener: Listener) -> None:
    """One line before a large study is looked at, which takes up to a minute or two."""
    sizes = {
        "members": study.tried * len(study.stream_seeds("cv")),
        "different tasks": len(study.all_seeds) * study.tasks,
    }
    if max(sizes.values()) > LARGE:
        told = " and ".join(f"{count:,} {what}" for what, count in sizes.items())
        listener(Note(f"a large study, up to {told}: getting ready takes a while"))


def open_evaluation(study: Study) -> tuple[TaskStream, Disjointness]:
    """The evaluation stream, after everything about it has been checked, and the proof that it is another one.

    Proved is that its tasks share nothing with those of the cross-validation, where a command trains on both. What
    streams of images share is told in the report. Raises UsageError where both have a permutation, which would be the
    very same task, and where more than MOST_KNOWN of what is tested on is not new, unless the study allows that.
    """
    stream = _opened(study, "eval")
    if not study.searches:
        return stream, Disjointness()
    searched = _opened(study, "cv")
    CHECKS[study.kind].check_on(study, {"cv": searched, "eval": stream})
    proof = overlap(searched, stream, study.stream_seeds("cv"), study.stream_seeds("eval"))
    if not proof.sound and proof.what == PERMUTATIONS:
        raise UsageError(f"cross-validation and evaluation must not share tasks on {study.dataset}: {proof.sentence}")
    if proof.known > MOST_KNOWN and not study.value("allow_shared"):
        raise UsageError(
            f"at most {100 * MOST_KNOWN:g} % of the test {proof.what} may be known, on {study.dataset} "
            f"{proof.known_tests}; --allow-shared goes on with them"
        )
    return stream, Disjointness(proof.sound, proof.sentence, proof.warning)


def _opened(study: Study, phase: str) -> TaskStream:
    """The stream of D^CV ("cv") or D^EV ("eval"), with the network that fits it and full mini-batches in every task."""
    try:
        stream = study.request(phase).open()
    except TooFewClasses as error:
        raise UsageError(f"{error}; {_that_fit(study, error.classes)}") from error
    except DataError as error:
        raise UsageError(str(error)) from error
    if not study.foreign:
        _check_network(study, stream)
    # The last mini-batch of a task may be short, but not its only one.
    least = min(stream.size(seed, task) for seed in study.stream_seeds(phase) for task in stream.tasks)
    if least < study.largest_batch:
        raise UsageError(f"batch-size must be <= the {least} training examples of a task, got {study.largest_batch}")
    return stream


def _that_fit(study: Study, classes: int) -> str:
    """Options that so many classes are enough for; a task of one class would be no task."""
    if classes < 2 * FEWEST_TASKS:
        return f"at least {2 * FEWEST_TASKS} are needed, two for each of {FEWEST_TASKS} tasks"
    per_task = min(study.classes_per_task or 2, max(2, classes // (2 * FEWEST_TASKS)))
    tasks = min(study.tasks, classes // per_task)
    fitting = {"tasks": tasks, "cv_tasks": min(study.cv_tasks, max(2, tasks // 3)), "classes_per_task": per_task}
    changed = (name for name, value in fitting.items() if value != getattr(study, name))
    return f"{' '.join(f'{study.options()[name].flag} {fitting[name]}' for name in changed)} would do"


def _check_network(study: Study, stream: TaskStream) -> None:
    """The network must take what the stream has; of a user's own stream that is seen only now."""
    pixels = getattr(stream, "pixels", None)  # a stream of images has them; one of rows has none
    takes = ("mlp",) if pixels is None else IMAGE_NETWORKS
    if study.architecture.own:
        with refused(ValueError, ForeignError):
            for one in CHECKS[study.kind].trained(study):
                study.architecture.check(one.declared)
            ways(study, stream)  # tried, as nothing else tells whether it can be trained
        return
    if study.network not in takes:
        raise UsageError(f"network must be {' or '.join(takes)} on {study.dataset}, got {study.network!r}")
    if pixels is None:
        return
    side, smallest = min(pixels.shape[1:3]), SMALLEST_IMAGE[study.network]
    if side < smallest:
        raise UsageError(f"images must be >= {smallest} pixels wide for network {study.network}, got {side}")
    embedding = cast(ImageStream, stream).attributes is not None
    if embedding and "prognn" in [one.method for one in CHECKS[study.kind].trained(study)]:
        raise UsageError(f"method 'prognn' has no form with a joint embedding, which {study.dataset} has; leave it out")


@refused(DataError)
def described_network(study: Study) -> dict[str, Any]:
    """What of the network is part of every result besides the stream: its name, and a hash of pretrained weights.

    Raises UsageError where the weights cannot be had, or are another network's.
    """
    if study.foreign or study.network == "mlp":
        return {}
    if study.architecture.own:
        return {"network": study.network, "network_parts": digest(loaded("network", study.network).parts)}
    if study.pretrained is None:
        return {"network": study.network}
    from trainers.networks.weights import check, forget

    forget()
    return {"network": study.network, "pretrained": check(study.pretrained)}
