"""Proves that search and evaluation stream have no example in common.

Everything that all tasks show is hashed (`hashes`), once for each side, and the two sets are compared: permutations of
a permuted stream, whose images are the same in every task, and images of any other. Of these it is also found out which
ones are tested on that are not new: the very same, or a near-duplicate (`alike`), was trained on, or chose.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from trainers.streams.base import TaskStream
from trainers.streams.example_hashes import ExampleHashes, example_hashes
from trainers.streams.hashes import Hashes
from trainers.streams.near_duplicates import BITS, DIFFERENCE, near

PERMUTATIONS, ROTATIONS, IMAGES, EXAMPLES = "permutations", "rotations", "images", "examples"


class Permuted(Protocol):
    """Optional part of a stream whose tasks all have the same images, each in a permutation.

    It may also have `unchanged`, the hash [1] of a task that shows the images as they are.
    """

    def permutation_hash(self, seed: int, task: int) -> Hashes:
        """Returns a hash [1] of the change that the task's permutation makes to the images.

        Two tasks that differ there share no example.
        """
        ...


class _Side(NamedTuple):
    """Counts of one of the two streams, with all its seeds."""

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
    tests: int = 0
    """Different images, or examples, to test on; 0 where tasks are permutations of the same ones."""
    known: int = 0
    """Those of them that either side trains on; of the evaluation, also those that the search tests on."""
    near: int = 0
    """Those of them that are new, and near-duplicates of such as are not."""


class _Overlap(NamedTuple):
    """Result of the comparison of two streams."""

    what: str
    """IMAGES or EXAMPLES, or the motions of pixels, like PERMUTATIONS: what was hashed."""
    cv: _Side
    """The stream that chooses."""
    ev: _Side
    """The stream that evaluates."""
    shared: int
    """Hashes that occur on both sides."""
    moved: bool = False
    """Whether all tasks show the same images, with their pixels moved."""
    angle: float = math.inf
    """Smallest difference of angles, in degrees, between a task of the search and one of the evaluation, of one seed;
    infinite where tasks are no rotations.
    """

    @property
    def disjoint(self) -> bool:
        """True if the two sides share nothing."""
        return self.shared == 0

    @property
    def sound(self) -> bool:
        """True if the sides are disjoint, all tests are new, and each permutation is unique and changes the images."""
        return self.disjoint and not any(side.repeated or side.unchanged or side.known for side in (self.cv, self.ev))

    @property
    def known(self) -> float:
        """Share of a side's tests that are not new, in 0…1; the larger one of both sides."""
        return max(side.known / max(1, side.tests) for side in (self.cv, self.ev))

    @property
    def known_tests(self) -> str:
        """The tests that are not new, in words; "" where all are."""
        if not (self.cv.known or self.ev.known):
            return ""
        return f"{self._tests_text('known')} occur in training or in the search, too"

    @property
    def warning(self) -> str:
        """The warning about near-duplicates, for people; "" where there are none."""
        if not (self.cv.near or self.ev.near):
            return ""
        return (
            f"{self._tests_text('near')} are near-duplicates of images in training or in the search (difference hashes "
            f"within {BITS} bits, pixels within {DIFFERENCE:g}/255 on average): accuracies on them may be too high"
        )

    @property
    def sentence(self) -> str:
        """The proof, or what is wrong, for people."""
        cv, ev, verdict = self.cv, self.ev, f"none shared{' within a seed' * (self.what == ROTATIONS)}"
        if not self.disjoint:
            occur = "occurs" if self.shared == 1 else "occur"
            verdict = f"{_count(self.shared, self.what)} of the former {occur} in the latter too"
        known_text = f"; {self.known_tests}" if self.known_tests else ""
        return (
            f"{_count(cv.tasks, 'tasks')} × {_count(cv.seeds, 'seeds')} of the cross-validation stream and "
            f"{ev.tasks} × {ev.seeds} of the evaluation stream: {cv.hashes:,} and {ev.hashes:,} different "
            f"{self.what}, {verdict}{self._distance_text}{known_text}{_flaws(self.what, cv, ev)} "
            f"(SHA-256 {cv.digest[:16]}… and {ev.digest[:16]}…)"
        )

    @property
    def _distance_text(self) -> str:
        """The distance of the nearest rotations, in words; "" for other tasks."""
        return f", angles of a seed at least {self.angle:.2g}° apart" if math.isfinite(self.angle) else ""

    def _tests_text(self, name: str) -> str:
        """Returns the number of such tests of each side, in words."""
        of_cv, of_ev = (f"{getattr(side, name):,} of {side.tests:,}" for side in (self.cv, self.ev))
        return f"{of_cv} test {self.what} of the cross-validation and {of_ev} of the evaluation"


def overlap(cv: TaskStream, ev: TaskStream, cv_seeds: Sequence[int], ev_seeds: Sequence[int]) -> _Overlap:
    """Compares all examples that the cross-validation stream shows for its seeds with those of the evaluation stream.

    Every example is hashed as the stream gives it, unless the stream is `Permuted`; an image that occurs in several
    tasks or seeds is hashed once. Raises ValueError where a side has no seeds: there would be nothing to prove.
    """
    if not cv_seeds or not ev_seeds:
        raise ValueError(f"each side must have a seed, got {list(cv_seeds)} and {list(ev_seeds)}")
    if all(hasattr(stream, "permutation_hash") for stream in (cv, ev)):
        what = getattr(cv, "motions", PERMUTATIONS)
        first, of_first = _permutations(cv, cv_seeds)
        second, of_second = _permutations(ev, ev_seeds)
        shared = len(np.intersect1d(of_first, of_second, assume_unique=True))
        return _Overlap(what, first, second, shared, True, _nearest_angle(cv, ev, sorted({*cv_seeds} & {*ev_seeds})))
    what = _examples_of(cv)
    (cv_trained, cv_tested), (ev_trained, ev_tested) = example_hashes(cv, cv_seeds), example_hashes(ev, ev_seeds)
    searched, evaluated = np.union1d(cv_trained[0], cv_tested[0]), np.union1d(ev_trained[0], ev_tested[0])
    return _Overlap(
        what,
        _side(cv, cv_seeds, searched, cv_tested, (cv_trained, ev_trained)),
        _side(ev, ev_seeds, evaluated, ev_tested, (cv_trained, ev_trained, cv_tested)),
        len(np.intersect1d(searched, evaluated, assume_unique=True)),
    )


def _side(
    stream: TaskStream, seeds: Sequence[int], hashes: Hashes, tested: ExampleHashes, others: Sequence[ExampleHashes]
) -> _Side:
    """Returns the counts of a side. others: examples that must not occur in its tests."""
    tests, images = tested
    equal = np.isin(tests, np.concatenate([of_others for of_others, _ in others]))
    close = 0
    if images is not None:
        new = images._replace(positions=images.positions[~equal])
        near_others = [near(new, pictures) for _, pictures in others if pictures is not None]
        close = int(np.any(near_others, axis=0).sum())
    side = _Side(len(stream.tasks), len(seeds), len(hashes), 0, 0, _digest(hashes))
    return side._replace(tests=len(equal), known=int(equal.sum()), near=close)


def _permutations(stream: TaskStream, seeds: Sequence[int]) -> tuple[_Side, Hashes]:
    """Returns (what is told of a side of permutations, its different hashes, ascending)."""
    of, plain = cast(Permuted, stream).permutation_hash, getattr(stream, "unchanged", ())
    hashes_of_tasks = np.concatenate([of(seed, task) for seed in seeds for task in stream.tasks])
    hashes = np.unique(hashes_of_tasks)
    unchanged = int(np.isin(hashes_of_tasks, plain).sum())
    repeated = len(hashes_of_tasks) - len(hashes)
    return _Side(len(stream.tasks), len(seeds), len(hashes), repeated, unchanged, _digest(hashes)), hashes


def _nearest_angle(cv: TaskStream, ev: TaskStream, seeds: Iterable[int]) -> float:
    """Returns the smallest difference of angles between the sides, of these seeds; infinite without angles."""
    angles = [getattr(stream, "angle", None) for stream in (cv, ev)]
    if None in angles:
        return math.inf
    of_cv, of_ev = (
        {seed: np.array([angle(seed, task) for task in stream.tasks]) for seed in seeds}
        for angle, stream in zip(cast(Sequence[Any], angles), (cv, ev), strict=True)
    )
    return min((float(abs(of_cv[seed][:, None] - of_ev[seed]).min()) for seed in of_cv), default=math.inf)


def _examples_of(stream: TaskStream) -> str:
    return IMAGES if hasattr(stream, "pixels") else EXAMPLES


def _digest(hashes: Hashes) -> str:
    return hashlib.sha256(hashes.astype("<u8").tobytes()).hexdigest()


def _flaws(what: str, *sides: _Side) -> str:
    """Returns the flaws of the motions of pixels of both sides, in words; "" without any."""
    repeated, unchanged = (sum(getattr(side, name) for side in sides) for name in ("repeated", "unchanged"))
    flaws = f"; {_count(repeated, 'tasks')} with the {what.removesuffix('s')} of another one" if repeated else ""
    return flaws + (f"; {_count(unchanged, 'tasks')} with images as they are" if unchanged else "")


def _count(number: int, noun: str) -> str:
    """Returns a number of things, in words: the noun comes in the plural."""
    return f"{number:,} {noun.removesuffix('s') if number == 1 else noun}"
