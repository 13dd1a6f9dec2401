"""A search of Avalanche's A-GEM with real MNIST, raced; and the same once more, killed in the middle and gone on with.

    python benchmarks/avalanche_resumed.py --data-dir FOLDER --folder FOLDER

in an environment that has `epsearch[avalanche]`; writes benchmarks/results/avalanche_resumed.json. Both ledgers lie in
the folder; what is there already is not trained again. The import of Avalanche takes most of the time.
"""

import argparse
import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import machine

STUDY = (
    "run --dataset permuted_mnist --tasks 6 --cv-tasks 3 --examples-per-task 2000 --seeds 5 --trainer avalanche:AGEM "
    "--search lr=log:0.01..0.3 --set patterns_per_exp=250 sample_size=256 train_mb_size=10 --against lr=0.03 "
    "--strategy grid --points 3 --repeats 1 --race --certify 1 "
    "--runner local --device cpu --workers 2"
)
KILLED_AFTER = 7  # members that are stored
SAME = ("key", "phase", "method", "seed", "accuracies", "initial", "within", "status", "fingerprint", "content")
OF_METRICS = ("A_T_mean", "A_T_std", "F_T_mean", "F_T_std")


def command(name: str, arguments: argparse.Namespace) -> list[str]:
    places = [
        "--data-dir",
        arguments.data_dir,
        "--out",
        arguments.folder / name,
        "--storage",
        f"sqlite:///{ledger(name, arguments)}",
    ]
    return [sys.executable, "-m", "epsearch", *STUDY.split(), "--name", name, *map(str, places), "--json"]


def ledger(name: str, arguments: argparse.Namespace) -> Path:
    return Path(arguments.folder / f"{name}.sqlite")


def rows(path: Path, query: str) -> list[Any]:
    """Of a ledger; none of one that is not there yet."""
    try:
        with sqlite3.connect(path) as connection:
            return connection.execute(query).fetchall()
    except sqlite3.OperationalError:
        return []


def answer(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    done = subprocess.run(
        command(name, arguments), env=surroundings(arguments), check=True, stdout=subprocess.PIPE, text=True
    )
    return dict(json.loads(done.stdout))


def killed(arguments: argparse.Namespace) -> None:
    """Starts a run, and kills it and all of its group with SIGKILL."""
    path = ledger("killed", arguments)
    started = subprocess.Popen(
        command("killed", arguments), env=surroundings(arguments), stdout=subprocess.DEVNULL, start_new_session=True
    )
    while not rows(path, f"select 1 from epsearch_runs limit 1 offset {KILLED_AFTER - 1}"):
        if started.poll() is not None:
            raise SystemExit("the run ended before it could be killed")
        time.sleep(0.5)
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()


def surroundings(arguments: argparse.Namespace) -> dict[str, str]:
    return machine.surroundings(arguments.folder / "cache")


def records(name: str, arguments: argparse.Namespace) -> set[tuple[Any, ...]]:
    """What was found of each member, without when and how long."""
    return set(rows(ledger(name, arguments), f"select {', '.join(SAME)} from epsearch_runs"))


def tables(result: dict[str, Any]) -> dict[str, Any]:
    """What was answered, without when somebody looked at it."""
    parts = {name: result[name] for name in ("rounds", "evaluation", "answer", "race")}
    return parts | {"trust": {name: one for name, one in result["trust"].items() if name != "looks"}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=lambda text: Path(text).absolute(), required=True)
    parser.add_argument("--folder", type=lambda text: Path(text).absolute(), required=True)
    arguments = parser.parse_args()
    arguments.folder.mkdir(exist_ok=True)
    whole = answer("whole", arguments)
    if not rows(ledger("killed", arguments), "select 1 from epsearch_runs limit 1"):
        killed(arguments)
    resumed = answer("killed", arguments)
    before = rows(ledger("killed", arguments), "select data from epsearch_events where kind = 'records' and token = 1")
    members, again = records("whole", arguments), records("killed", arguments)
    (certificate,) = csv.DictReader((arguments.folder / "whole" / "whole" / "certificates.csv").open(encoding="utf-8"))
    machine.save(
        "avalanche_resumed",
        {
            "rows": {one["row"]: {name: one[name] for name in OF_METRICS} for one in whole["evaluation"]},
            "race": whole["race"],
            "members": len(members),
            "stored before the kill": sum(json.loads(data)["stored"] for (data,) in before),
            "same members, accuracies and fingerprints": members == again,
            "same tables": tables(whole) == tables(resumed),
            "difference of the certificate": float(certificate["accuracy_difference"]),
            "study": STUDY,
            "avalanche-lib": version("avalanche-lib"),
        },
    )


if __name__ == "__main__":
    main()
