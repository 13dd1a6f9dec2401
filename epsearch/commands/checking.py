"""The command on somebody else's trainer before anything is searched: check."""

import inspect
from dataclasses import replace
from typing import Annotated, Any

import typer

from epsearch.arguments import Commands, Json, parameter
from epsearch.commands.printing import listener, printed
from epsearch.study.kinds import Search

Trainer = Annotated[str, typer.Argument(help="Your own training code, module:attribute.", metavar="TRAINER")]
# Of `run`: the trainer's values, the stream, what a training may take.
TAKEN = (
    *("search", "set", "dataset", "data_dir", "tasks", "cv_tasks", "classes_per_task", "image_size"),
    *("examples_per_task", "skip_corrupt", "seeds", "device", "time_limit", "memory_limit"),
)
OWN_HELP: dict[str, dict[str, Any]] = {
    "search": {
        "help": "What is varied, as a search would, like lr=log:0.001..0.1 memory=10,50.",
        "usual": "what is declared",
    },
    "set": {"help": "Values of all else, like memory=50 optimizer=adam.", "usual": "as the trainer declares"},
}
KEYWORD = inspect.Parameter.KEYWORD_ONLY


def check(trainer: str, quiet: bool, as_json: bool, **given: Any) -> int:
    """Train a trainer of your own a few times: what it can be trusted with; exit status 1 where something cannot be."""
    from epsearch.checking.check import check
    from epsearch.terminal import checked

    with listener(quiet or as_json) as events:
        found = check(given | {"trainer": trainer}, events)
    printed(checked.table_of(found), checked.as_json(found), as_json)
    return int(not found.trusted)


def add_to(app: Commands) -> None:
    """Adds the command."""
    quiet = Annotated[bool, typer.Option("--quiet", help="No progress, only the table.")]
    known = Search.options()
    own = [
        inspect.Parameter("trainer", KEYWORD, annotation=Trainer),
        *(parameter(replace(known[name], **OWN_HELP.get(name, {}))) for name in TAKEN),
        inspect.Parameter("quiet", KEYWORD, default=False, annotation=quiet),
        inspect.Parameter("as_json", KEYWORD, default=False, annotation=Json),
    ]

    def command(**values: Any) -> int:
        return check(**values)

    command.__doc__ = check.__doc__
    command.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in own}
    app.command("check")(command)
