"""Job scripts of Slurm: what they ask for, what they run, that a shell takes them, and what is refused in one line."""

import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from tests.support.limits import HANGS

JOB = ("slurm", "--time", "4h", "--cpus", "16")
STUDY = ("run", "--dataset", "permuted_digits", "--name", "mine")
OTHERS = ("--gpus", "2", "--memory", "64G", "--partition", "gpu", "--account", "lab", "--module", "cuda/12")
OTHERS += ("--setup", "ulimit -c 0", "--sbatch=--constraint=a100", "--container", "my image.sif", "--signal", "5m")

pytestmark = pytest.mark.skipif(os.name != "posix", reason="shell scripts")


def directives(script):
    """{option of sbatch: value}."""
    return dict(re.findall(r"^#SBATCH --([\w-]+)(?:=(.*))?$", script, re.M))


def driver(script):
    """The words of the command that trains."""
    (line,) = re.findall(r"^driver=\((.*)\)$", script, re.M)
    return shlex.split(line)


def tasks(script):
    """The words that each task of an array adds."""
    return [shlex.split(line) for line in re.findall(r"^\d+\) own=\((.*)\) ;;$", script, re.M)]


def options(words):
    """{option: value} of the last words of a command."""
    return dict(itertools.pairwise(words))


def test_one_node_trains_in_threads(epsearch):
    script = epsearch(*JOB, *STUDY).out
    asked, words = directives(script), driver(script)
    assert asked["time"] == "0-04:00:00" and asked["signal"] == "B:USR1@120" and asked["cpus-per-task"] == "16"
    assert asked["nodes"] == "1" and asked["job-name"] == "mine" and asked["output"] == "mine-%j.log"
    assert {"requeue", "open-mode"} <= asked.keys() and not {"gres", "partition", "account", "mem", "array"} & {*asked}
    assert words[: 1 + len(STUDY)] == ["epsearch", *STUDY]
    own = options(words)
    assert (own["--runner"], own["--workers"], own["--time-left"]) == ("local", "16", "slurm-120s")
    assert own["--checkpoints"] == "runs/checkpoints" and "--wait" in words and "ray start" not in script


@pytest.mark.slow
def test_what_the_command_says_itself_is_not_said_again(epsearch):
    given = ("--workers", "3", "--out", "results", "--time-left", "slurm-9m", "--runner", "tune", "--wait")
    words = driver(epsearch(*JOB, *STUDY, *given).out)
    assert words[1 + len(STUDY) :] == [*given, "--checkpoints", "results/checkpoints"]


@pytest.mark.slow
def test_what_a_file_says_is_not_said_again(epsearch, tmp_path):
    (tmp_path / "own.yaml").write_text("name: mine\nworkers: 3\ncheckpoints: s3://ours/runs\n")
    own = driver(epsearch(*JOB, "run", "--config", "own.yaml").out)
    assert not {"--workers", "--checkpoints"} & {*own} and options(own)["--runner"] == "local"
    (tmp_path / "whole.yaml").write_text(epsearch("run", "--print-config").out)
    usual = options(driver(epsearch(*JOB, "run", "--config", "whole.yaml").out)[2:])
    assert (usual["--workers"], usual["--runner"], usual["--time-left"]) == ("16", "local", "slurm-120s")
    whole, mine = tasks(epsearch(*JOB, "--array", "whole.yaml", "--array", "own.yaml", "run").out)
    assert options(whole) == usual | {"--config": "whole.yaml"} and usual["--checkpoints"] == "runs/checkpoints"
    assert not {"--workers", "--checkpoints"} & {*mine} and options(mine)["--time-left"] == "slurm-120s"


def test_lines_of_others_may_use_variables_that_are_not_set(epsearch):
    script = epsearch(*JOB, "--setup", 'echo "loaded${NOBODY_SETS_THIS}"', *STUDY).out
    before = script.partition("\ndriver=(")[0]
    done = subprocess.run(["bash", "-c", f"{before}\necho $-"], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "loaded" and "u" in done.stdout.split()[1]


def test_several_nodes_are_one_ray(epsearch):
    script = epsearch(*JOB, "--nodes", "3", *OTHERS, *STUDY).out
    asked, words = directives(script), driver(script)
    assert (asked["nodes"], asked["gres"], asked["mem"]) == ("3", "gpu:2", "64G")
    assert (asked["partition"], asked["account"], asked["constraint"]) == ("gpu", "lab", "a100")
    assert asked["signal"] == "B:USR1@300"
    assert words[:5] == ["apptainer", "exec", "--nv", "my image.sif", "epsearch"]
    assert options(words)["--workers"] == "6" and options(words)["--device"] == "cuda" and "--runner" not in words
    assert "\nmodule load cuda/12\nulimit -c 0\n" in script
    assert script.count("apptainer exec --nv 'my image.sif' ray start") == 2 and "export PATH" not in script
    assert "--cpus-per-task=16" in re.findall(r"srun .*", script)[0].split(), (
        "since Slurm 22.05 steps do not inherit it"
    )


def test_a_login_node_needs_no_gpu(epsearch):
    script = epsearch(*JOB, "--gpus", "1", *STUDY, "--precision", "tf32")
    assert options(driver(script.out))["--device"] == "cuda" and script.status == 0
    refused = epsearch(*JOB, *STUDY, "--precision", "tf32", "--device", "cpu")
    assert refused.status == 2 and "precision tf32 is arithmetic of NVIDIA GPUs" in refused.err


@pytest.mark.slow
def test_the_help_of_a_job_is_that_of_its_command(epsearch):
    answer = epsearch(*JOB, "run", "--help")
    assert answer.status == 0 and "--points" in answer.out and "#SBATCH" not in answer.out


@pytest.mark.parametrize("count", ["1", "2"])
def test_gpus_of_one_node_need_no_ray(epsearch, count):
    own = options(driver(epsearch(*JOB, "--gpus", count, *STUDY).out))
    assert (own["--runner"], own["--workers"], own["--device"]) == ("local", count, "cuda")


def test_an_array_has_a_task_for_each_file(epsearch, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name} c.yaml").write_text(f"name: {name}\npoints: 5\nout: of {name}\n")
    arrays = ("--array", "a c.yaml", "--array", "b c.yaml")
    refused = epsearch(*JOB, *arrays, "compare")
    assert refused.status == 2 and "describes a study of `epsearch run`" in refused.err
    script = epsearch(*JOB, *arrays, "run").out
    assert directives(script)["array"] == "0-1" and directives(script)["output"] == "epsearch-%A_%a.log"
    assert driver(script) == ["epsearch", "run", "${own[@]}"]
    one, other = map(options, tasks(script))
    assert (one["--config"], one["--checkpoints"]) == ("a c.yaml", "of a/checkpoints")
    assert (other["--config"], other["--checkpoints"]) == ("b c.yaml", "of b/checkpoints")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck")
@pytest.mark.parametrize("more", [(), ("--nodes", "3", *OTHERS), ("--array", "a.yaml")], ids=["one", "nodes", "array"])
def test_shellcheck_has_nothing_to_say(epsearch, tmp_path, more):
    (tmp_path / "a.yaml").write_text("name: a\n")
    script = epsearch(*JOB, *more, *(STUDY if "--array" not in more else ("run",))).out
    done = subprocess.run(["shellcheck", "--shell=bash", "-"], input=script, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--time", "4x"), "time must be a time > 0 and <= 366d like 90s, 30m or 2h, got '4x'"),
        (("--time", "2m"), "signal must be < time, which is 2m, got '2m'"),
        (("--time", "2d", "--signal", "1d"), "signal must be <= 65535s, as sbatch takes no more, got '1d'"),
        (("--account", "a;b"), "account must have letters, digits and _.,:@/+=- alone, got 'a;b'"),
        (("--sbatch", "x"), "sbatch must be an option of sbatch like --constraint=a100, got 'x'"),
        (("--setup", "a\nb"), "setup must be one line of the shell, got 'a\\nb'"),
        (("--container", " "), "container must name an image for Apptainer, got ' '"),
        (("--submit",), "submit needs sbatch, which is not on PATH; without --submit the script is printed"),
    ],
)
def test_a_wrong_job_is_one_line(epsearch, monkeypatch, words, line):
    monkeypatch.setenv("PATH", "/nowhere")
    answer = epsearch(*JOB, *words, *STUDY)
    assert (answer.status, answer.out, answer.err.strip()) == (2, "", f"epsearch: {line}")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (
            ("rum",),
            "no command that trains 'rum'; known: run, compare, protocols, memory, reproduce; did you mean",
        ),
        (("plan",), "no command that trains 'plan'"),
        (("run", "--poins", "5"), "No such option: --poins"),
        (("run", "--points", "0"), "points must be >= 1, got 0"),
        (("run", "--time-budget", "1h"), "time-budget must not be given: it would begin anew in every run of the job"),
        (("run", "--server", "http://host:1"), "server must not be given: the job trains by itself"),
        (("--array", "a.yaml", "run", "--config", "b.yaml"), "array must not be given with --config"),
        (("run", "--storage", "postgresql://me:secret@host/db"), "storage must not have a password in a script; "),
    ],
)
def test_a_wrong_study_is_one_line(epsearch, words, part):
    answer = epsearch(*JOB, *words)
    assert (answer.status, answer.out, len(answer.err.splitlines())) == (2, "", 1) and part in answer.err
    assert "secret" not in answer.err


@pytest.mark.parametrize(
    ("end", "restarts", "status", "requeued"),
    [
        ("exit 75", "3", 75, True),
        ("kill -USR1 $$", "", 138, True),
        ("kill -USR1 $$", "1", 1, False),
        ("exit 1", "1", 1, False),
        ("exit 0", "1", 0, False),
    ],
)
def test_which_ends_of_the_driver_put_the_job_back(epsearch, tmp_path, end, restarts, status, requeued):
    """A signal before the driver listens does so once: its time is too short where that happens again."""
    programs(tmp_path, epsearch=end, scontrol='echo "$*"')
    done = executed(epsearch(*JOB, "--setup", first_on_path(tmp_path), *STUDY).out, restarts)
    assert done.returncode == status and (done.stdout == "requeue 7\n") == requeued
    assert ("longer --time" in done.stderr) == (status == 1 and not end.startswith("exit"))


@pytest.mark.parametrize(("nodes", "place"), [("1", "setup"), ("2", "setup"), ("2", "srun")])
def test_a_signal_before_the_driver_begins_puts_the_job_back(epsearch, tmp_path, nodes, place):
    """While modules are loaded, or while Ray begins on the nodes."""
    signal = 'kill -USR1 "$JOB"'
    programs(tmp_path, epsearch="exec sleep 600", scontrol='[ "$1" = show ] || echo "$*"', srun=signal)
    lines = [first_on_path(tmp_path), "export JOB=$$", signal if place == "setup" else "true"]
    setup = [word for line in lines for word in ("--setup", line)]
    done = executed(epsearch(*JOB, "--nodes", nodes, *setup, *STUDY).out)
    assert (done.returncode, done.stdout) == (138, "requeue 7\n"), done.stderr


def programs(folder, **lines):
    """Writes programs of one line each."""
    for name, line in lines.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)


def first_on_path(folder):
    return f"export PATH={shlex.quote(str(folder))}:$PATH"


def executed(script, restarts=""):
    environment = {"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": restarts, "SLURMD_NODENAME": "n0"}
    environment |= {"SLURM_JOB_NUM_NODES": "2"}
    return subprocess.run(
        ["bash", "-c", script], env=os.environ | environment, capture_output=True, text=True, timeout=HANGS
    )


def sbatch(folder, monkeypatch, script):
    program = folder / "sbatch"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_a_script_is_submitted(epsearch, monkeypatch, tmp_path):
    sbatch(tmp_path, monkeypatch, "cat > received; echo Submitted batch job 7")
    answer = epsearch(*JOB, "--submit", *STUDY)
    assert answer.status == 0 and answer.out.startswith("Submitted batch job 7: mine; squeue --me shows its state, ")
    assert (tmp_path / "received").read_text() == epsearch(*JOB, *STUDY).out


@pytest.mark.slow
def test_a_script_is_printed_also_for_a_job_that_prints_json(monkeypatch, tmp_path):
    command = [sys.executable, "-m", "epsearch", *JOB, *STUDY, "--json"]
    script = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert driver(script)[1 : 2 + len(STUDY)] == [*STUDY, "--json"]


def test_what_sbatch_refuses_is_one_line(epsearch, monkeypatch, tmp_path):
    sbatch(tmp_path, monkeypatch, "echo 'sbatch: error: invalid partition' >&2; exit 1")
    answer = epsearch(*JOB, "--submit", *STUDY)
    assert (answer.status, answer.err) == (2, "epsearch: sbatch refuses the script: sbatch: error: invalid partition\n")
