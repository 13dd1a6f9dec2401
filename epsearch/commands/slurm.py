"""The command `slurm`: a job script for a study."""

import contextlib
import io
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.markup import escape
from typer.main import get_command

from epsearch.arguments import Commands, join_arguments
from epsearch.commands.printing import err, write
from epsearch.failures.errors import UsageError
from epsearch.ledger.location import VARIABLE
from epsearch.machine import suppose_gpu
from epsearch.study.description import Study
from epsearch.study.file import read
from results.ledger.url import LedgerUrl
from trainers.spelling import unknown

Time = Annotated[str, typer.Option(metavar="TIME", help="Limit of the time of the job, like 4h; it may be requeued.")]
Cpus = Annotated[int, typer.Option(min=1, help="Cores of each node.")]
Nodes = Annotated[int, typer.Option(min=1, help="Nodes: one trains in threads, several as a Ray cluster.")]
Gpus = Annotated[int, typer.Option(min=0, help="GPUs of each node.")]
Memory = Annotated[str | None, typer.Option(metavar="SIZE", help="Memory of each node, like 16G.")]
Partition = Annotated[str | None, typer.Option(metavar="NAME", help="Partition.")]
Account = Annotated[str | None, typer.Option(metavar="NAME", help="Account.")]
Signal = Annotated[str, typer.Option(metavar="TIME", help="Time before the limit at which the training ends.")]
Sbatch = Annotated[
    list[str] | None, typer.Option(metavar="OPTION", help="Further option of sbatch, as --constraint=a100; repeatable.")
]
Module = Annotated[list[str] | None, typer.Option(metavar="NAME", help="Module to load; repeatable.")]
Setup = Annotated[list[str] | None, typer.Option(metavar="LINE", help="Line of the shell before; repeatable.")]
Container = Annotated[
    str | None, typer.Option(metavar="IMAGE", help="Image for Apptainer, in which everything runs, on every node.")
]
Array = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="YAML file of a study, for an array of jobs with a task each; repeatable."),
]
Words = Annotated[
    list[str],
    typer.Argument(metavar="COMMAND…", help=escape("run, compare, … with their options, as without Slurm.")),
]
USUAL = {name: option.default for name, option in Study.options().items()}


def add_to(app: Commands) -> None:
    """Adds the command."""
    # Its own options end where the other command begins.
    app.command("slurm", context_settings={"allow_interspersed_args": False})(slurm)


def slurm(  # noqa: PLR0913  an option each
    context: typer.Context,
    words: Words,
    time: Time,
    cpus: Cpus,
    nodes: Nodes = 1,
    gpus: Gpus = 0,
    memory: Memory = None,
    partition: Partition = None,
    account: Account = None,
    signal: Signal = "2m",
    sbatch: Sbatch = None,
    module: Module = None,
    setup: Setup = None,
    container: Container = None,
    array: Array = None,
    submit: Annotated[
        bool, typer.Option("--submit", help="Hand the script to sbatch, in place of printing it.")
    ] = False,
) -> None:
    """Print a job script of Slurm that trains a study, requeued as often as it needs; nothing is trained here."""
    from epsearch.slurm import script

    job = script.SlurmJob(
        time, cpus, nodes, gpus, memory, partition, account, signal, sbatch or (), module or (), setup or (), container
    )
    if array and any(word.partition("=")[0] == "--config" for word in words):
        raise UsageError("array must not be given with --config: each of its files is one")
    files: list[Path | None] = [*array] if array else [None]
    checked = [_check(context, words, file, gpus > 0) for file in files]
    text = script.make_script(job, words, checked, array or ())
    if not submit:
        write(text)  # --json may be an option of the job's command
        return
    names = ", ".join(options["name"] for options, _ in checked)
    write(f"{script.submit(text)}: {names}; squeue --me shows its state, epsearch watch NAME its progress\n")
    if array and any(options["storage"].startswith("sqlite") for options, _ in checked):
        err.print(f"{len(array)} jobs share an SQLite file: on a network file system set {VARIABLE} to PostgreSQL")


def _check(context: typer.Context, words: list[str], file: Path | None, gpu: bool) -> tuple[dict[str, Any], set[str]]:
    """Returns the study of a command, by names of options, and the names of those that the command or its file has.

    file: its --config; None for that of the command; gpu: True where it trains on a GPU, which this machine may lack.
    Raises UsageError, and the errors of the command line.
    """
    name, *arguments = words
    group: Any = get_command(context.find_root().obj)
    commands = {
        name: command for name, command in group.commands.items() if {"print_config", "wait"} <= {*_names(command)}
    }
    if name not in commands:
        raise UsageError(unknown("command that trains", name, commands))
    arguments = join_arguments([*arguments, *([] if file is None else ["--config", str(file)])])
    if any("://" in argument and LedgerUrl(argument).secrets for argument in arguments):
        raise UsageError(f"storage must not have a password in a script; {VARIABLE} hands it to the job")
    described = io.StringIO()
    command, checked = commands[name], [*arguments, *(["--device", "auto"] if gpu else []), "--print-config"]
    try:
        with (
            contextlib.redirect_stdout(described),
            suppose_gpu() if gpu else contextlib.nullcontext(),
            command.make_context(name, checked, parent=context) as inner,
        ):
            command.invoke(inner)
            sources = {option: inner.get_parameter_source(option) for option in _names(command)}
            in_file = {} if (path := inner.params["config"]) is None else read(path)
    except typer.Exit:  # of --help
        write(described.getvalue())
        raise
    names = {option for option, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    if "server" in names:
        raise UsageError("server must not be given: the job trains by itself")
    study = yaml.safe_load(described.getvalue())
    if study["time_budget"] is not None:
        raise UsageError("time-budget must not be given: it would begin anew in every run of the job")
    # A file of --print-config has all options, most of them as they usually are.
    names |= {option for option in in_file if option in USUAL and study.get(option) != USUAL[option]}
    return study, names - (set() if any(argument.startswith("--device") for argument in arguments) else {"device"})


def _names(command: Any) -> list[str]:
    return [parameter.name for parameter in getattr(command, "params", [])]
