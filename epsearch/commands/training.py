"""Commands that take a study by its options: those that train it, and those that say what that would take."""

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from epsearch.arguments import Commands, besides, parameter
from epsearch.commands import remote, studies
from epsearch.commands.printing import listener, printed
from epsearch.failures.errors import UsageError
from epsearch.study.description import Study
from epsearch.study.kinds import KINDS, Comparison, MemoryStudy, Search
from epsearch.terminal.consoles import facts

TRAINING: dict[str, str] = {
    Search.kind: "Search ε, or another hyperparameter, evaluate the choice on the remaining tasks, write a report.",
    Comparison.kind: "Train every method on the evaluation tasks and set the paper's table beside the result.",
    MemoryStudy.kind: "Train methods with an episodic memory at several sizes of it, beside the paper's memory tables.",
}


def _command(kind: type[Study], act: Callable[..., None]) -> Callable[..., int]:
    """A command that takes a study: the options of its description, and those of the output.

    kind: whose options it has; act: called with the study that they make, and with the options that remain.
    """

    def command(**values: Any) -> int:
        from epsearch.preparation.build import build  # late, as in all commands: `--help` need not wait for it

        given, config = {name: values.pop(name) for name in kind.options()}, values.pop("config")
        if (server := values.pop("server", None)) is not None and not values["print_config"]:
            extend, quiet, as_json = bool(values.get("extend")), values["quiet"], values["as_json"]
            remote.only_here({**given, **values})
            if act is _plan:
                return remote.plan(server, kind.kind, given, config, extend, as_json)
            return remote.run(server, kind.kind, given, config, extend, quiet, as_json)
        study = _grown(given, config) if values.get("extend") else build(kind, given, config)
        if values.pop("print_config"):
            sys.stdout.write(study.to_yaml())
        else:
            act(study, **values)
        return 0

    others = inspect.signature(besides).parameters.items()
    taken = {*inspect.signature(act).parameters, "config", "print_config"} - ({"extend"} if not kind.grows else set())
    taken |= {"server"}
    own = [one for name, one in others if name in taken]
    signature = inspect.Signature([*map(parameter, kind.options().values()), *own])
    # Typer reads both: the order and the defaults from the one, the types from the other.
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    return command


def _unless_another(command: Callable[..., int]) -> Callable[..., int]:
    """What a group of commands does where none of them is named; with one, options must stand behind its name."""

    def own(context: typer.Context, **values: Any) -> int:
        if (name := context.invoked_subcommand) is None:
            return command(**values)
        for one in values:
            if (source := context.get_parameter_source(one)) is not None and source.name == "COMMANDLINE":
                flag, whole = one.replace("_", "-"), f"{context.command_path} {name}"
                raise UsageError(f"{flag} stands before {name}; give options behind `{whole}`")
        return 0

    first = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    signature = inspect.signature(command)
    own.__signature__ = signature.replace(parameters=[first, *signature.parameters.values()])  # type: ignore[attr-defined]
    own.__annotations__ = {"context": typer.Context, **command.__annotations__}
    return own


def _grown(given: dict[str, Any], config: Path | None) -> Study:
    """The stored search that is to be extended, with other options."""
    from epsearch import api

    return api.grown(given, config)


def _plan(study: Study, quiet: bool, as_json: bool, extend: bool = False) -> None:
    """Prints what a run would take."""
    from epsearch.session import session
    from epsearch.session.plan_text import in_words

    with listener(quiet or as_json) as events:
        ahead = session.plan(study, events, extend)
    words = in_words(ahead)
    printed(facts(words), ahead.as_json() | {"words": words}, as_json)


def add_to(app: Commands) -> None:
    """Adds all of them; what a search would take is `plan` itself, of others it is below that."""
    for kind, told in TRAINING.items():
        app.command(kind, help=told)(_command(KINDS[kind], studies.train))
    plans = Commands(help="Tell what a run with these options would take; nothing is trained.", add_completion=False)
    app.add_typer(plans, name="plan")
    plans.callback(invoke_without_command=True)(_unless_another(_command(Search, _plan)))
    for kind in (Comparison.kind, MemoryStudy.kind):
        told = f"Tell what `epsearch {kind}` with these options would take; nothing is trained."
        plans.command(kind, help=told)(_command(KINDS[kind], _plan))
