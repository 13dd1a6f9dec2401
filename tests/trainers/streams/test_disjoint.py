"""Cross-validation and evaluation tasks are proved to share nothing, and whoever repeats something is found out."""

import numpy as np
import pytest

from tests.support.made_images import made_images
from tests.support.stream_kinds import KINDS
from tests.support.toy_streams import toy
from trainers.streams.base import Examples, Images
from trainers.streams.disjoint import EXAMPLES, IMAGES, PERMUTATIONS, overlap
from trainers.streams.hashes import PixelHashes, hash_columns, hash_rows
from trainers.streams.images.split import SplitStream
from trainers.streams.permuted import PermutedStream

CV, EV, SEEDS = range(3), range(3, 7), (0, 1)


class Wrapped:
    """A stream of a user's own: it has what the protocol asks for, and no word of hashes."""

    def __init__(self, stream):
        self._stream = stream

    def __getattr__(self, name):
        if name in ("permutation_hash", "unchanged", "hashes", "differences"):
            raise AttributeError(name)
        return getattr(self._stream, name)


def sealed(make):
    return overlap(make(CV), make(EV), SEEDS, SEEDS)


MOTIONS = {"permuted": PERMUTATIONS, "rotated": "rotations"}


@pytest.mark.parametrize("kind", KINDS)
def test_our_streams_are_disjoint(kind):
    found = sealed(lambda tasks: KINDS[kind](tasks, None))
    assert found.disjoint and found.sound and found.shared == 0 and "none shared" in found.sentence
    assert found.what == MOTIONS.get(kind, EXAMPLES if kind.startswith("split pixels") else IMAGES)
    assert (found.cv.tasks, found.ev.tasks, found.cv.seeds) == (3, 4, 2)
    assert found.cv.digest != found.ev.digest


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"rotated"}))
def test_the_proof_is_that_of_every_example(kind):
    plain = sealed(lambda tasks: Wrapped(KINDS[kind](tasks, None)))
    assert plain.disjoint and plain.what == (EXAMPLES if kind == "permuted" or "pixels" in kind else IMAGES)
    if kind != "permuted":
        assert plain == sealed(lambda tasks: KINDS[kind](tasks, None))


def test_all_that_is_shown_counts():
    images = made_images(8, train=6, test=3)
    cv, ev = SplitStream(images, range(1), 2), SplitStream(images, range(1, 3), 2)
    found = overlap(cv, ev, (0,), (0,))
    assert (found.cv.hashes, found.ev.hashes) == (2 * 9, 4 * 9)
    cut = overlap(SplitStream(images, range(1), 2, 5), ev, (0,), (0,))
    assert cut.cv.hashes == 5 + 2 * 3
    # Evaluation tasks of seven seeds show all six classes that may be drawn.
    assert overlap(cv, ev, (0,), range(7)).ev.hashes == 6 * 9


def test_the_sentence():
    found = sealed(toy)
    assert found.sentence == (
        "3 tasks × 2 seeds of the cross-validation stream and 4 × 2 of the evaluation stream: 6 and 8 different "
        f"permutations, none shared (SHA-256 {found.cv.digest[:16]}… and {found.ev.digest[:16]}…)"
    )


@pytest.mark.parametrize("wrap", [lambda stream: stream, Wrapped])
def test_a_repeated_image_is_found_out(wrap):
    images = made_images(20, train=6, test=3)
    first, last = images.train_of[0][0], images.test_of[19][0]
    images.pixels[last] = images.pixels[first]
    found = sealed(lambda tasks: wrap(SplitStream(images, tasks, 2)))
    assert any(last in SplitStream(images, EV, 2).test(seed, task).inputs for seed in SEEDS for task in EV)
    assert not found.disjoint and not found.sound and found.shared == 1
    assert "1 image of the former occurs in the latter too" in found.sentence
    assert "; 0 of 18 test images of the cross-validation and 1 of" in found.sentence


def with_copy(source, place):
    """Two sides of 10 and 10 classes whose image at `place` is the one at `source`, each (part, class)."""
    images = made_images(20, train=6, test=3, size=16)
    (one, first), (other, second) = source, place
    at = getattr(images, f"{one}_of")[first][0], getattr(images, f"{other}_of")[second][0]
    return (
        images,
        at,
        lambda wrap: overlap(
            wrap(SplitStream(images, range(5), 2)), wrap(SplitStream(images, range(5, 10), 2)), SEEDS, SEEDS
        ),
    )


# Where an image and its copy are, and the numbers of known test images of both sides.
COPIES = {
    "trained on, on the same side": (("train", 0), ("test", 5), (1, 0)),
    "… in the evaluation": (("train", 10), ("test", 15), (0, 1)),
    "trained on in the search": (("train", 0), ("test", 10), (0, 1)),
    "trained on in the evaluation": (("train", 10), ("test", 0), (1, 0)),
    "tested on in both": (("test", 0), ("test", 10), (0, 1)),
    "tested on twice": (("test", 0), ("test", 5), (0, 0)),
    "trained on in both": (("train", 0), ("train", 10), (0, 0)),
}


@pytest.mark.parametrize("wrap", [lambda stream: stream, Wrapped], ids=["ours", "own"])
@pytest.mark.parametrize(("source", "place", "known"), COPIES.values(), ids=COPIES)
def test_test_images_that_are_not_new_are_counted(wrap, source, place, known):
    images, (one, other), compared = with_copy(source, place)
    images.pixels[other] = images.pixels[one]
    found = compared(wrap)
    assert (found.cv.known, found.ev.known) == known and (found.cv.near, found.ev.near) == (0, 0)
    assert found.known == max(known) / 30 and found.ev.tests == 30
    assert found.sound == (place == ("test", 5) and source[0] == "test")
    # The same picture with other noise is another image, and a near-duplicate.
    images, (one, other), compared = with_copy(source, place)
    images.pixels[other] = np.clip(images.pixels[one].astype(int) + np.resize([1, -1, 0], (16, 16, 3)), 0, 255)
    found = compared(wrap)
    assert (found.cv.near, found.ev.near) == known and (found.cv.known, found.ev.known) == (0, 0)
    told = "{} of 30 test images of the cross-validation and {} of 30 of the evaluation are near-duplicates"
    assert found.sound and found.warning.startswith(told.format(*known) if sum(known) else "")
    assert bool(found.warning) == (sum(known) > 0)


def test_examples_of_own_streams_are_counted_too():
    images = toy().images
    images.test.inputs[0] = images.train.inputs[0]
    found = overlap(*(Wrapped(PermutedStream(images, tasks)) for tasks in (CV, EV)), (0,), (0,))
    # In every task, as all show the same images; of these others are alike already.
    assert found.what == EXAMPLES and found.cv.known >= 3 and found.ev.known >= 4


class Forged(PermutedStream):
    """Evaluation task 5 of seed 1 shows what cross-validation task 2 of seed 0 does."""

    def permutation(self, seed, task):
        return super().permutation(*((0, 2) if (seed, task) == (1, 5) else (seed, task)))


class Lazy(PermutedStream):
    """Tasks 4 and 5 have one permutation; task 6 has none."""

    def permutation(self, seed, task):
        return np.arange(self.inputs) if task == 6 else super().permutation(seed, min(task, 4))


def of_kind(kind):
    stream = toy()
    return lambda tasks: kind(stream.images, tasks, 10)


def test_a_repeated_permutation_is_found_out():
    found = sealed(of_kind(Forged))
    assert found.shared == 1 and not found.disjoint
    assert "1 permutation of the former occurs in the latter too" in found.sentence
    # … by its examples, too, and those are all that the task shows: 10 to train on and the test set.
    plain = sealed(lambda tasks: Wrapped(of_kind(Forged)(tasks)))
    assert plain.what == EXAMPLES and plain.shared >= len(toy().images.test.labels)


def test_tasks_that_repeat_each_other_or_change_nothing_are_told():
    found = sealed(of_kind(Lazy))
    assert found.disjoint and not found.sound
    # Of each seed task 5 repeats task 4, and the tasks without a permutation of the two seeds are the same.
    assert (found.ev.repeated, found.ev.unchanged) == (2 + 1, 2)
    assert "3 tasks with the permutation of another one; 2 tasks with images as they are" in found.sentence


def test_a_permutation_of_pixels_that_are_always_alike_changes_nothing():
    images = toy().images
    blank = [Examples(np.pad(part.inputs, ((0, 0), (3, 2))), part.labels) for part in (images.train, images.test)]
    padded = Images(*blank, images.classes, images.largest)
    assert padded.alike.tolist() == [0, 0, 0, *range(3, 12), 0, 0]

    class Border(PermutedStream):
        def permutation(self, seed, task):
            return np.array([13, 12, 1, *range(3, 12), 0, 2]) if task == 4 else super().permutation(seed, task)

    found = overlap(Border(padded, CV, 10), Border(padded, EV, 10), (0,), (0,))
    assert found.ev.unchanged == 1 and found.cv.unchanged == 0


def test_two_kinds_of_streams_are_compared_by_their_examples():
    found = overlap(toy(CV), Wrapped(toy(CV)), (0,), (0,))
    assert found.what == EXAMPLES and found.shared == found.cv.hashes == found.ev.hashes


def test_a_side_without_seeds_proves_nothing():
    with pytest.raises(ValueError, match="each side must have a seed"):
        overlap(toy(CV), toy(EV), (), (0,))


def test_columns_are_hashed_as_rows_are():
    table = np.random.default_rng(0).integers(0, 3, (5000, 4), dtype=np.uint8)
    np.testing.assert_array_equal(hash_columns([table[:2999], table[2999:]]), hash_rows(table.T))


def test_an_image_is_hashed_once(monkeypatch):
    pixels = made_images().pixels
    hashed = []
    monkeypatch.setattr("trainers.streams.hashes.hash_rows", lambda rows: hashed.append(len(rows)) or hash_rows(rows))
    hashes = PixelHashes(pixels)
    first = hashes.of(np.array([3, 1, 3]))
    np.testing.assert_array_equal(hashes.of(np.array([3, 1, 3, 2])), [*first, *hash_rows(pixels[2:3])])
    assert hashed == [2, 1]
    np.testing.assert_array_equal(hashes.of(np.arange(len(pixels))), hash_rows(pixels))


def test_hashes_are_kept_for_the_same_pixels_alone(tmp_path):
    pixels, file = made_images().pixels, tmp_path / "hashes"
    every, wanted = np.arange(len(pixels)), hash_rows(pixels)
    np.testing.assert_array_equal(PixelHashes(pixels, file, "mark").of(every[:1]), wanted[:1])
    assert [path.name for path in tmp_path.iterdir()] == ["hashes"]
    wrong = np.zeros_like(pixels)  # whose hashes are read where the mark says that they are those of the pixels
    np.testing.assert_array_equal(PixelHashes(wrong, file, "mark").of(every), wanted)
    np.testing.assert_array_equal(PixelHashes(wrong, file, "other").of(every), hash_rows(wrong))


@pytest.mark.parametrize(
    "damage", [lambda kept: kept[:-1], lambda kept: kept[:50] + b"?" + kept[51:], lambda kept: b""]
)
def test_a_damaged_file_of_hashes_is_made_again(tmp_path, damage, told):
    pixels, file = made_images().pixels, tmp_path / "hashes"
    every = np.arange(len(pixels))
    wanted = PixelHashes(pixels, file, "mark").of(every)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    np.testing.assert_array_equal(PixelHashes(pixels, file, "mark").of(every), wanted)
    assert file.read_bytes() == whole
    assert told == [f"{file} cannot be used, it is damaged: every image is hashed again"]


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path):
    pixels = made_images().pixels
    found = PixelHashes(pixels, tmp_path / "nowhere" / "hashes", "mark").of(np.arange(3))
    np.testing.assert_array_equal(found, hash_rows(pixels[:3]))


def test_permutations_of_many_seeds_are_sorted_a_few_times_not_once_a_seed(monkeypatch):
    sorted_ones, original = [], np.unique

    def unique(found, **wanted):
        sorted_ones.append(len(found))
        return original(found, **wanted)

    monkeypatch.setattr(np, "unique", unique)
    many = range(64)
    found = overlap(toy(CV, pixels=25), toy(EV, pixels=25), many, many)
    assert (found.cv.hashes, found.ev.hashes, found.sound) == (3 * 64, 4 * 64, True)
    assert sum(sorted_ones) < 6 * (3 * 64 + 4 * 64)
