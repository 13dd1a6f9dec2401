"""One session of training: ledger, runner and progress line around a loop, whatever its kind."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from rich.console import Console

from epsearch.build import restore
from epsearch.datasets import decode
from epsearch.errors import UsageError
from epsearch.evaluate import StudyLoop
from epsearch.fitting import fitted
from epsearch.loop import Loop
from epsearch.machine import describe_machine
from epsearch.numeric import numeric_path
from epsearch.progress import Monitor, clock
from epsearch.study import Comparison, MemoryStudy, Setup, Study
from epsearch.table import TableLoop
from results.store import Store, StoreError, StudyRow
from trainers.cohort import IMAGE_NETWORKS, SMALLEST_IMAGE
from trainers.streams import DataError
from trainers.streams.base import ImageStream, TaskStream


@dataclass(frozen=True)
class Effort:
    """What a session did: members trained and reused, member-steps taken and saved, wall seconds.

    saved: member-steps that were not taken, as members that begin alike share the first task.
    """

    trained: int
    reused: int
    member_steps: int
    saved: int
    seconds: float


def train(study: Setup, console: Console, quiet: bool = False) -> tuple[Loop, Effort]:
    """Trains from where the ledger stands to the end.

    Raises UsageError (bad input; nothing has been trained); Interrupted and TrainingFailed (what was trained is kept).
    """
    network = described_network(study)
    decode(study, console, quiet)
    stream = open_evaluation(study)
    images = stream.describe() | network
    make_folder(study.out)
    with open_store(study.storage) as store, ExitStack() as stack:
        row = store.study(study.name)
        # A new study will have to train, so its runner may start at once; for an old one the ledger is asked first.
        run = stack.enter_context(_runner(study)) if row is None else None
        study = replace(
            study, numeric_path=numeric_path(study, stream, row.config.get("numeric_path") if row else None)
        )
        study = fitted(study, stream, console, quiet)
        _save_study(store, study, images)
        loop = make_loop(study, images, store)
        with Monitor(loop, console, quiet) as monitor:
            if not loop.done:
                run = run or stack.enter_context(_runner(study))
                run(loop, monitor)
        return loop, Effort(loop.trained, loop.reused, monitor.member_steps, loop.saved, monitor.seconds)


def make_loop(study: Setup, images: Mapping[str, Any], store: Store) -> Loop:
    """The loop of the study's kind."""
    if isinstance(study, Study):
        return StudyLoop(study, images, store)
    assert isinstance(study, (Comparison, MemoryStudy))
    return TableLoop(study, images, store)


def stored_loop(row: StudyRow, store: Store, storage: str, out: Path) -> Loop:
    """A stored study as far as the ledger knows it. Nothing is trained."""
    # A study of an older ledger began before there were paths; it can be listed, and finds none of its members.
    return make_loop(restore(row.config, row.name, out, storage), row.config["stream"], store)


def open_store(storage: str) -> Store:
    """The ledger. Raises UsageError in one line."""
    try:
        return Store.open(storage)
    except StoreError as error:
        raise UsageError(str(error)) from error


def open_evaluation(study: Setup) -> TaskStream:
    """The evaluation stream, after everything about it has been checked."""
    stream = _opened(study, "eval")
    if isinstance(study, Study) or (isinstance(study, Comparison) and study.tune):
        _opened(study, "cv")
    return stream


def _opened(study: Setup, phase: str) -> TaskStream:
    try:
        stream = study.request(phase).open()
    except DataError as error:
        raise UsageError(str(error)) from error
    _check_network(study, stream)
    least = min(stream.size(seed, task) for seed in study.seeds for task in stream.tasks)
    if least < study.batch_size:
        raise UsageError(f"batch-size must be <= the {least} training examples of a task, got {study.batch_size}")
    return stream


def _check_network(study: Setup, stream: TaskStream) -> None:
    """The network must take what the stream has; of a user's own stream that is seen only now."""
    pixels = getattr(stream, "pixels", None)
    takes = ("mlp",) if pixels is None else IMAGE_NETWORKS
    if study.network not in takes:
        raise UsageError(f"network must be {' or '.join(takes)} on {study.dataset}, got {study.network!r}")
    if pixels is None:
        return
    side, smallest = min(pixels.shape[1:3]), SMALLEST_IMAGE[study.network]
    if side < smallest:
        raise UsageError(f"images must be >= {smallest} pixels wide for network {study.network}, got {side}")
    embedding = cast(ImageStream, stream).attributes is not None
    if embedding and isinstance(study, Comparison) and "prognn" in study.methods:
        raise UsageError("method 'prognn' has no form with a joint embedding; leave it out of --methods")


def described_network(study: Setup) -> dict[str, Any]:
    """What of the network is part of every result besides the stream: its name, and a hash of pretrained weights.

    Raises UsageError where the weights cannot be had, or are another network's.
    """
    if study.network == "mlp":
        return {}
    if study.pretrained is None:
        return {"network": study.network}
    from trainers.networks.weights import check

    try:
        return {"network": study.network, "pretrained": check(study.pretrained)}
    except DataError as error:
        raise UsageError(str(error)) from error


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to the out folder {folder}: {error.strerror}; give another --out") from error
    if not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write to the out folder {folder}: no permission; give another --out")


def facts(loop: Loop, effort: Effort | None) -> dict[str, str]:
    """What a report says about the work: members, steps, times, machine, versions."""
    records = loop.records.values()
    found = {
        "members": f"{len(records)} in the ledger for this study",
        "SGD steps of all members": f"{sum(record.steps for record in records):,}",
        "training time of all members": clock(sum(record.seconds for record in records)),
    }
    if effort is not None:
        found["last run"] = (
            f"{effort.trained} members trained, {effort.reused} taken from the ledger, in {clock(effort.seconds)}"
        )
        found["SGD steps of the last run"] = (
            f"{effort.member_steps:,} taken, {effort.saved:,} saved: members of a seed share the first task"
        )
    return found | describe_machine() | {"epsearch": version("epsearch")}


def unfinished(loop: Loop) -> list[str]:
    """A note where the study is not finished."""
    if loop.done:
        return []
    known, wanted = loop.stage_members()
    return [f"The study is not finished: {loop.stage}, {known} of {wanted} members are trained."]


def _runner(study: Setup) -> AbstractContextManager[Callable[[Loop, Monitor], None]]:
    if study.runner == "local":
        from epsearch.runners import local

        return local.ready(study)
    from epsearch.runners import tune

    return tune.ready(study)


def _save_study(store: Store, study: Setup, images: Mapping[str, Any]) -> None:
    described = {"study": study.identity(), "stream": dict(images), "numeric_path": study.numeric_path}
    if not isinstance(study, Study):
        described["kind"] = study.kind  # searches are stored as they were before there were other kinds
    try:
        store.save_study(study.name, described)
    except StoreError as error:
        raise UsageError(str(error)) from error
