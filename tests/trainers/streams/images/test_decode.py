"""Images are decoded once, alike from every layout, whatever happens to the cache meanwhile."""

import io
import json
import multiprocessing
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support import image_folders as made
from tests.support.limits import HANGS
from trainers.streams.base import DataError
from trainers.streams.images import decoder, sources
from trainers.streams.images.cache import _write
from trainers.streams.images.decode import decode, prepare
from trainers.streams.images.inspection import inspect


@pytest.fixture
def source(tmp_path):
    return sources.open_folder(made.folders(tmp_path / "images"))


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def decodings(monkeypatch):
    """The names of the images that are decoded from now on."""
    sizes = []
    real = decoder.decode_image
    monkeypatch.setattr(decoder, "decode_image", lambda *given: (sizes.append(given[1]), real(*given))[1])
    return sizes


def pixel_file(cache):
    (path,) = cache.glob("*/pixels")
    return path


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
        return decoder.decode_image(file.getvalue(), 8)

    grey = Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8))
    deep = Image.fromarray(np.arange(64, dtype=np.uint16).reshape(8, 8) * 256)
    np.testing.assert_array_equal(decoded(grey), decoded(deep))
    np.testing.assert_array_equal(decoded(grey)[..., 0], np.asarray(grey))
    colours = Image.fromarray(made.noise(0, 8, 8))
    for image in (colours.convert("RGBA"), colours.convert("LA"), colours.convert("1"), colours.convert("P")):
        assert decoded(image).shape == (8, 8, 3)
    decoded(colours.convert("P"), transparency=bytes(range(200)))
    decoded(colours.convert("CMYK"), "JPEG")


def test_the_second_time_nothing_is_decoded(source, cache, decodings):
    seen = []
    first = decode(source, 32, cache, progress=lambda done, total: seen.append((done, total)))
    assert len(decodings) == 18 and seen == [(18, 18)]
    second = decode(source, 32, cache)
    assert len(decodings) == 18 and second.fingerprint == first.fingerprint
    np.testing.assert_array_equal(second.mean, first.mean)
    decode(source, 16, cache)
    assert len(decodings) == 36


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
    assert len(decodings) == count  # the failure was not for nothing
    assert images.pixels.shape[0] == len(images.labels) == 16 and images.test.sum() == 5
    np.testing.assert_array_equal(images.pixels[1], made.class_files()["train/apple/apple_s_002.png"])
    found = inspect(source, 32, cache)
    assert found.corrupt == bad and found.reasons == dict.fromkeys(bad, WHY[how])
    made.folders(root)  # mended
    assert len(decode(sources.open_folder(root), 32, cache).labels) == 18


def test_a_damaged_entry_of_a_zip_file_is_a_corrupt_image(tmp_path, cache):
    path = made.zipped(tmp_path / "cifar100.zip")
    source = sources.open_folder(path)
    content = bytearray(path.read_bytes())
    at = content.index(made.encoded(made.class_files()["train/bear/bear_s_000.png"]))
    content[at + 60] ^= 255
    made.put(path, bytes(content))
    with pytest.raises(
        DataError, match=r"1 of 18 images cannot be decoded: train/bear/bear_s_000\.png \(Bad CRC.*\); --skip"
    ):
        decode(sources.open_folder(path), 32, cache)
    assert source.key == sources.open_folder(path).key


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


def truncate(path):
    os.truncate(path, 1000)


def flip(path):
    content = bytearray(path.read_bytes())
    content[5000] ^= 1
    path.write_bytes(content)


def flip_and_hide(path):
    times = path.stat()
    flip(path)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def flip_before_the_end(path):
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [truncate, flip_before_the_end, flip_and_hide, os.remove])
@pytest.mark.parametrize("file", ["pixels", "mean", "facts"])
def test_a_damaged_cache_is_made_again(source, cache, decodings, told, damage, file):
    wanted = np.array(decode(source, 64, cache).pixels)
    folder = pixel_file(cache).parent
    (flip_before_the_end if file == "facts" and damage is not os.remove else damage)(folder / file)
    images = decode(source, 64, cache)
    np.testing.assert_array_equal(images.pixels, wanted)
    assert len(decodings) == 36
    assert told == [f"{folder} is damaged or of an older version: its images are decoded again"]
    decode(source, 64, cache)
    assert len(decodings) == 36 and len(told) == 1


def test_a_disk_that_lost_a_bit_is_seen(source, cache, told, monkeypatch):
    """No program has written to the file, so that its times are those of an undamaged one."""
    wanted = np.array(decode(source, 64, cache).pixels)
    path = pixel_file(cache)
    before, real = path.stat(), Path.stat
    flip(path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", lambda self, **given: before if self == path else real(self, **given))
        images = decode(source, 64, cache)
    np.testing.assert_array_equal(images.pixels, wanted)
    assert len(told) == 1


def test_the_images_of_another_dataset_are_not_taken(tmp_path, source, cache, told):
    """Whole and undamaged, but in the wrong place."""
    other = made.class_files()
    other["test/cup/cup_s_001.png"][0, 0, 0] ^= 1
    decode(sources.open_folder(made.folders(tmp_path / "other", other)), 32, cache)
    folder = pixel_file(cache).parent
    wanted = decode(source, 32, tmp_path / "elsewhere")
    shutil.move(folder, cache / pixel_file(tmp_path / "elsewhere").parent.name)
    assert decode(source, 32, cache).fingerprint == wanted.fingerprint and len(told) == 1


def test_a_file_in_the_place_of_a_cache_is_replaced(source, cache, told):
    decode(source, 32, cache)
    folder = pixel_file(cache).parent
    shutil.rmtree(folder)
    folder.write_text("")
    assert len(decode(source, 32, cache).labels) == 18 and len(told) == 1


def test_a_copied_cache_is_used(source, cache, tmp_path, decodings, told):
    decode(source, 32, cache)
    shutil.copytree(cache, tmp_path / "copy")
    decode(source, 32, tmp_path / "copy")
    assert len(decodings) == 18 and not told


def _in_a_process(root, cache, queue):
    images = decode(sources.open_folder(root), 32, cache)
    queue.put((images.fingerprint, pixel_file(cache).stat().st_ino))


def test_two_processes_decode_once(tmp_path, cache):
    root = made.folders(tmp_path / "images")
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    processes = [context.Process(target=_in_a_process, args=(root, cache, queue), daemon=True) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
        process.close()
    found = [queue.get() for _ in processes]
    queue.close()
    assert len(set(found)) == 1
    assert len([path for path in cache.iterdir() if path.is_dir()]) == 1


def test_threads_wait_for_each_other(source, cache, decodings):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: decode(source, 32, cache).fingerprint, range(4)))
    assert len(set(found)) == 1 and len(decodings) == 18


def test_without_locks_the_first_to_rename_wins(source, cache, monkeypatch):
    import fcntl

    def unsupported(*_):
        raise OSError("no locks on this file system")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    barrier = threading.Barrier(2)

    def write(*given):
        facts = _write(*given)
        barrier.wait(HANGS)
        return facts

    monkeypatch.setattr("trainers.streams.images.cache._write", write)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: decode(source, 32, cache), range(2))
    np.testing.assert_array_equal(first.pixels, second.pixels)
    assert [path.name for path in cache.iterdir() if path.is_dir()] == [pixel_file(cache).parent.name]


def test_what_a_killed_process_left_is_removed(source, cache):
    decode(source, 32, cache)
    folder = pixel_file(cache).parent
    other = f".{'0123456789ab' * 2}-32-v1"
    leftover, fresh, old, users = (
        cache / name for name in (f".{folder.name}.x1y2", f"{other}.ab", f"{other}.cd", ".git")
    )
    shutil.copytree(folder, leftover)
    for path in (fresh, old, users):
        path.mkdir()
    for path in (old, users):
        os.utime(path, (1, 1))
    shutil.rmtree(folder)
    decode(source, 32, cache)
    assert not leftover.exists() and not old.exists() and fresh.exists() and folder.exists()
    assert users.exists()  # which is somebody's, however old


def _dies(root, cache):
    decode(sources.open_folder(root), 32, cache, progress=lambda done, total: os._exit(9))


def test_a_process_that_dies_half_way_blocks_nobody(source, cache, tmp_path):
    process = multiprocessing.get_context("spawn").Process(target=_dies, args=(tmp_path / "images", cache))
    process.start()
    process.join()
    code = process.exitcode
    process.close()
    assert code == 9 and len(list(cache.glob(".*/pixels"))) == 1
    assert decode(source, 32, cache).pixels.shape[0] == 18
    assert not list(cache.glob(".*/pixels"))


def test_an_interrupted_decoding_leaves_nothing(source, cache):
    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decode(source, 32, cache, progress=interrupt)
    assert not [path for path in cache.iterdir() if path.is_dir()]
    assert decode(source, 32, cache).pixels.shape[0] == 18


def test_a_cache_that_cannot_be_written(source, tmp_path, monkeypatch):
    blocked = made.put(tmp_path / "file", "")
    with pytest.raises(DataError, match=r"cannot write the decoded images to .*; EPSEARCH_CACHE names"):
        decode(source, 32, blocked / "cache")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match=r"cannot write .*: No space left on device; EPSEARCH_CACHE"):
        decode(source, 32, tmp_path / "cache")
    assert not [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]
    with pytest.raises(DataError, match=r"the decoded images need 540000000\.0 GB and .* GB left"):
        decode(source, 10**8, tmp_path / "cache")
    with pytest.raises(DataError, match="images cannot be 0 pixels wide"):
        decode(source, 0, tmp_path / "cache")


def test_inspection_counts(tmp_path, cache):
    found = inspect(sources.find("split_cub_je", made.cub(tmp_path / "cub")), 16, cache)
    assert found.counts == {"train": 9, "test": 6} and found.per_class == {"train": (3, 3), "test": (2, 2)}
    assert found.classes == 3 and found.attributes == 312 and not found.corrupt
    assert found.differences == [
        "classes: 3 here, 200 in the published dataset",
        "train: 9 here, 5,994 in the published dataset",
        "test: 6 here, 5,794 in the published dataset",
    ]


def test_facts_say_what_the_folder_holds(source, cache):
    decode(source, 32, cache)
    _, facts = (pixel_file(cache).parent / "facts").read_text().split("\n", 1)
    found = json.loads(facts)
    assert found["images"] == 18 and found["size"] == 32 and found["corrupt"] == []
