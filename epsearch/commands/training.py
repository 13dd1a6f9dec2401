"""Commands with the options of a study: run, compare, memory, protocols, and their plans."""

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from epsearch.arguments import OUT, Commands, besides, parameter
from epsearch.commands import studies
from epsearch.commands.printing import listener, view
from epsearch.doors import door
from epsearch.doors.door import Door, Request
from epsearch.failures.errors import UsageError
from epsearch.study.description import Study
from epsearch.study.kinds import KINDS, Comparison, MemoryStudy, ProtocolStudy, Search
from epsearch.study.names import pack_file
from epsearch.study.parsers import words

TRAINING: dict[str, str] = {
    Search.kind: "Search ε, or another hyperparameter, evaluate the choice on the remaining tasks, write a report.",
    Comparison.kind: "Train every method on the evaluation tasks and set the paper's table beside the result.",
    ProtocolStudy.kind: "Compare search protocols: what each may see, what it chooses, and what that loses.",
    MemoryStudy.kind: "Train methods with an episodic memory at several sizes of it, beside the paper's memory tables.",
}


OF_PACKS = ("from_pack", "methods", "tune", "settings")
"""Options of a comparison that a pack has in place of the user."""
PackName = Annotated[
    str | None, typer.Argument(metavar="PACK|FILE", help="Name of a pack, see `epsearch reproduce`, or a YAML file.")
]


def _command(kind: type[Study], act: Callable[..., int]) -> Callable[..., int]:
    """Returns a command that takes a study: the options of its description, and the options of the output.

    act: called with a door, the request, quiet, as_json.
    """

    def command(**values: Any) -> int:
        options = {name: values.pop(name) for name in kind.options()}
        options["from_pack"] = _pack(options["from_pack"])
        how: dict[str, Any] = {name: bool(values.get(name)) for name in ("extend", "wait", "with_printed", "verbose")}
        how["metrics"] = words(values.get("metrics") or "")
        how["notify"] = values.get("notify")
        request = Request(kind, options, values["config"], live=values.get("live") or (), **how)
        if values["print_config"]:
            from epsearch.doors.ledger import study_of  # late, as in all commands: `--help` need not wait for it

            sys.stdout.write(study_of(request).to_yaml())
            return 0
        with door(values["server"], Path(options.get("out") or OUT.default), options.get("storage")) as side:
            return act(side, request, values["quiet"], values["as_json"])

    others = inspect.signature(besides).parameters.items()
    left_out = set() if kind.extendable else {"extend"}
    left_out |= set() if kind.has_latex else {"metrics"}
    left_out |= {"wait", "live", "with_printed", "metrics", "notify"} if act in (_plan, _plan_of_pack) else {"verbose"}
    parameters = [parameter for name, parameter in others if name not in left_out]
    signature = inspect.Signature([*map(parameter, kind.options().values()), *parameters])
    # Typer reads both: the order and the defaults from the one, the types from the other.
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    return command


def _pack(written: str | None) -> str | dict[str, Any] | None:
    """Returns the name of a pack, or what is in its file, which a service does not read."""
    if written is None or not (written.endswith((".yaml", ".yml")) or "/" in written):
        return written
    return pack_file(Path(written))


def reproduce(act: Callable[..., int]) -> Callable[..., int]:
    """Returns a command that compares the method of a pack, which is its argument."""
    command = _command(KINDS[Comparison.kind], act)
    signature = inspect.signature(command)
    options = signature.parameters
    parameters = [
        options["from_pack"].replace(annotation=PackName),
        *(option for option in options.values() if option.name not in OF_PACKS),
    ]

    def with_pack(**values: Any) -> int:
        return command(**values, **dict.fromkeys(OF_PACKS[1:]))

    with_pack.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_pack.__annotations__ = {option.name: option.annotation for option in parameters}
    return with_pack


def _unless_another(command: Callable[..., int]) -> Callable[..., int]:
    """Returns the command that runs if a group is called without a subcommand.

    With a subcommand, options must follow its name.
    """

    def own(context: typer.Context, **values: Any) -> int:
        if (name := context.invoked_subcommand) is None:
            return command(**values)
        for option in values:
            if (source := context.get_parameter_source(option)) is not None and source.name == "COMMANDLINE":
                flag, whole = option.replace("_", "-"), f"{context.command_path} {name}"
                raise UsageError(f"{flag} stands before {name}; give options behind `{whole}`")
        return 0

    first = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    signature = inspect.signature(command)
    own.__signature__ = signature.replace(parameters=[first, *signature.parameters.values()])  # type: ignore[attr-defined]
    own.__annotations__ = {"context": typer.Context, **command.__annotations__}
    return own


def _plan(side: Door, request: Request, quiet: bool, as_json: bool) -> int:
    """Prints the plan of a run."""
    with listener(quiet or as_json) as events:
        plan = side.plan(request, events)
    return view(plan, as_json)


def _plan_of_pack(side: Door, request: Request, quiet: bool, as_json: bool) -> int:
    """Prints the plan of a pack."""
    if request.options["from_pack"] is None:
        raise UsageError("plan reproduce needs a pack; `epsearch reproduce` lists them")
    return _plan(side, request, quiet, as_json)


def add_to(app: Commands) -> None:
    """Adds the commands; `plan` itself is for searches, its subcommands are for other kinds."""
    for kind, text in TRAINING.items():
        app.command(kind, help=text)(_command(KINDS[kind], studies.train))
    plans = Commands(help="Tell what a run with these options would take; nothing is trained.", add_completion=False)
    app.add_typer(plans, name="plan")
    plans.callback(invoke_without_command=True)(_unless_another(_command(Search, _plan)))
    for kind in (Comparison.kind, MemoryStudy.kind, ProtocolStudy.kind):
        text = f"Tell what `epsearch {kind}` with these options would take; nothing is trained."
        plans.command(kind, help=text)(_command(KINDS[kind], _plan))
    text = "Tell what `epsearch reproduce` with these options would take; nothing is trained."
    plans.command("reproduce", help=text)(reproduce(_plan_of_pack))
