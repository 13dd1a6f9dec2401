"""Damaged kept files of every kind: what they held is made again, nothing else is ever taken, nothing is raised.

20,000 files go to those who read them, and two hundred damaged caches to whole runs, whose answer must not change.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
import torch

import trainers.checkpoints
import trainers.engines.pixel_choice
from epsearch import cli
from epsearch.preparation import arithmetic
from tests.epsearch.conftest import SMALL as STUDY
from tests.support import image_folders as made
from tests.support.killing import train_until_kept
from tests.support.learners import few
from tests.support.numeric_paths import MKL
from tests.support.toy_streams import toy
from trainers.notes import redirect_notes
from trainers.numeric_path import NumericPath
from trainers.persistence.array_store import arrays_file, load_arrays
from trainers.persistence.runs import Runs
from trainers.streams.hashes import PixelHashes
from trainers.streams.images import sources
from trainers.streams.images.cache import FACTS, MEAN, PIXELS, reopen
from trainers.streams.images.decode import HASHES, decode

pytestmark = pytest.mark.fuzz

SHARE = float(os.environ.get("EPSEARCH_FUZZ_SHARE", "1"))
SIZES = (12_000, 4_000, 1_500, 2_500, 100)
LEARNERS, DECODED, HASHED, PATHS, CACHES = (max(1, round(SHARE * count)) for count in SIZES)
NOT_AN_ANSWER = ("config", "report", "effort", "looks", "trust")  # where, how long, and at what time
EVERY = np.arange(18)  # positions of the images that tests are made with


def one_byte(whole, other, rng):
    at = rng.integers(len(whole))
    return whole[:at] + bytes([whole[at] ^ rng.integers(1, 256)]) + whole[at + 1 :]


def some_bytes(whole, other, rng):
    found = bytearray(whole)
    for at in rng.integers(len(whole), size=rng.integers(2, 20)):
        found[at] = rng.integers(256)
    return bytes(found)


def zeros(whole, other, rng):
    """A block that never reached the disk."""
    begin = rng.integers(len(whole))
    size = min(int(rng.integers(1, 512)), len(whole) - begin)
    return whole[:begin] + bytes(size) + whole[begin + size :]


def truncated(whole, other, rng):
    return whole[: rng.integers(len(whole))]


def extended(whole, other, rng):
    return whole + rng.bytes(rng.integers(1, 300))


def spliced(whole, other, rng):
    return whole[: rng.integers(len(whole))] + other[rng.integers(len(other)) :]


def emptied(whole, other, rng):
    return b""


def swapped(whole, other, rng):
    """Undamaged, but another file's."""
    return other


def headless(whole, other, rng):
    """As if it had never had a checksum."""
    return whole.partition(b"\n")[2]


# One changed byte is what disks and cables do; it is tried as often as all others together.
DAMAGES = (some_bytes, zeros, truncated, extended, spliced, emptied, swapped, headless)


def damaged(whole, other, rng):
    """A content that is not `whole`; other: that of another file."""
    while True:
        damage = one_byte if rng.random() < 0.5 else DAMAGES[rng.integers(len(DAMAGES))]
        if (found := damage(whole, other, rng)) != whole:
            return found


def report(figures, campaign, counts):
    """`wrong` counts what was taken and must not have been."""
    figures(campaign, **{"tried": counts["tried"], "made again": counts["refused"], "others taken": counts["wrong"]})
    assert counts["wrong"] == 0 and counts["refused"] == counts["tried"] == counts["told"]


@pytest.fixture
def learners(tmp_path, monkeypatch):
    """{file: (what reads it, what was written)} of what is left of runs that were killed."""
    monkeypatch.setattr(trainers.checkpoints, "AT_MOST_EVERY", 0.0)
    folder, saved, first, later = tmp_path / "learners", {}, trainers.checkpoints.save_arrays, Runs.save

    def copied(arrays):
        return {name: np.array(array) for name, array in arrays.items()}

    def save_first(place, content, arrays):
        first(place, content, arrays)
        saved[arrays_file(place, content)[0]] = (partial(load_arrays, place, content), copied(arrays))

    def save_later(self, own, task, arrays):
        later(self, own, task, arrays)
        (file,) = (one for one in self._files([own]) if one.task == task)
        saved[folder / self._path(file)] = (partial(self.at, own, task), copied(arrays))

    monkeypatch.setattr(trainers.checkpoints, "save_arrays", save_first)
    monkeypatch.setattr(Runs, "save", save_later)
    torch.set_num_threads(1)
    for method in ("soft_agem", "er"):
        chosen = [few(method, epsilon=0.0, lr=0.1), few(method, epsilon=0.3, lr=0.1 if method == "soft_agem" else 0.2)]
        train_until_kept(monkeypatch, 2, chosen, toy(range(4)), MKL, folder=folder)
    return {path: found for path, found in saved.items() if path.exists()}


def test_first_tasks_and_checkpoints(learners, figures):
    rng, counts, told = np.random.default_rng(0), Counter(), []
    files = list(learners)
    whole = [path.read_bytes() for path in files]
    assert len(files) == 5  # a first task that both methods share, and two checkpoints each
    with redirect_notes(told.append):
        for number in range(LEARNERS):
            one, other = number % len(files), int(rng.integers(len(files)))
            load, wanted = learners[files[one]]
            files[one].write_bytes(damaged(whole[one], whole[other], rng))
            found = load()
            counts["tried"] += 1
            counts["refused"] += found is None
            counts["wrong"] += found is not None and not same(found, wanted)
            files[one].write_bytes(whole[one])
    for load, wanted in learners.values():
        assert same(load(), wanted)  # which was there to be found all the time
    counts["told"] = len(told)
    report(figures, "first tasks and checkpoints", counts)


def same(found, wanted):
    return found.keys() == wanted.keys() and all(
        found[name].dtype == wanted[name].dtype and np.array_equal(found[name], wanted[name], equal_nan=True)
        for name in wanted
    )


@pytest.fixture
def decoded(tmp_path):
    """(what decodes the images, the folder that it fills, one of the same images in another size)."""
    source, cache = sources.open_folder(made.folders(tmp_path / "images")), tmp_path / "cache"
    for size in (8, 16):
        decode(source, size, cache).hashes.of(EVERY)
    (folder,), (other,) = ([path.parent for path in cache.glob(f"*-{size}-v*/{PIXELS}")] for size in (8, 16))
    return partial(decode, source, 8, cache), folder, other


def test_decoded_images(decoded, figures):
    again, folder, other = decoded
    wanted, rng, counts, told = np.array(again().pixels), np.random.default_rng(1), Counter(), []
    names = (PIXELS, MEAN, FACTS)
    whole = {name: (folder / name).read_bytes() for name in names}
    with redirect_notes(told.append):
        for number in range(DECODED):
            name = names[number % len(names)]
            (folder / name).write_bytes(damaged(whole[name], (other / name).read_bytes(), rng))
            counts["tried"] += 1
            if number % 20 == 0:
                counts["wrong"] += not np.array_equal(again().pixels, wanted)
                counts["refused"] += all((folder / name).read_bytes() == whole[name] for name in names)
            else:  # the same without decoding, which takes its time
                found = reopen(folder)
                counts["wrong"] += found is not None
                counts["refused"] += found is None
                counts["told"] += 1  # only who decodes has something to tell
                (folder / name).write_bytes(whole[name])
    counts["told"] += len(told)
    report(figures, "decoded images", counts)


def test_hashes_of_images(decoded, figures):
    again, folder, other = decoded
    wanted, rng, counts, told = again().hashes.of(EVERY), np.random.default_rng(4), Counter(), []
    file = folder / HASHES
    whole = file.read_bytes()
    pixels, fingerprint = np.array(again().pixels), again().fingerprint
    with redirect_notes(told.append):
        for _ in range(HASHED):
            file.write_bytes(damaged(whole, (other / HASHES).read_bytes(), rng))
            counts["tried"] += 1
            counts["wrong"] += not np.array_equal(PixelHashes(pixels, file, fingerprint).of(EVERY), wanted)
            counts["refused"] += file.read_bytes() == whole
    counts["told"] = len(told)
    report(figures, "hashes of images", counts)


@pytest.fixture
def measured(monkeypatch):
    """What is the fastest path, whoever measures, and however busy the machine is."""
    path = NumericPath(products="onednn", sparse=True)
    monkeypatch.setattr(trainers.engines.pixel_choice, "fastest_path", lambda *about: path)
    return path


def test_numeric_paths(tmp_path, monkeypatch, measured, figures):
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path))
    arithmetic.fastest_here(64, (256,), 0.5)
    (file,) = tmp_path.iterdir()
    whole, rng, counts, told = file.read_bytes(), np.random.default_rng(2), Counter(), []
    foreign = json.dumps({"any machine": "cuda-float32"}).encode()
    with redirect_notes(told.append):
        for _ in range(PATHS):
            content = damaged(whole, foreign, rng)
            file.write_bytes(content)
            counts["tried"] += 1
            counts["wrong"] += arithmetic.fastest_here(64, (256,), 0.5) != str(measured)
            counts["refused"] += file.read_bytes() == whole  # written again
    counts["told"] = len(told)
    report(figures, "numeric paths", counts)


def in_this_process(arguments, cache, monkeypatch, capsys):
    """(status, what is said, what is complained of) of one command with that cache folder."""
    monkeypatch.setenv("EPSEARCH_CACHE", str(cache))
    monkeypatch.setattr(sys, "argv", ["epsearch", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return stop.value.code, *capsys.readouterr()


def in_another(arguments, cache, monkeypatch, capsys):
    command, environment = [sys.executable, "-m", "epsearch", *arguments], os.environ | {"EPSEARCH_CACHE": str(cache)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout, done.stderr


class Call(NamedTuple):
    """How commands are run, how many at a time, without which options; how many files are in the cache then."""

    run: Callable[..., tuple[int, str, str]]
    together: int
    left_out: set[str]
    kept: int


# A process of its own would measure the fastest path anew at each damage, and may find another one on a busy machine.
CALLS = {
    "through main()": Call(in_this_process, 1, {"numeric_path"}, 3),
    "as processes": Call(in_another, os.cpu_count() or 1, set(), 2),
}


@pytest.mark.parametrize("how", CALLS)
def test_damaged_caches_change_no_answer(how, tmp_path, monkeypatch, measured, capsys, figures):
    """Every file in the cache is damaged (first tasks; paths where one is measured); each run has its own ledger."""
    call = CALLS[how]
    options = STUDY | {"seeds": 1, "repeats": 1, "points": 3, "tasks": 3, "dataset": "permuted_digits"}
    options = {name: value for name, value in options.items() if name not in call.left_out}
    given = [part for name, value in options.items() for part in ("--" + name.replace("_", "-"), str(value))]

    def run(name, cache):
        status, out, err = call.run(
            ["run", *given, "--json", "--out", str(tmp_path / name)], cache, monkeypatch, capsys
        )
        assert status == 0 and "Traceback" not in err, err
        answer = json.loads(out)
        return {name: value for name, value in answer.items() if name not in NOT_AN_ANSWER}

    whole, rng = tmp_path / "whole", np.random.default_rng(3)
    wanted = run("first", whole)
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
    assert len(files) == call.kept
    content = {path: (whole / path).read_bytes() for path in files}
    caches = [tmp_path / f"cache-{number}" for number in range(CACHES)]
    for cache in caches:
        shutil.copytree(whole, cache)
        for path in files:
            (cache / path).write_bytes(damaged(content[path], content[files[0]], rng))
    names = [f"run-{number}" for number in range(CACHES)]
    with ThreadPoolExecutor(call.together) as several:  # `main()` is at home in the main thread
        each = several.map if call.together > 1 else map
        answers = list(each(run, names, caches))
    assert all(answer == wanted for answer in answers)
    figures(f"damaged caches {how}", tried=CACHES, answers_changed=0)
