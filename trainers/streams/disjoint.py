"""Proof that the tasks which choose a hyperparameter and those which evaluate it show nothing in common.

Everything that all tasks show is hashed (`hashes`), once for each side, and the two sets are compared: permutations of
a permuted stream, whose images are the same in every task, and images of any other.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, cast

import numpy as np

from trainers.streams.base import ImageStream, TaskStream
from trainers.streams.hashes import Hashes, PixelHashes, hash_rows

PERMUTATIONS, IMAGES, EXAMPLES = "permutations", "images", "examples"
ROWS = 4096  # examples that are made at a time

Reader = Callable[[int, int], Hashes]
"""reader(seed, task): hashes of what the task shows."""


class QuicklyHashed(Protocol):
    """What a stream may have besides `TaskStream`, where it knows a quicker way than to hash every example.

    content: PERMUTATIONS, where a task has one hash, or IMAGES. A stream of permutations may also have `unchanged`, the
    hash [1] of a task that shows the images as they are.
    """

    content: str

    def contents(self, seed: int, task: int) -> Hashes:
        """Of all that the task shows, training and test; two tasks that share no value share no example."""
        ...


class Side(NamedTuple):
    """One of the two streams, with all its seeds."""

    tasks: int
    """Of the stream."""
    seeds: int
    """Its number of seeds."""
    hashes: int
    """How many different ones there are."""
    repeated: int
    """Tasks whose permutation another one of the side, of any seed, has too; 0 where tasks have images of their own."""
    unchanged: int
    """Tasks whose permutation leaves every image as it is; 0 where tasks have images of their own."""
    digest: str
    """SHA-256 of all hashes in ascending order, hexadecimal."""


class Overlap(NamedTuple):
    """What a comparison of the two streams found."""

    what: str
    """PERMUTATIONS, IMAGES or EXAMPLES: what was hashed."""
    cv: Side
    """The stream that chooses."""
    ev: Side
    """The stream that evaluates."""
    shared: int
    """Hashes that occur on both sides."""

    @property
    def disjoint(self) -> bool:
        """Whether the two sides share nothing."""
        return self.shared == 0

    @property
    def sound(self) -> bool:
        """Disjoint, and all tasks of permutations have one of their own that changes the images."""
        return self.disjoint and not any(side.repeated or side.unchanged for side in (self.cv, self.ev))

    @property
    def sentence(self) -> str:
        """The proof, or what is wrong, for people."""
        cv, ev, verdict = self.cv, self.ev, "none shared"
        if not self.disjoint:
            occur = "occurs" if self.shared == 1 else "occur"
            verdict = f"{_count(self.shared, self.what)} of the former {occur} in the latter too"
        return (
            f"{_count(cv.tasks, 'tasks')} × {_count(cv.seeds, 'seeds')} of the cross-validation stream and "
            f"{ev.tasks} × {ev.seeds} of the evaluation stream: {cv.hashes:,} and {ev.hashes:,} different "
            f"{self.what}, {verdict}{_flaws(cv, ev)} (SHA-256 {cv.digest[:16]}… and {ev.digest[:16]}…)"
        )


def overlap(cv: TaskStream, ev: TaskStream, cv_seeds: Sequence[int], ev_seeds: Sequence[int]) -> Overlap:
    """Compares all that the cross-validation stream shows for any of its seeds with all of the evaluation stream.

    Every example is hashed as the stream gives it, unless the stream is `QuicklyHashed`. Pixels are taken in parts, and
    an image that occurs in several tasks or seeds is hashed once. Raises ValueError where a side has no seeds: there
    would be nothing to prove.
    """
    if not cv_seeds or not ev_seeds:
        raise ValueError(f"each side must have a seed, got {list(cv_seeds)} and {list(ev_seeds)}")
    (what, of_cv), (other, of_ev) = _reader(cv), _reader(ev)
    if what != other:
        (what, of_cv), (_, of_ev) = _plain_reader(cv), _plain_reader(ev)
    first, of_first = _side(cv, cv_seeds, what, of_cv)
    second, of_second = _side(ev, ev_seeds, what, of_ev)
    return Overlap(what, first, second, len(np.intersect1d(of_first, of_second, assume_unique=True)))


def _side(stream: TaskStream, seeds: Sequence[int], what: str, reader: Reader) -> tuple[Side, Hashes]:
    """(what is told of it, its different hashes, ascending)."""
    hashes, fresh, unchanged = np.zeros(0, np.uint64), list[Hashes](), 0
    plain = getattr(stream, "unchanged", ()) if what == PERMUTATIONS else ()
    for seed in seeds:
        fresh.append(np.concatenate([reader(seed, task) for task in stream.tasks]))
        unchanged += int(np.isin(fresh[-1], plain).sum())
        # Where seeds have hashes of their own, sorted less often than once a seed; where they share them, as those of
        # images, hardly more are held than twice the different ones.
        if sum(map(len, fresh)) > len(hashes):
            hashes, fresh = np.unique(np.concatenate([hashes, *fresh])), []
    hashes = np.unique(np.concatenate([hashes, *fresh]))
    repeated = len(seeds) * len(stream.tasks) - len(hashes) if what == PERMUTATIONS else 0
    digest = hashlib.sha256(hashes.astype("<u8").tobytes()).hexdigest()
    return Side(len(stream.tasks), len(seeds), len(hashes), repeated, unchanged, digest), hashes


def _reader(stream: TaskStream) -> tuple[str, Reader]:
    """(what is hashed, how), as the stream has it, or by its examples."""
    # Not isinstance, which from Python 3.12 on does not see what a wrapped stream passes on.
    if not (hasattr(stream, "content") and hasattr(stream, "contents")):
        return _plain_reader(stream)
    quicker = cast(QuicklyHashed, stream)
    return quicker.content, quicker.contents


def _plain_reader(stream: TaskStream) -> tuple[str, Reader]:
    """For any stream: hashes of inputs [n, P], or of the images behind positions [n]."""
    of_images = hasattr(stream, "pixels")
    hashed = PixelHashes(cast(ImageStream, stream).pixels).of if of_images else hash_rows

    def read(seed: int, task: int) -> Hashes:
        """The different hashes of all that the task shows, ascending."""
        order = stream.order(seed, task)
        starts = range(0, len(order), ROWS)  # in parts, as train() copies what it gives
        training = [hashed(stream.train(seed, task, order[start : start + ROWS]).inputs) for start in starts]
        return np.unique(np.concatenate([*training, hashed(stream.test(seed, task).inputs)]))

    return IMAGES if of_images else EXAMPLES, read


def _flaws(*sides: Side) -> str:
    """What is wrong with permutations besides, "" where nothing is; of both sides together."""
    repeated, unchanged = (sum(getattr(side, name) for side in sides) for name in ("repeated", "unchanged"))
    flaws = f"; {_count(repeated, 'tasks')} with the permutation of another one" if repeated else ""
    return flaws + (f"; {_count(unchanged, 'tasks')} with images as they are" if unchanged else "")


def _count(number: int, noun: str) -> str:
    """A number of things, in words: the noun comes in the plural."""
    return f"{number:,} {noun.removesuffix('s') if number == 1 else noun}"
