"""Makes a job script of Slurm for a study, from the template beside this file."""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from epsearch.failures.errors import UsageError, brief
from epsearch.study.parsers import SLURM, duration

SAFE = re.compile(r"[A-Za-z0-9_.,:@/+=-]+")
UNSAFE = re.compile(r"[^A-Za-z0-9_.=+-]+")  # in names of jobs and files
NAMES = {"memory": "mem"}  # of options, as sbatch has them
PATIENCE = 120  # seconds for which the workers wait for Ray's head
END_PATIENCE = 5  # seconds for Ray's end, and as many for the removal of its folders: the job ends soon
BEGINNING = 60  # seconds in which a driver certainly listens to signals
SUBMIT_SECONDS = 60.0  # of sbatch
LONGEST_LEAD = 65535  # seconds between the signal and the end


Checked = tuple[Mapping[str, Any], Collection[str]]
"""A study, of which its `name` and the folder `out` of its results count here, and names of the options that it has."""


class SlurmJob(NamedTuple):
    """A request for a job, by the options of `epsearch slurm`."""

    time: str
    """Limit of its time, like 4h."""
    cpus: int
    """Cores of each node."""
    nodes: int = 1
    """Nodes; one needs no Ray."""
    gpus: int = 0
    """GPUs of each node."""
    memory: str | None = None
    """Memory of each node, as Slurm takes it."""
    partition: str | None = None
    account: str | None = None
    signal: str = "2m"
    """Time before the end at which the training ends."""
    sbatch: Sequence[str] = ()
    """Further options of sbatch."""
    module: Sequence[str] = ()
    """Modules to load."""
    setup: Sequence[str] = ()
    """Lines of the shell before the training."""
    container: str | None = None
    """An image for Apptainer, in which the programs run."""


def make_script(job: SlurmJob, command: Sequence[str], studies: Sequence[Checked], files: Sequence[Path] = ()) -> str:
    """Returns a job script that trains a study, and puts itself back into the queue until it is finished.

    command: the words behind `epsearch`; files: of options, one for each task of an array of jobs; studies: one, or one
    for each file. Raises UsageError.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # late: no other command needs it

    limit, lead = int(duration(job.time, "time")), int(duration(job.signal, "signal"))
    if lead >= limit:
        raise UsageError(f"signal must be < time, which is {job.time}, got {job.signal!r}")
    if lead > LONGEST_LEAD:
        raise UsageError(f"signal must be <= {LONGEST_LEAD}s, as sbatch takes no more, got {job.signal!r}")
    name, container = "epsearch" if files else UNSAFE.sub("-", studies[0][0]["name"]), _container(job)
    arguments = [_options(job, lead, *study) for study in studies]
    tasks = [shlex.join(["--config", str(file), *words]) for file, words in zip(files, arguments, strict=False)]
    line = shlex.join([*container, "epsearch", *command, *([] if files else arguments[0])])
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return templates.get_template("job.sh.jinja").render(
        name=name,
        job=job,
        time=clock(limit),
        lead=lead,
        log=f"{name}-%{'A_%a' if files else 'j'}.log",
        directives=_directives(job, len(files)),
        setup=_setup(job),
        tasks=tasks,
        command=line + (' "${own[@]}"' if files else ""),
        ray_start=shlex.join([*container, "ray", "start"]),
        patience=PATIENCE,
        end_patience=END_PATIENCE,
        beginning=BEGINNING,
    )


def submit(script: str) -> str:
    """Hands a script to sbatch; returns what it prints. Raises UsageError without sbatch, or where that refuses."""
    if (program := shutil.which("sbatch")) is None:
        raise UsageError("submit needs sbatch, which is not on PATH; without --submit the script is printed")
    try:
        done = subprocess.run([program], input=script, capture_output=True, text=True, timeout=SUBMIT_SECONDS)
    except subprocess.TimeoutExpired:
        raise UsageError(f"sbatch did not answer within {SUBMIT_SECONDS:.0f} seconds; see squeue --me") from None
    if done.returncode:
        raise UsageError(f"sbatch refuses the script: {' '.join(done.stderr.split())}")
    return done.stdout.strip()


def clock(seconds: int) -> str:
    """Returns a time as Slurm takes it.

    >>> clock(93_784)
    '1-02:03:04'
    """
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days}-{hour:02}:{minute:02}:{second:02}"


def _options(job: SlurmJob, lead: int, study: Mapping[str, Any], named: Collection[str]) -> list[str]:
    """Returns the options of a study that the job decides, but for those that the command names."""
    options = {"wait": [], "time_left": [f"{SLURM}-{lead}s"], "checkpoints": [f"{study['out']}/checkpoints"]}
    if job.gpus:
        options["device"] = ["cuda"]
    if job.nodes > 1:
        options["workers"] = [str(job.nodes * (job.gpus or job.cpus))]
    else:
        options["runner"] = ["local"]
        options["workers"] = [str(job.gpus or job.cpus)]
    added = {name: words for name, words in options.items() if name not in named}
    return [word for name, words in added.items() for word in ("--" + name.replace("_", "-"), *words)]


def _directives(job: SlurmJob, tasks: int) -> list[str]:
    """Returns the options of sbatch that not every job has. Raises UsageError."""
    resources = {"memory": job.memory, "partition": job.partition, "account": job.account}
    for name, value in resources.items():
        if value is not None and not SAFE.fullmatch(value):
            raise UsageError(f"{name} must have letters, digits and _.,:@/+=- alone, got {brief(value)}")
    for option in job.sbatch:
        if not option.startswith("--") or not option.isprintable():
            raise UsageError(f"sbatch must be an option of sbatch like --constraint=a100, got {brief(option)}")
    lines = [f"--{NAMES.get(name, name)}={value}" for name, value in resources.items() if value is not None]
    lines += [f"--gres=gpu:{job.gpus}"] if job.gpus else []
    lines += [f"--array=0-{tasks - 1}"] if tasks else []
    return [*lines, *job.sbatch]


def _setup(job: SlurmJob) -> list[str]:
    """Returns the lines of the shell before the training. Raises UsageError."""
    for line in job.setup:
        if not line.isprintable():
            raise UsageError(f"setup must be one line of the shell, got {brief(line)}")
    here = [] if job.container else [f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"']
    return [*here, *(f"module load {shlex.quote(name)}" for name in job.module), *job.setup]


def _container(job: SlurmJob) -> list[str]:
    """Returns the words before a program that runs in the container; none without one."""
    if job.container is None:
        return []
    if not job.container.strip():
        raise UsageError(f"container must name an image for Apptainer, got {job.container!r}")
    return ["apptainer", "exec", *(["--nv"] if job.gpus else []), job.container]
