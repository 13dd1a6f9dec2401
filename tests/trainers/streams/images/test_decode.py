"""Images are decoded alike from every layout; what cannot be decoded is named."""

import io
import os

import numpy as np
import pytest
from PIL import Image

from tests.support import image_folders as made
from trainers.streams.base import DataError
from trainers.streams.images import decoder, sources
from trainers.streams.images.decode import decode, prepare
from trainers.streams.images.inspection import inspect


def test_pixels_labels_and_mean(source, cache):
    images = decode(source, 32, cache)
    files = made.class_files()
    assert images.pixels.shape == (18, 32, 32, 3) and images.pixels.dtype == np.uint8
    assert not images.pixels.flags.writeable
    for row, name in enumerate(source.names):
        np.testing.assert_array_equal(images.pixels[row], files[name])
        assert images.classes[images.labels[row]] == name.split("/")[1] and images.test[row] == name.startswith("test")
    assert not images.unused.any() and images.attributes is None
    mean = np.mean([pixels / 255 for name, pixels in files.items() if name.startswith("train")], axis=0)
    assert images.mean.dtype == np.float32
    np.testing.assert_allclose(images.mean, mean, rtol=1e-6)


def test_every_layout_has_the_same_fingerprint(tmp_path, cache):
    made.folders(tmp_path / "a" / "cifar100")
    made.zipped(tmp_path / "b" / "cifar100.zip")
    made.cifar(tmp_path / "c")
    found = [decode(sources.find("split_cifar", tmp_path / name), 32, cache) for name in "abc"]
    assert len({images.fingerprint for images in found}) == 1 and len(found[0].fingerprint) == 16
    for images in found:
        np.testing.assert_array_equal(images.pixels, found[0].pixels)
    other = made.class_files()
    other["test/cup/cup_s_001.png"][0, 0, 0] ^= 1
    changed = decode(sources.open_folder(made.folders(tmp_path / "d", other)), 32, cache)
    assert changed.fingerprint != found[0].fingerprint
    smaller = [decode(sources.find("split_cifar", tmp_path / name), 16, cache).fingerprint for name in "abc"]
    assert len({found[0].fingerprint, *smaller}) == 2


def test_unused_images_and_attributes_reach_the_set(tmp_path, cache):
    images = decode(sources.open_folder(made.folders(tmp_path / "x")), 8, cache)
    assert not images.unused.any()
    awa = decode(sources.find("split_awa_je", made.awa(tmp_path / "awa")), 24, cache)
    assert awa.pixels.shape == (80, 24, 24, 3) and awa.unused.sum() == 12 and awa.attributes.shape == (4, 85)
    training = ~(awa.test | awa.unused)
    np.testing.assert_allclose(awa.mean, (awa.pixels[training] / 255).mean(axis=0), rtol=1e-5)


def test_resizing_is_pillows_bilinear_and_ignores_the_aspect_ratio(tmp_path, cache):
    source = sources.find("split_cub", made.cub(tmp_path / "cub"))
    images = decode(source, 24, cache)
    with Image.open(tmp_path / "cub" / source.names[0]) as image:
        wanted = np.asarray(image.resize((24, 24), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(images.pixels[0], wanted)


def test_all_modes_become_rgb():
    def decoded(image, kind="PNG", **options):
        file = io.BytesIO()
        image.save(file, kind, **options)
        return decoder.decode_image(file.getvalue(), 8)[0]

    grey = Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8))
    deep = Image.fromarray(np.arange(64, dtype=np.uint16).reshape(8, 8) * 256)
    np.testing.assert_array_equal(decoded(grey), decoded(deep))
    np.testing.assert_array_equal(decoded(grey)[..., 0], np.asarray(grey))
    colours = Image.fromarray(made.noise(0, 8, 8))
    for image in (colours.convert("RGBA"), colours.convert("LA"), colours.convert("1"), colours.convert("P")):
        assert decoded(image).shape == (8, 8, 3)
    decoded(colours.convert("P"), transparency=bytes(range(200)))
    decoded(colours.convert("CMYK"), "JPEG")


@pytest.mark.parametrize("workers", [1, 3])
def test_order_does_not_depend_on_the_number_of_threads(tmp_path, cache, workers):
    files = {
        f"{part}/{name}/{at:04}.png": made.noise(at, 2, 2)
        for part in ("train", "test")
        for name in "ab"
        for at in range(100)
    }
    source = sources.open_folder(made.folders(tmp_path / "many", files))
    cached = prepare(source, 2, cache, workers=workers)
    np.testing.assert_array_equal(cached.pixels(), np.stack([files[name] for name in source.names]))


def test_small_files_are_decoded_by_one_thread(source, tmp_path):
    assert decoder.useful_workers(source) == 1
    files = {f"{part}/a/{at}.png": made.noise(at, 100, 100) for part in ("train", "test") for at in range(2)}
    large = sources.open_folder(made.folders(tmp_path / "large", files))
    assert decoder.useful_workers(large) == len(os.sched_getaffinity(0))


DAMAGE = {
    "no image": lambda content: b"no image",
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
}
UNKNOWN = "it is no PNG, JPEG, BMP, GIF, WEBP, PPM or TIFF"
WHY = {"no image": UNKNOWN, "empty": UNKNOWN, "truncated": "image file is truncated"}


@pytest.mark.parametrize("how", DAMAGE)
def test_images_that_cannot_be_decoded(tmp_path, cache, decodings, how):
    root = made.folders(tmp_path / "images")
    bad = ["train/apple/apple_s_001.png", "test/cup/cup_s_000.png"]
    for name in bad:
        made.put(root / name, DAMAGE[how]((root / name).read_bytes()))
    source = sources.open_folder(root)
    with pytest.raises(DataError) as error:
        decode(source, 32, cache)
    told = ", ".join(f"{name} ({WHY[how]})" for name in bad)
    assert str(error.value) == f"2 of 18 images cannot be decoded: {told}; --skip-corrupt leaves them out"
    count = len(decodings)
    images = decode(source, 32, cache, skip_corrupt=True)
    assert len(decodings) == count + len(bad)  # the failure was not for nothing
    assert images.pixels.shape[0] == len(images.labels) == 16 and images.test.sum() == 5
    np.testing.assert_array_equal(images.pixels[1], made.class_files()["train/apple/apple_s_002.png"])
    found = inspect(source, 32, cache)
    assert found.corrupt == bad and found.reasons == dict.fromkeys(bad, WHY[how])
    made.folders(root)  # mended
    assert len(decode(sources.open_folder(root), 32, cache).labels) == 18


def test_a_damaged_entry_of_a_zip_file_is_a_corrupt_image(tmp_path, cache):
    path = made.zipped(tmp_path / "cifar100.zip")
    key = sources.open_folder(path).key
    content = bytearray(path.read_bytes())
    at = content.index(made.encoded(made.class_files()["train/bear/bear_s_000.png"]))
    content[at + 60] ^= 255
    made.put(path, bytes(content))
    with pytest.raises(
        DataError, match=r"1 of 18 images cannot be decoded: train/bear/bear_s_000\.png \(Bad CRC.*\); --skip"
    ):
        decode(sources.open_folder(path), 32, cache)
    assert sources.open_folder(path).key != key  # which the table of contents does not tell


def test_a_class_of_corrupt_images_only(tmp_path, cache):
    root = made.folders(tmp_path / "images")
    for path in (root / "test" / "bear").iterdir():
        path.write_bytes(b"")
    with pytest.raises(DataError, match=r"every class needs a test image.*bear"):
        decode(sources.open_folder(root), 32, cache, skip_corrupt=True)
    for path in root.glob("*/*/*"):
        path.write_bytes(b"")
    with pytest.raises(DataError, match=r"none of the 18 images in .* can be decoded"):
        decode(sources.open_folder(root), 32, cache, skip_corrupt=True)


def test_a_file_that_vanishes_is_not_called_corrupt(source, cache, tmp_path):
    (tmp_path / "images" / source.names[0]).unlink()
    with pytest.raises(DataError, match=r"cannot read .*apple_s_000.png: No such file"):
        decode(source, 32, cache, skip_corrupt=True)
    assert not [path for path in cache.iterdir() if path.is_dir()]


def test_inspection_counts(tmp_path, cache):
    found = inspect(sources.find("split_cub_je", made.cub(tmp_path / "cub")), 16, cache)
    assert found.counts == {"train": 9, "test": 6} and found.per_class == {"train": (3, 3), "test": (2, 2)}
    assert found.classes == 3 and found.attributes == 312 and not found.corrupt
    assert found.differences == [
        "classes: 3 here, 200 in the published dataset",
        "train: 9 here, 5,994 in the published dataset",
        "test: 6 here, 5,794 in the published dataset",
    ]
