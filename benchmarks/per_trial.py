"""One process per trial under Ray Tune, as anyone would write it, against `epsearch run` on the same members.

    uv run python benchmarks/per_trial.py [--turns 3] [--examples 2000] [--seeds 1] [--data-dir FOLDER]

11 values of ε with every seed on the three-task stream, two at a time. Whole runs from the shell's point of view, in
turns; and the training alone: the seconds spent in trials or cohorts, shared out over the slots. epsearch also tests
during training, evaluates the winner on a fourth task, certifies members and writes its report: its whole run includes
them, and only the search's steps are counted. Writes benchmarks/results/per_trial.json.
"""

import argparse
import csv
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import images as pictures
import machine
import turns

from epsearch.cache import cache_folder

POINTS, TASKS, BATCH, SLOTS = 11, 3, 10, 2


def trial(config: dict[str, Any]) -> None:
    """One member in a process of its own: imports, reads the images, trains, tests; notes its figures in a file."""
    import torch
    from plain import train_member

    torch.set_num_threads(1)
    data = pictures.real(Path(config["data_dir"]))
    started = time.perf_counter()
    accuracies = train_member(data, config["seed"], TASKS, config["examples"])
    seconds = time.perf_counter() - started
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    result = {"seconds": seconds, "megabytes": megabytes, "accuracy": statistics.mean(accuracies[-1])}
    name = f"{config['epsilon']:.3f}-{config['seed']}.json"
    (Path(config["folder"]) / name).write_text(json.dumps(result), encoding="utf-8")


def tune_all(arguments: argparse.Namespace, folder: str) -> None:
    """All trials under Ray Tune, one core each. A private, quiet Ray as epsearch starts it."""
    from epsearch.runners.on_ray.private import PrivateRay

    own = PrivateRay(SLOTS)
    own.start()
    own.join()
    from ray import tune

    space = {
        "epsilon": tune.grid_search([point / (POINTS - 1) for point in range(POINTS)]),
        "seed": tune.grid_search(list(range(arguments.seeds))),
        "examples": arguments.examples,
        "data_dir": str(arguments.data_dir.absolute()),
        "folder": folder,
    }
    run = tune.RunConfig(storage_path=folder, verbose=0)
    tune.Tuner(tune.with_resources(trial, {"cpu": 1}), param_space=space, run_config=run).fit()
    own.end()


def per_trial(arguments: argparse.Namespace, folder: Path) -> float:
    """Seconds spent training, over all trials."""
    again = [sys.executable, __file__, "--tune-into", str(folder), "--data-dir", str(arguments.data_dir)]
    _run([*again, "--examples", str(arguments.examples), "--seeds", str(arguments.seeds)])
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    if len(rows) != POINTS * arguments.seeds:
        raise SystemExit(f"{len(rows)} of {POINTS * arguments.seeds} trials finished")
    print(f"largest trial process {max(row['megabytes'] for row in rows):.0f} MB", file=sys.stderr)
    return float(sum(row["seconds"] for row in rows))


def engine(arguments: argparse.Namespace, folder: Path) -> float:
    """Seconds spent training the members of the search, over all cohorts."""
    options = {
        "dataset": "permuted_mnist",
        "data-dir": arguments.data_dir,
        "repeats": 1,
        "points": POINTS,
        "seeds": arguments.seeds,
        "cv-tasks": TASKS,
        "tasks": TASKS + 1,
        "examples-per-task": arguments.examples,
        "workers": SLOTS,
        "name": "bench",
        "out": folder,
    }
    words = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    _run([sys.executable, "-c", "from epsearch.cli import main; main()", "run", *words, "--quiet"])
    with open(folder / "bench" / "runs.csv", encoding="utf-8", newline="") as file:
        seconds = [float(row["seconds"]) for row in csv.DictReader(file) if row["phase"] == "cv"]
    if len(seconds) != POINTS * arguments.seeds:
        raise SystemExit(f"{len(seconds)} of {POINTS * arguments.seeds} members in the ledger")
    return sum(seconds)


def _run(command: list[str]) -> None:
    search_path = os.pathsep.join([str(Path(__file__).parent), str(turns.ROOT)])
    with tempfile.TemporaryDirectory() as cache:  # no first task that another run has kept
        environment = machine.surroundings(cache, PYTHONPATH=search_path)
        done = subprocess.run(command, stdout=subprocess.DEVNULL, env=environment)
    if done.returncode:
        raise SystemExit(f"exit status {done.returncode}: {' '.join(command)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--examples", type=int, default=2000, help="training images of a task")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--data-dir", type=Path, default=cache_folder())
    parser.add_argument("--tune-into", help=argparse.SUPPRESS)  # this file as the process that runs Ray Tune
    arguments = parser.parse_args()
    if arguments.tune_into:
        return tune_all(arguments, arguments.tune_into)
    pictures.real(arguments.data_dir)  # downloads MNIST where it is missing
    steps = POINTS * arguments.seeds * TASKS * -(-arguments.examples // BATCH)
    arms = {"one process per trial, Ray Tune, plain loop": per_trial, "epsearch run": engine}
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in arms}
    for turn in range(arguments.turns):
        for name, arm in list(arms.items())[:: 1 if turn % 2 == 0 else -1]:
            with tempfile.TemporaryDirectory() as folder:
                started = time.perf_counter()
                training = arm(arguments, Path(folder))
                seen[name].append((steps / (time.perf_counter() - started), steps / (training / SLOTS)))
                print(f"{name}: whole run {seen[name][-1][0]:.0f}, training {seen[name][-1][1]:.0f} member-steps/s")
    rows = [
        {"candidate": name, "whole_run": turns.summary([a for a, _ in rates])}
        | {"training_alone": turns.summary([b for _, b in rates])}
        for name, rates in seen.items()
    ]
    how = {"turns": arguments.turns, "examples": arguments.examples, "seeds": arguments.seeds, "slots": SLOTS}
    machine.save("per_trial", how | {"member_steps": steps, "rows": rows})


if __name__ == "__main__":
    main()
