"""Member-steps a second of both residual networks, members one after another and in one grouped convolution.

    uv run python benchmarks/image_steps.py [--members 3] [--turns 3] [--small]

One step is a reference batch and a mini-batch of made-up images, forward and backward, as A-GEM takes it; without a
reference batch as in the first task. On one thread, as a worker trains. All cases take turns; medians over the turns.
Writes benchmarks/results/image_steps.json; `gpu.py` measures the same on a GPU.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import machine
import torch

from trainers.cost.network_flops import work_of
from trainers.networks.base import Batch
from trainers.networks.heads import Linear
from trainers.networks.resnet import REDUCED, STANDARD, ResNet
from trainers.schedule import generator

BATCH = 10
CASES = (("reduced_resnet18", 32, (0, 256)), ("resnet18", 224, (0, 128)))
SMALL = (("reduced_resnet18", 32, (0, 16)), ("resnet18", 64, (0, 16)))


def network(name: str) -> ResNet:
    large = name == "resnet18"
    return ResNet(STANDARD if large else REDUCED, large, Linear(100, random_bias=not large))


def step_of(net: ResNet, size: int, reference: int, members: int, together: bool, device: str) -> Callable[[], None]:
    """A function that takes one step of every member, and waits until it is done."""
    row = torch.from_numpy(net.init(generator(0, "init"))).to(device)
    params, kept = row.repeat(members, 1), net.statistics(row.repeat(members, 1))
    parts = (BATCH, reference) if reference else (BATCH,)
    rows = sum(parts)
    x = torch.rand(1, rows, size, size, 3, device=device)
    labels = torch.arange(rows, device=device)[None] % 100
    weight = torch.cat([torch.full((part,), 1 / part) for part in parts])[None, :, None].to(device)
    turns = [slice(0, members)] if together else [slice(at, at + 1) for at in range(members)]

    def step() -> None:
        for turn in turns:
            some = {name: values[turn] for name, values in kept.items()}
            into = [torch.empty_like(params[turn]) for _ in parts]
            net.gradients(params[turn], some, Batch(x, labels, None), weight, parts, into)
        if device == "cuda":
            torch.cuda.synchronize()

    return step


def gflop(net: ResNet, size: int) -> float:
    """Of one image, forward and backward."""
    return work_of(net, size).training_flop(1, 0) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="batches and images of a moment, to try it out")
    parser.add_argument("--name", default=None, help="of the file in benchmarks/results")
    arguments = parser.parse_args()
    machine.save(arguments.name or "image_steps", measured("cpu", arguments.members, arguments.turns, arguments.small))


def measured(device: str, members: int, turns: int, small: bool) -> dict[str, Any]:
    """The figures, printed on the way."""
    torch.set_num_threads(1)
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    wanted = [
        (name, size, reference, together)
        for name, size, references in (SMALL if small else CASES)
        for reference in references
        for together in (False, True)
    ]
    with torch.no_grad():
        steps = {case: step_of(network(case[0]), case[1], case[2], members, case[3], device) for case in wanted}
        rows = [_row(case, seen, members) for case, seen in in_turns(steps, turns).items()]
    for row in rows:
        print({name: value for name, value in row.items() if name != "turns"})
    return {"members": members, "load_before": round(load, 2), "rows": rows}


def in_turns(
    steps: Mapping[Any, Callable[[], object]], turns: int, clock: Callable[[], float] = time.perf_counter
) -> dict[Any, list[float]]:
    """Seconds of every case at every turn, by a clock; the first turn, which sets up the libraries, does not count."""
    seen: dict[Any, list[float]] = {case: [] for case in steps}
    for _ in range(turns + 1):
        for case, step in steps.items():
            started = clock()
            step()
            seen[case].append(clock() - started)
    return {case: times[1:] for case, times in seen.items()}


def _row(case: tuple[str, int, int, bool], seconds: list[float], members: int) -> dict[str, Any]:
    name, size, reference, together = case
    rate = members / statistics.median(seconds)
    return {
        "network": name,
        "pixels": size,
        "reference_batch": reference,
        "members": "together" if together else "one after another",
        "member_steps_per_second": rate,
        "gflops": rate * (BATCH + reference) * gflop(network(name), size),
        "turns": [members / value for value in seconds],
    }


if __name__ == "__main__":
    main()
