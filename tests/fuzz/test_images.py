"""Damaged archives, images, tables, pickles and IDX files: read as they are, refused in one line, or called corrupt."""

import gzip
import os
import shutil
import struct
import warnings
import zipfile
from collections import Counter

import numpy as np
import pytest

from tests.support import image_folders as made
from trainers.streams.base import DataError
from trainers.streams.images import sources
from trainers.streams.images.decoder import FORMATS, chunks, decode_image
from trainers.streams.images.sources.base import DamagedImage
from trainers.streams.pixels import mnist

pytestmark = pytest.mark.fuzz

SHARE = float(os.environ.get("EPSEARCH_FUZZ_SHARE", "1"))
FILES = max(20, int(2000 * SHARE))  # damaged files of each kind


def damaged(content, rng):
    """A few bytes changed, a piece cut out or doubled, or numbers that say the most there can be."""
    found = bytearray(content)
    at = int(rng.integers(len(found)))
    kind = rng.integers(5)
    if kind < 2:
        for place in rng.integers(len(found), size=rng.integers(1, 8)):
            found[place] = rng.integers(256)
    elif kind == 2:
        del found[at : at + int(rng.integers(1, 40))]
    elif kind == 3:
        found[at:at] = found[at : at + int(rng.integers(1, 40))]
    else:
        found[at : at + 4] = rng.choice([b"\xff" * 4, b"\x7f" + b"\xff" * 3, bytes(4), b"\xff\xff\xff\x7f"])
    return bytes(found)


def outcome(read):
    """What became of a damaged file; anything but an image or a line fails the campaign."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's, of what it reads all the same
            return read()
    except DataError as error:
        assert str(error) and "\n" not in str(error)
        return "refused"


def corrupt_images(source):
    """Decodes all and says whether some could not be."""
    return "corrupt" if any(not all(chunk.readable) for chunk in chunks(source, 8, workers=1)) else "read"


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives(tmp_path, figures, compression):
    path = tmp_path / "whole.zip"
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, pixels in made.class_files(2, 1, side=4).items():
            archive.writestr(name, made.encoded(pixels, "BMP"))
    rng, counts, content = np.random.default_rng(compression), Counter(), path.read_bytes()
    for _ in range(FILES // 4):
        made.put(tmp_path / "a.zip", damaged(content, rng))
        counts[outcome(lambda: corrupt_images(sources.open_folder(tmp_path / "a.zip")))] += 1
    figures(f"zip files, compression {compression}", tried=FILES // 4, **counts)


@pytest.mark.parametrize("kind", FORMATS)
def test_images(figures, kind):
    def read():
        try:
            assert decode_image(damaged(content, rng), 8)[0].shape == (8, 8, 3)
        except DamagedImage as error:
            assert "\n" not in str(error)
            return "corrupt"
        return "read"

    rng, counts, content = (
        np.random.default_rng(FORMATS.index(kind)),
        Counter(),
        made.encoded(made.noise(0, 9, 7), kind),
    )
    for _ in range(FILES):
        counts[outcome(read)] += 1
    figures(f"images, {kind}", tried=FILES, **counts)


@pytest.mark.parametrize("name", ["train", "meta"])
def test_pickles(tmp_path, figures, name):
    made.cifar(tmp_path, made.class_files(2, 1))
    path = tmp_path / "cifar-100-python" / name
    rng, counts, content = np.random.default_rng(0), Counter(), path.read_bytes()
    structure = content.replace(bytes(made.noise(0)), b"")  # where it is little but opcodes, damage hits them
    for _ in range(FILES):
        made.put(path, damaged(content if rng.random() < 0.3 else structure, rng))
        counts[outcome(lambda: corrupt_images(sources.find("split_cifar", tmp_path)))] += 1
    figures(f"CIFAR-100's pickles, {name}", tried=FILES, **counts)


def test_tables(tmp_path, figures):
    whole, root = made.cub(tmp_path / "whole", 2, 1), tmp_path / "data" / "cub"
    shutil.copytree(whole, root)
    names = [path.relative_to(whole) for path in whole.rglob("*.txt")]
    rng, counts = np.random.default_rng(0), Counter()
    for _ in range(FILES):
        name = names[rng.integers(len(names))]
        made.put(root / name, damaged((whole / name).read_bytes(), rng))
        counts[outcome(lambda: "read" if sources.find("split_cub_je", tmp_path / "data") else "")] += 1
        shutil.copyfile(whole / name, root / name)
    figures("tables of CUB", tried=FILES, **counts)


def test_idx_files(tmp_path, figures):
    def write(name, dimensions, shape, rows):
        raw = struct.pack(f">4B{len(shape)}i", 0, 0, 8, dimensions, *shape) + bytes(rows)
        made.put(tmp_path / f"{name}.gz", gzip.compress(raw))
        return raw

    whole = {}
    for part in mnist.NAMES.values():
        whole[f"{part}-images-idx3-ubyte"] = write(f"{part}-images-idx3-ubyte", 3, (4, 3, 2), 24)
        whole[f"{part}-labels-idx1-ubyte"] = write(f"{part}-labels-idx1-ubyte", 1, (4,), 4)
    rng, counts = np.random.default_rng(0), Counter()

    def read():
        mnist.load.cache_clear()
        return "read" if mnist.load(tmp_path) else ""

    for _ in range(FILES):
        name = list(whole)[rng.integers(len(whole))]
        inside = rng.random() < 0.5
        content = gzip.compress(damaged(whole[name], rng)) if inside else damaged(gzip.compress(whole[name]), rng)
        made.put(tmp_path / f"{name}.gz", content)
        counts[outcome(read)] += 1
        made.put(tmp_path / f"{name}.gz", gzip.compress(whole[name]))
    mnist.load.cache_clear()
    figures("IDX files", tried=FILES, **counts)
