"""Images decoded a second, with one and two threads, and the time that opening the result takes.

    uv run python benchmarks/decoding.py [--images 10000] [--jpegs 600] [--turns 3]

CIFAR-100's PNGs come from the zip file under --data-dir; the JPEGs are made up, as large as CUB's (about 500 × 375
pixels), and become 224 × 224. All cases take turns; medians over the turns. Writes benchmarks/results/decoding.json.
"""

import argparse
import io
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import machine
import numpy as np
from PIL import Image

from epsearch.cache import cache_folder
from trainers.streams.images import sources
from trainers.streams.images.decode import prepare
from trainers.streams.images.decoder import useful_workers
from trainers.streams.images.sources import Source

WORKERS = (1, 2)


def jpegs(root: Path, count: int) -> Source:
    """Class folders of smooth noise, whose files are about as large as photographs are."""
    rng = np.random.default_rng(0)
    for at in range(count):
        small = Image.fromarray(rng.integers(0, 256, (94, 125, 3), dtype=np.uint8))
        file = io.BytesIO()
        small.resize((500, 375), Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
        path = root / ("test" if at % 2 else "train") / f"{at // 2 % 2}" / f"{at:05}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.getvalue())
    return sources.open_folder(root)


def first(source: Source, count: int) -> Source:
    """Every n-th image, so that the whole zip file need not be decoded at every turn."""
    step = max(1, len(source.names) // count)
    return replace(
        source,
        names=source.names[::step],
        labels=source.labels[::step],
        parts=source.parts[::step],
        key=f"one-in-{step}",
    )


def rate(source: Source, size: int, workers: int) -> tuple[float, float]:
    """(images a second of time, images a second of processor time), from the files to the finished cache."""
    with tempfile.TemporaryDirectory() as cache:
        started, worked = time.perf_counter(), time.process_time()
        prepare(source, size, Path(cache), workers=workers)
        count = len(source.names)
        return count / (time.perf_counter() - started), count / (time.process_time() - worked)


def seconds(action: Callable[[], Any]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def opening(data_dir: Path, source: Source, count: int) -> dict[str, float]:
    """Seconds of listing the zip file, and of mapping a cache as it was written."""
    with tempfile.TemporaryDirectory() as cache:
        prepare(source, 32, Path(cache))
        mapped = [seconds(lambda: prepare(source, 32, Path(cache)).pixels()) for _ in range(count)]
    listed = [seconds(lambda: sources.find("split_cifar", data_dir)) for _ in range(count)]
    return {"list_60000_files": statistics.median(listed), "open_cache": statistics.median(mapped)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=10_000, help="CIFAR-100's images of each turn")
    parser.add_argument("--jpegs", type=int, default=600)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--data-dir", type=Path, default=cache_folder(), help="folder that holds cifar100.zip")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]  # of other processes: threads cannot help where the cores are taken
    with tempfile.TemporaryDirectory() as folder:
        cifar = first(sources.find("split_cifar", arguments.data_dir), arguments.images)
        cases = {"CIFAR-100 PNG, 32": (cifar, 32), "JPEG 500×375, 224": (jpegs(Path(folder), arguments.jpegs), 224)}
        rates: dict[tuple[str, int], list[tuple[float, float]]] = {
            (name, count): [] for name in cases for count in WORKERS
        }
        for _ in range(arguments.turns):
            for name, count in rates:
                rates[name, count].append(rate(*cases[name], count))
        chosen = {name: useful_workers(source) for name, (source, _) in cases.items()}
        opened = opening(arguments.data_dir, cifar, arguments.turns)
    rows = [
        {
            "images": name,
            "threads": count,
            "images_per_second": statistics.median(elapsed for elapsed, _ in seen),
            "images_per_processor_second": statistics.median(worked for _, worked in seen),
            "turns": [elapsed for elapsed, _ in seen],
        }
        for (name, count), seen in rates.items()
    ]
    for row in rows:
        print(f"{row['images']:20} {row['threads']} threads {row['images_per_second']:8,.0f} images/s")
    print({name: f"{value:.4f} s" for name, value in opened.items()}, chosen)
    others = round(load / (os.cpu_count() or 1), 2)
    print(f"load before, per core: {others}")
    figures = {
        "load_before": others,
        "pillow": version("pillow"),
        "rows": rows,
        "threads_chosen": chosen,
        "seconds": opened,
    }
    machine.save("decoding", figures)


if __name__ == "__main__":
    main()
