"""How many images of CIFAR-100 epsearch takes for near-duplicates, and how many of them are no such thing.

    uv run python benchmarks/near_duplicates.py --data-dir DIR [--pictures FILE]

Test images are compared with training images, as a search does, and training images among each other, a half with the
other one. Where no image can be a copy, every alarm is false: there test images are compared with training images that
are mirrored. Copies that are the same bit for bit are not counted as alarms, as a search finds these by their bytes;
--pictures shows each alarm as a pair in a PNG file, to be judged. "hash alone" counts what would be taken for
near-duplicates by difference hashes alone. Then test images are changed a little: how many of them are found again.
Writes benchmarks/results/near_duplicates.json.
"""

import argparse
import io
import math
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import machine
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from trainers.streams import near_duplicates
from trainers.streams.hashes import PixelHashes, hash_rows
from trainers.streams.images.registry import ImageOptions, load
from trainers.streams.near_duplicates import Pictures, difference_hashes, near

SIDE = 32
ENLARGED = 3


def pictures(pixels: NDArray[np.uint8]) -> Pictures:
    return Pictures(pixels, PixelHashes(pixels, make=difference_hashes), np.arange(len(pixels)))


def compared(some: NDArray[np.uint8], others: NDArray[np.uint8]) -> tuple[dict[str, Any], NDArray[np.int64]]:
    """(what was found, places in `some` of the alarms)."""
    copies = np.isin(hash_rows(some), hash_rows(others))
    begun = time.perf_counter()
    alarms = near(pictures(some), pictures(others)) & ~copies
    seconds = time.perf_counter() - begun
    with patch.object(near_duplicates, "DIFFERENCE", math.inf):
        by_hash = near(pictures(some), pictures(others)) & ~copies
    counts = {"copies": int(copies.sum()), "alarms": int(alarms.sum()), "hash alone": int(by_hash.sum())}
    return {"images": len(some), "others": len(others), **counts, "seconds": seconds}, np.flatnonzero(alarms)


def pairs(some: NDArray[np.uint8], others: NDArray[np.uint8], alarms: NDArray[np.int64]) -> list[NDArray[np.uint8]]:
    """Each alarm beside the image that is most like it, of those within the same bits."""
    images = []
    for place in alarms:
        apart = np.abs(others.astype(np.int16) - some[place]).mean(axis=(1, 2, 3))
        images.append(np.concatenate([some[place], others[apart.argmin()]], axis=1))
    return images


def found_again(test: NDArray[np.uint8], other: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which test images are near-duplicates of what has become of them, if that is not the same."""
    return near(pictures(other), pictures(test)) & (test != other).any(axis=(1, 2, 3))


def compressed(image: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))


def changed(test: NDArray[np.uint8]) -> dict[str, NDArray[np.uint8]]:
    noise = np.random.default_rng(0).integers(-2, 3, test.shape)
    return {
        "JPEG of quality 95": np.stack([compressed(one, 95) for one in test]),
        "JPEG of quality 75": np.stack([compressed(one, 75) for one in test]),
        "noise of up to 2 levels": np.clip(test + noise, 0, 255).astype(np.uint8),
        "2 levels brighter": np.clip(test.astype(np.int16) + 2, 0, 255).astype(np.uint8),
        "moved by a pixel": np.roll(test, 1, axis=2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True, help="folder that holds cifar100.zip")
    parser.add_argument("--pictures", type=Path, help="PNG file of all alarms")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        images = load("split_cifar", arguments.data_dir, ImageOptions(5, SIDE, cache=Path(cache)))
        test, training = np.asarray(images.pixels[images.test]), np.asarray(images.pixels[~images.test])
    cases = {
        "test images with training images": (test, training),
        "a half of the training images with the other": (training[::2], training[1::2]),
        "test images with mirrored training images": (test, np.ascontiguousarray(training[:, :, ::-1])),
    }
    rows, strips = [], list[NDArray[np.uint8]]()
    for name, (some, others) in cases.items():
        counts, alarms = compared(some, others)
        rows.append({"compared": name, **counts})
        strips += pairs(some, others, alarms)
        print(rows[-1])
    if arguments.pictures and strips:
        Image.fromarray(np.concatenate(strips)).resize((2 * SIDE * ENLARGED, len(strips) * SIDE * ENLARGED)).save(
            arguments.pictures
        )
    again = {name: int(np.sum(found_again(test, other))) for name, other in changed(test).items()}
    print(again)
    machine.save("near_duplicates", {"rows": rows, "found again": again})


if __name__ == "__main__":
    main()
