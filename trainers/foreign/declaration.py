"""The declaration of a plug-in trainer: parameters, requirements, source files."""

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from trainers.foreign.fork_servers import server_for
from trainers.foreign.messages import Malformed, plain
from trainers.foreign.process import Limits, Process, environment
from trainers.hyperparameters import Hyperparameter, Value
from trainers.plugins.calls import ForeignError

SECONDS = 120.0  # for an import: large libraries on a cold disk take most of it


@dataclass(frozen=True)
class Declaration:
    """The declaration of a trainer; that of a plain function has the defaults and its source."""

    parameters: tuple[Hyperparameter, ...] | None = None
    """What can be searched; None where any name may be."""
    baseline: Mapping[str, Value] | None = None
    """Values of some of them that others are compared with; None without."""
    version: str = ""
    """The trainer's own."""
    deterministic: bool = True
    """Whether the same seed gives the same result."""
    resumable: bool = False
    """Whether it has `save` and `load`."""
    requires: Mapping[str, str] = ()  # type: ignore[assignment]
    """Distributions whose versions belong to its results, and which are installed."""
    source: Mapping[str, str] = ()  # type: ignore[assignment]
    """Hashes of the files that it is made of, as `trainers.plugins.source` names them."""

    def facts(self) -> dict[str, Any]:
        """Returns the fields as JSON-able values; `Declaration.of` is the inverse."""
        return asdict(self)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "Declaration":
        """Returns the declaration of which `facts` were taken. Raises TypeError or KeyError for anything else."""
        values = {field.name: facts[field.name] for field in fields(cls)}
        if values["parameters"] is not None:
            values["parameters"] = tuple(Hyperparameter(**_tuples(parameter)) for parameter in values["parameters"])
        return cls(**values)


def _tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields with tuples in place of the lists that JSON makes of them."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


# Libraries whose names stand for trainers of ours that use them: `avalanche:AGEM` is attribute AGEM of this module.
PROVIDED = {"avalanche": "trainers.foreign.libraries.avalanche"}


def reference_of(text: str) -> tuple[str, str]:
    """Returns (module, attribute) that implements a trainer. Raises ForeignError where it is none.

    >>> reference_of("package.mine:train")
    ('package.mine', 'train')
    """
    module, _, name = text.partition(":")
    if not name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise ForeignError(f"trainer {plain(text)!r} must be module:attribute, as my_package.mine:train")
    return PROVIDED.get(module, module), name


def read_declaration(
    reference: str, beside: Path, expected: Mapping[str, str] | None = None, seconds: float = SECONDS
) -> Declaration:
    """Returns the declaration of the trainer module:attribute, which is imported in a process of its own, never here.

    The module is looked up as Python does, and in the folder `beside`. expected: hashes of the source that it must
    have, None for whatever is there. Raises ForeignError, in one line, where the module cannot be imported, has no such
    attribute or one that cannot be called with (values, stream, seed, report), or where what it declares is wrong.

    While servers are kept, the process is a copy of one that learners on a processor will be copies of, too.
    """
    reference_of(reference)
    what = f"trainer {reference!r}"
    request, variables = job("declare", reference, beside, expected), environment("cpu", 1)
    server = None if expected is None else server_for(request, "cpu", variables)[0]
    with Process(what, variables, Limits(seconds), server=server) as process:
        process.send(request)
        message = process.receive()
        try:
            if message.kind == "refused":
                raise ForeignError(plain(message.text("line")))
            if message.kind == "raised":
                raise process.failure(f"failed {process.where} {plain(message.text('line'))}", output=False)
            return Declaration.of(message.header["declaration"])
        except (Malformed, TypeError, KeyError) as error:
            raise process.malformed_error(Malformed("a declaration was to come")) from error


def job(kind: str, reference: str, beside: Path, expected: Mapping[str, str] | None) -> dict[str, Any]:
    """Returns the first message to the process, whatever its job is."""
    path = [*(os.path.abspath(folder) for folder in sys.path), str(beside.absolute())]
    return {"kind": kind, "reference": reference, "path": path, "expected": expected}
