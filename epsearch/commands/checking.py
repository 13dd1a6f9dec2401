"""The command `check`, for plug-in trainers."""

import inspect
import sys
from dataclasses import replace
from typing import Annotated, Any

import typer

from epsearch.arguments import Commands, Json, parameter
from epsearch.commands.printing import listener, print_result
from epsearch.study.kinds import Search

Trainer = Annotated[str, typer.Argument(help="Your own training code, module:attribute.", metavar="TRAINER")]
# Options of `run`: values of the trainer, stream, limits.
OPTIONS = (
    *("search", "set", "dataset", "data_dir", "scenario", "tasks", "cv_tasks", "classes_per_task", "image_size"),
    *("examples_per_task", "skip_corrupt", "seeds", "device", "time_limit", "memory_limit"),
)
OWN_HELP: dict[str, dict[str, Any]] = {
    "search": {
        "help": "Values to vary, like lr=log:0.001..0.1 memory=10,50.",
        "usual": "what is declared",
    },
    "set": {"help": "Values of other settings, like memory=50 optimizer=adam.", "usual": "as the trainer declares"},
}
KEYWORD = inspect.Parameter.KEYWORD_ONLY


def check(trainer: str, quiet: bool, as_json: bool, **options: Any) -> int:
    """Train a trainer of your own a few times, to see whether it can be trusted; exit status 1 if not."""
    from epsearch.checking.check import check
    from epsearch.checking.check_cache import Finding
    from epsearch.failures import stopping
    from epsearch.terminal import check as output

    def print_row(finding: Finding) -> None:
        if not as_json:  # which is one object at the end
            print_result(output.row_of(finding), None, as_json)
            sys.stdout.flush()

    stopping.TRAINS.set()  # an interrupted check goes on
    with listener(quiet or as_json) as events:
        report = check(options | {"trainer": trainer}, events, print_row)
    print_result(output.verdict_of(report), output.as_json(report), as_json)
    return int(not report.trusted)


def add_to(app: Commands) -> None:
    """Adds the command."""
    quiet = Annotated[bool, typer.Option("--quiet", help="No progress, only the table.")]
    options = Search.options()
    parameters = [
        inspect.Parameter("trainer", KEYWORD, annotation=Trainer),
        *(parameter(replace(options[name], **OWN_HELP.get(name, {}))) for name in OPTIONS),
        inspect.Parameter("quiet", KEYWORD, default=False, annotation=quiet),
        inspect.Parameter("as_json", KEYWORD, default=False, annotation=Json),
    ]

    def command(**values: Any) -> int:
        return check(**values)

    command.__doc__ = check.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    app.command("check")(command)
