"""Sets of small made-up images, in memory, for tests of what is cut from them."""

import hashlib

import numpy as np

from trainers.streams.images.image_set import ImageSet

NOISE = 60  # levels of a byte that differ between images of a class


def made_images(classes=8, train=6, test=3, size=8, attributes=None, signal=True, unused=0):
    """ImageSet of classes "class 0"…, every image another one, the same at every call.

    train, test, unused: images of each class, one number or a list. attributes: how many, None for no table. signal:
    every class has a colour pattern of its own, easy to learn; without, pixels are noise.
    """
    counts = np.array([np.broadcast_to(part, classes) for part in (train, test, unused)])
    rng = np.random.default_rng(0)
    parts = [(label, part) for part in range(3) for label in range(classes) for _ in range(counts[part, label])]
    labels, part = rng.permutation(parts).T
    pixels = rng.integers(0, NOISE if signal else 256, (len(labels), size, size, 3), dtype=np.uint8)
    if signal:
        pixels += rng.integers(0, 256 - NOISE, (classes, size, size, 3), dtype=np.uint8)[labels]
    return ImageSet(
        pixels=pixels,
        labels=labels.astype(np.int64),
        test=part == 1,
        unused=part == 2,
        classes=tuple(f"class {label}" for label in range(classes)),
        attributes=None if attributes is None else unit_rows(rng.normal(size=(classes, attributes))),
        mean=(pixels[part == 0].mean(axis=0) / 255).astype(np.float32),
        fingerprint=hashlib.sha256(pixels.tobytes() + labels.tobytes()).hexdigest()[:16],
    )


def unit_rows(table):
    return (table / np.linalg.norm(table, axis=1, keepdims=True)).astype(np.float32)
