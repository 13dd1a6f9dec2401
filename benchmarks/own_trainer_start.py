"""How long members of a trainer of one's own take to start: copies of one import, and each with an import of its own.

    python benchmarks/own_trainer_start.py FOLDER [--turns 3]

Both ways take turns, each first in every other one. A linear network in plain torch on the digits: members one after
another, the study with them, and `epsearch check`. FOLDER: for ledgers and the cache. Writes
benchmarks/results/own_trainer_start.json.
"""

import argparse
import json
import os
import shutil
import sys
import time
from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import machine
import startup

WAYS = {"copied": "", "anew": "none"}  # and what the environment says
MEMBERS = 4
TRAINER = '''"""A linear network, in plain torch."""

import torch
from torch import nn


def train(values, stream, seed, report):
    network = nn.Linear(stream.shape[0], stream.outputs)
    optimizer = torch.optim.SGD(network.parameters(), lr=values["lr"])
    loss = nn.CrossEntropyLoss()

    def predict(inputs, task):
        with torch.no_grad():
            return network(torch.from_numpy(inputs)).argmax(1)

    for task in range(len(stream)):
        inputs, labels = map(torch.from_numpy, stream.train(task))
        for some in torch.arange(len(labels)).split(10):
            optimizer.zero_grad()
            loss(network(inputs[some]), labels[some]).backward()
            optimizer.step()
        report(task, predict)
'''
STUDY = "run --trainer linear:train --search lr=log:0.01..0.3 --runner local --device cpu --strategy grid --points 7"
STUDY += " --repeats 1 --seeds 2 --quiet"
CHECK = "check linear:train --search lr=log:0.01..0.3 --device cpu --quiet"


def child(folder: Path, way: str) -> None:
    """Trains members one after another, and prints what was observed of each, as JSON."""
    from epsearch import build
    from epsearch.events import ignore
    from epsearch.preparation.data import prepare
    from epsearch.study.kinds import Search
    from trainers.foreign.fork_servers import keep_servers
    from trainers.foreign.process import Observations
    from trainers.foreign.running import Request, Run, train
    from trainers.plugins.source import source_of

    sys.path.append(str(folder))
    os.chdir(folder)
    prepare(study := build(Search, {"tasks": 4}), ignore)
    stream, source = study.request("cv").open(), dict(source_of("linear").hashes)
    rows = []
    with keep_servers() if way == "copied" else nullcontext():
        for seed in range(MEMBERS):
            observations, begun = Observations(closely=False), time.perf_counter()
            result = train(
                Request("linear:train", folder, source), Run({"lr": 0.1}, seed, stream), watched=observations
            )
            rows.append(
                {
                    "whole": time.perf_counter() - begun,
                    "begun": observations.begun,
                    "first task": observations.tasks[0],
                    "imported": observations.imported,
                    "fingerprint": str(result.fingerprints[0]),
                }
            )
    print(json.dumps(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    if arguments.child:
        child(folder, arguments.child)
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "linear.py").write_text(TRAINER, encoding="utf-8")
    figures: dict[str, dict[str, list[Any]]] = {part: defaultdict(list) for part in ("members", "study", "check")}
    os.chdir(folder)
    for turn in range(-1, arguments.turns):  # the first one fills caches, and does not count
        for way in (*WAYS, *WAYS)[turn % 2 : turn % 2 + 2]:
            os.environ["EPSEARCH_COPIES"] = WAYS[way]
            cache = folder / f"cache-{way}"
            shutil.rmtree(cache, ignore_errors=True)
            out = ["--out", str(folder / f"{way}-{time.time_ns()}")]
            members = startup.shell([sys.executable, __file__, str(folder), "--child", way], cache)[1]
            seconds = {
                "members": json.loads(members.splitlines()[-1]),
                "study": startup.shell([sys.executable, "-m", "epsearch", *STUDY.split(), *out], cache)[0],
                "check": startup.shell([sys.executable, "-m", "epsearch", *CHECK.split()], cache)[0],
            }
            print(turn, way, seconds, os.getloadavg(), flush=True)
            for part, value in seconds.items():
                if turn >= 0:
                    figures[part][way].append(value)
    machine.save("own_trainer_start", {"turns": arguments.turns, "load": os.getloadavg(), **figures})


if __name__ == "__main__":
    main()
