"""Every figure of a GPU: the whole search of the paper, one evaluation, one member alone, the GPU's ceilings, steps of
residual networks, agreement with float64 and the self-check of every method. Needs torch, NumPy and this checkout only.

    python benchmarks/gpu.py [--precision tf32] [--data-dir FOLDER] [--examples 60000]

Without --data-dir it trains on made-up images that are zero as often as MNIST's. `--device cpu --examples 100
--rounds 1 --seeds 1 --points 3` tries the script without a GPU. Writes benchmarks/results/gpu.json and
image_steps_gpu.json.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import agreement
import image_steps
import images as pictures
import machine
import numpy as np
import torch
from flops import BATCH, SIZES, cohort_flop, step_bytes, step_flop
from plain import PlainLoop

from trainers import Cohort, Learner
from trainers.engines.self_check import check
from trainers.methods import METHODS
from trainers.numeric_path import PRECISIONS, NumericPath
from trainers.population import MLP, Training, train_cohort
from trainers.streams.base import Images
from trainers.streams.permuted import PermutedStream

CV, EVALUATION = range(3), range(3, 20)
BEST = 0.07185  # the paper's ε for Permuted MNIST


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def timed(run: Callable[[], Any], device: str) -> float:
    wait(device)
    started = time.perf_counter()
    run()
    wait(device)
    return time.perf_counter() - started


def ceilings(device: str) -> dict[str, float]:
    """FLOP/s of matrix products and bytes/s of a copy: medians of five timings after one that warms up."""
    size, members, floats = (8192, 55, 2**28) if device == "cuda" else (512, 2, 2**20)
    rows = BATCH + 256
    a, b = torch.rand(size, size, device=device), torch.rand(size, size, device=device)
    x = torch.rand(members, rows, SIZES[0], device=device)
    w = torch.rand(members, SIZES[0], SIZES[1], device=device)
    source = torch.rand(floats, device=device)
    target = torch.empty_like(source)

    def rate(work: float, run: Callable[[], Any]) -> float:
        run()
        return work / statistics.median(timed(run, device) for _ in range(5))

    rates = {}
    for name, allowed in (("float32", False), ("tf32", True)):
        if allowed and device != "cuda":
            continue
        torch.backends.cuda.matmul.allow_tf32 = allowed
        rates[f"{name}_product_flops"] = rate(2 * size**3, lambda: torch.mm(a, b))
        rates[f"{name}_step_product_flops"] = rate(2 * members * rows * SIZES[0] * SIZES[1], lambda: torch.bmm(x, w))
    torch.backends.cuda.matmul.allow_tf32 = False
    return rates | {"copy_bytes": rate(2 * 4 * floats, lambda: target.copy_(source))}


def cohort_of(values: Iterable[float], seeds: int = 1) -> Cohort:
    chosen = [float(value) for value in values]
    return Cohort(tuple(Learner.of("soft_agem", seed, epsilon=value) for seed in range(seeds) for value in chosen))


def trained(what: str, cohort: Cohort, tasks: range, rounds: int, data: Images, arguments: Any) -> dict[str, Any]:
    """Seconds of `rounds` cohorts one after the other, and what that means in steps, FLOP/s and bytes/s."""
    stream = PermutedStream(data, tasks, arguments.examples)
    training = Training(stream, MLP, arguments.path)
    seconds = sum(timed(lambda: train_cohort(cohort, training), arguments.device) for _ in range(rounds))
    steps, count = -(-arguments.examples // BATCH), len(cohort.learners)
    seeds = len({one.seed for one in cohort.learners})
    flop = rounds * cohort_flop(cohort, stream)
    moved = (
        rounds * steps * (count * (len(tasks) - 1) * step_bytes(SIZES, BATCH + 256) + seeds * step_bytes(SIZES, BATCH))
    )
    row = {
        "what": what,
        "members": rounds * count,
        "tasks": len(tasks),
        "steps": steps,
        "seconds": seconds,
        "member_steps_per_s": rounds * count * len(tasks) * steps / seconds,
        "flops": flop / seconds,
        "bytes_per_s": moved / seconds,
    }
    rate = f"{row['member_steps_per_s']:.0f} member-steps/s, {flop / seconds / 1e12:.3f} TFLOP/s"
    print(f"{what}: {seconds:.1f} s, {rate}")
    return row


def self_checks(data: Images, path: NumericPath) -> dict[str, dict[str, Any]]:
    """What the self-check finds of every method, and how long it takes; raises where it fails."""
    stream, results = PermutedStream(data, CV), dict[str, dict[str, Any]]()
    for name, method in METHODS.items():
        learner = Learner.of(name, 0, **({"strength": 0.1} if "strength" in method.names else {}))
        started = time.perf_counter()  # it ends with values on the host, so nothing is left to wait for
        checked = check(learner, stream, MLP, path)
        results[name] = vars(checked) | {"seconds": time.perf_counter() - started}
        print(f"self-check of {name}: {checked}, {results[name]['seconds']:.1f} s")
    return results


def plain_alone(data: Images, arguments: Any) -> dict[str, Any]:
    """A slice of the plain loop's steps with full reference batches, and the search at that rate: an extrapolation."""
    loop = PlainLoop(SIZES[0], SIZES[1:-1], SIZES[-1], 0.1, arguments.device)
    x = torch.tensor(data.train.inputs[:2000], dtype=torch.float32, device=arguments.device) / data.largest
    y = torch.tensor(data.train.labels[:2000], device=arguments.device)

    def steps(count: int) -> None:
        for step in range(count):
            now, drawn = slice(BATCH * step % 1000, BATCH * step % 1000 + BATCH), torch.randperm(300)[:256].to(x.device)
            loop.step(x[now], y[now], (x[drawn], y[drawn]))

    steps(10)
    rate = arguments.slice / timed(lambda: steps(arguments.slice), arguments.device)
    wanted = arguments.rounds * arguments.points * arguments.seeds * len(CV) * -(-arguments.examples // BATCH)
    print(f"plain loop, one member: {rate:.0f} steps/s")
    return {"steps": arguments.slice, "steps_per_s": rate, "search_extrapolated_s": wanted / rate}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--precision", choices=PRECISIONS, default="float32")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--examples", type=int, default=60_000, help="training images of a task")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--points", type=int, default=11)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--slice", type=int, default=2000, help="steps of the plain loop that are measured")
    parser.add_argument("--out", type=Path, help="write the figures here instead")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("torch sees no GPU here; `--device cpu` tries the script without one")
    arguments.path = NumericPath("cuda", arguments.precision) if arguments.device == "cuda" else None
    torch.set_num_threads(1)  # the processor only hands out small work
    examples, test = max(arguments.examples, 2000), 10_000 if arguments.examples == 60_000 else 500
    data = pictures.real(arguments.data_dir) if arguments.data_dir else pictures.made_up(examples, test)
    alone, evaluated = cohort_of((BEST,)), cohort_of((BEST, 0.0))
    timed(lambda: train_cohort(alone, Training(PermutedStream(data, CV, 100), MLP, arguments.path)), arguments.device)
    figures: dict[str, Any] = {
        "device": arguments.device,
        "precision": arguments.precision,
        "data": "MNIST" if arguments.data_dir else "made-up images",
    }
    figures |= {"step_flop": step_flop(SIZES, BATCH + 256), "step_bytes": step_bytes(SIZES, BATCH + 256)}
    figures["ceilings"] = ceilings(arguments.device)
    figures["self_checks"] = self_checks(data, arguments.path or NumericPath())
    figures["agreement"] = agreement.worst(arguments.path)
    print(f"against float64: {figures['agreement']}")
    figures["plain"] = plain_alone(data, arguments)
    grid = cohort_of(np.linspace(0, 1, arguments.points), arguments.seeds)
    figures["runs"] = [
        trained("one member alone", alone, CV, 1, data, arguments),
        trained("evaluation, ε = 0.07185 and A-GEM", evaluated, EVALUATION, 1, data, arguments),
        trained("whole search", grid, CV, arguments.rounds, data, arguments),
    ]
    machine.save("gpu", figures, arguments.out)
    if arguments.device == "cuda":
        machine.save("image_steps_gpu", image_steps.measured("cuda", members=3, turns=3, small=False))


if __name__ == "__main__":
    main()
