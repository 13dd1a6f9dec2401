"""Near-duplicates are found as a comparison of all pairs would find them, and nothing else is."""

import numpy as np
import pytest
from PIL import Image

from trainers.streams import near_duplicates
from trainers.streams.hashes import PixelHashes
from trainers.streams.near_duplicates import Pictures, difference_hashes, near


def pictures(pixels, positions=None):
    places = np.arange(len(pixels)) if positions is None else np.array(positions)
    return Pictures(pixels, PixelHashes(pixels, make=difference_hashes), places)


def smooth(count, side=16, seed=0):
    """Images of soft colours, as photographs have them."""
    small = np.random.default_rng(seed).integers(0, 256, (count, 5, 5, 3), dtype=np.uint8)
    return np.stack([np.asarray(Image.fromarray(one).resize((side, side), Image.Resampling.BICUBIC)) for one in small])


def by_pairs(some, others):
    """What near-duplicates are, word by word."""
    ours, theirs = difference_hashes(some), difference_hashes(others)
    bits = np.array([[(int(a) ^ int(b)).bit_count() for b in theirs] for a in ours])
    apart = np.abs(some[:, None].astype(int) - others[None]).mean(axis=(2, 3, 4))
    return ((bits <= 2) & (apart < 2)).any(axis=1)


@pytest.mark.parametrize("pairs", [1, 7, 2**18])
def test_all_pairs_are_compared(monkeypatch, pairs):
    monkeypatch.setattr(near_duplicates, "PAIRS", pairs)
    rng = np.random.default_rng(1)
    others = smooth(40)
    some = np.concatenate([others[:30], smooth(10, seed=2)]).astype(int)
    for at, one in enumerate(some[:30]):
        one += rng.integers(-at // 6, at // 6 + 1, one.shape)  # ever louder noise
    some = np.clip(some, 0, 255).astype(np.uint8)
    expected = by_pairs(some, others)
    assert 5 < expected.sum() < 30
    np.testing.assert_array_equal(near(pictures(some), pictures(others)), expected)


def test_neither_condition_is_enough():
    one = smooth(1)
    darker = (one // 2).astype(np.uint8)  # the same hash, nearly
    assert near(pictures(one), pictures(one)).all() and not near(pictures(one), pictures(darker)).any()
    flat = np.full((1, 16, 16, 3), 100, np.uint8)
    waves = flat + np.arange(16, dtype=np.uint8)[None, None, ::-1, None] // 6  # falls from left to right, a little
    assert np.abs(flat.astype(int) - waves).mean() < 2 and not near(pictures(flat), pictures(waves)).any()


def test_the_hash_is_that_of_blocks_of_one_size():
    images = np.random.default_rng(3).integers(0, 256, (5, 16, 18, 3), dtype=np.uint8)
    small = images.astype(int).sum(axis=3).reshape(5, 8, 2, 9, 2).sum(axis=(2, 4))
    bits = (small[:, :, :-1] > small[:, :, 1:]).reshape(5, 64)
    expected = [int("".join(map(str, row.astype(int))), 2) for row in bits]
    assert difference_hashes(images).tolist() == expected
    # Of other sizes pixels lie in two blocks; a block that is a pixel wider is not brighter for that.
    assert difference_hashes(np.full((1, 17, 31, 3), 200, np.uint8)).tolist() == [0]
    assert difference_hashes(images[:0]).tolist() == []


def test_a_file_of_hashes_is_kept_apart_from_others(tmp_path):
    images = smooth(4)
    kept = PixelHashes(images, tmp_path / "differences", "some differences", difference_hashes)
    assert kept.of(np.array([2])).tolist() == difference_hashes(images[2:3]).tolist()
    again = PixelHashes(images, tmp_path / "differences", "some differences", make=lambda pixels: pytest.fail("made"))
    assert again.of(np.arange(4)).tolist() == difference_hashes(images).tolist()


def test_images_that_are_small_or_of_other_sizes_are_not_compared():
    assert not near(pictures(smooth(2, side=15)), pictures(smooth(2, side=15))).any()
    assert not near(pictures(smooth(2)), pictures(smooth(2, side=17))).any()
    assert near(pictures(smooth(2), [1]), pictures(smooth(2), [0, 1])).tolist() == [True]
    assert near(pictures(smooth(2), np.zeros(0, int)), pictures(smooth(2))).tolist() == []
    assert near(pictures(smooth(2)), pictures(smooth(2), np.zeros(0, int))).tolist() == [False, False]
