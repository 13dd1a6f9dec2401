"""Stands in for candidate.py in checkouts older than `Learner`, whose own has no PROTOCOL yet: compare.py starts it.

    PYTHONPATH=CHECKOUT:CHECKOUT/benchmarks python -P candidate_before_learner.py engine --threads N

All that it imports is the checkout's own. A case means what it means in candidate.py of PROTOCOL = 1.
"""

import argparse
import math
import time
from functools import cache
from typing import Any

import candidate
import images
import numpy as np
import torch
import turns
from flops import SIZES
from trainers.streams.image_set import ImageSet
from trainers.streams.split import SplitStream

from trainers import Cohort, Member, TrainConfig
from trainers.numeric_path import NumericPath
from trainers.population import train_cohort
from trainers.streams.base import TaskStream
from trainers.streams.permuted import PermutedStream

FEWEST_OF_PICTURES = 10
IN_TURN = NumericPath(products="onednn")
VALUES = candidate.EPSILONS
STRENGTHS = np.geomspace(0.1, 10, VALUES)


def cohort(members: int, method: str) -> Cohort:
    if method == "soft_agem":
        return candidate.cohort(members)
    own = (Member(0.0, seed=i // VALUES, strength=float(STRENGTHS[i % VALUES])) for i in range(members))
    return Cohort(method, tuple(own))


@cache
def image_set(classes: int, train: int, pixels: int) -> ImageSet:
    side = math.isqrt(pixels)
    drawn = np.random.default_rng(0).integers(0, 256, (classes * (train + 1), side, side, 3), dtype=np.uint8)
    place = np.arange(len(drawn))
    return ImageSet(
        pixels=drawn,
        labels=place % classes,
        test=place < classes,
        unused=np.zeros(len(drawn), dtype=np.bool_),
        classes=tuple(map(str, range(classes))),
        attributes=None,
        mean=(drawn[classes:].mean(axis=0) / 255).astype(np.float32),
        fingerprint=f"made up of {drawn.shape}",
    )


class Engine(candidate.Engine):
    def __call__(
        self,
        members: int,
        steps: int,
        memory_batch: int | None = None,
        pixels: int = SIZES[0],
        method: str = "soft_agem",
        network: str = "mlp",
    ) -> dict[str, Any]:
        steps = max(steps // members, candidate.FEWEST if network == "mlp" else FEWEST_OF_PICTURES)
        memory = (
            {} if memory_batch is None else {"memory": min(candidate.PER_CLASS, steps), "memory_batch": memory_batch}
        )
        chosen, config = cohort(members, method), TrainConfig(network=network, **memory)
        seconds = []
        for tasks in (1, 2) if (kind := (method, network, pixels)) in self._warm else (2, 1, 2):
            stream = self._stream(network, pixels, steps, range(tasks))
            started = time.perf_counter()
            train_cohort(chosen, stream, config, None if network == "mlp" else IN_TURN)
            seconds.append(time.perf_counter() - started)
        self._warm.add(kind)
        return {"steps": members * steps, "seconds": seconds[-1] - seconds[-2]}

    def _stream(self, network: str, pixels: int, steps: int, tasks: range) -> TaskStream:
        if network == "mlp":
            return PermutedStream(self._images(pixels, steps), tasks)
        return SplitStream(image_set(2 * images.CLASSES, steps, pixels), tasks, images.CLASSES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("engine",))
    parser.add_argument("--threads", type=int, required=True)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    turns.serve(Engine(None))


if __name__ == "__main__":
    main()
