"""Main function of the process of a plug-in trainer.

It imports the trainer, and asks for its declaration or trains it, as the first message says.
"""

import importlib
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from trainers.foreign.inside.loader import Trainer, declaration, installed_version, load_trainer
from trainers.foreign.inside.seeds import Seeds
from trainers.foreign.inside.stream_api import Channel, Report, Stream
from trainers.plugins.calls import ForeignError, blamed, in_one_line, load


def serve(requests: int, answers: int) -> None:
    """Serves the request, and tells how it ended: "declared", "done", or why not in one line.

    "refused" has a line of ours; "raised" has what follows the trainer's name, and whether it was a FloatingPointError.
    """
    channel = Channel(requests, answers)
    job = channel.receive()
    try:
        said = (_declare if job.kind == "declare" else _train)(channel, job.header, job.arrays)
    except ForeignError as error:
        said = {"kind": "refused", "line": str(error)}
    channel.tell(said)


def _declare(channel: Channel, job: Mapping[str, Any], arrays: list[NDArray[Any]]) -> dict[str, Any]:
    trainer = _load(job)
    with blamed(f"{trainer.what} declares what cannot be read:", trainer.source):
        return {"kind": "declared", "declaration": declaration(trainer).facts()}


def _train(channel: Channel, job: Mapping[str, Any], arrays: list[NDArray[Any]]) -> dict[str, Any]:
    seeds = Seeds(job["seed"], job["threads"])
    seeds.begin(0)  # whatever is drawn on import is the same every time, too
    trainer = _load(job)
    for name, expected in job["versions"].items():
        if (here := installed_version(name, trainer.what)) != expected:
            raise ForeignError(
                f"{trainer.what} requires {name}, of which this run began with {expected}, and here is {here}; "
                "install that version, or choose another --name"
            )
    for name, files in job["networks"].items():
        load(name.partition(":")[0], f"network {name!r}", files)
    stream, report = Stream(channel, job, arrays), Report(channel, job, arrays, seeds)
    if trainer.resumable and job["resumable"]:
        report.saved_by(trainer.made.save)
    seeds.begin(job["done"] + 1)
    channel.tell({"kind": "begun", "capability": _capability()})

    def call() -> None:
        if job["state"] is not None:
            trainer.made.load(Path(job["state"]))
        trainer.train(dict(job["values"]), stream, job["seed"], report)

    return _run(call, trainer)


def _capability() -> str:
    """Returns the instructions of the processor that torch uses; "" where torch has not been imported."""
    backends = getattr(sys.modules.get("torch"), "backends", None)
    return str(backends.cpu.get_cpu_capability()) if backends else ""


def _run(call: Callable[[], None], trainer: Trainer) -> dict[str, Any]:
    """Returns the message about its end."""
    try:
        with blamed("with", trainer.source, FloatingPointError):
            call()
    except FloatingPointError as error:
        return {"kind": "raised", "line": f"with {in_one_line(error)}", "floating": True}
    except ForeignError as error:
        with suppress(Exception):  # for the log; the trainer may have closed its output
            traceback.print_exception(error.__cause__ or error)
        return {"kind": "raised", "line": str(error), "floating": False}
    return {"kind": "done"}


def _load(job: Mapping[str, Any]) -> Trainer:
    importlib.invalidate_caches()
    return load_trainer(job["reference"], job["path"], job["expected"])
