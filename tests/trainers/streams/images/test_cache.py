"""Images are decoded once, whatever happens to the cache and to the processes that fill it."""

import json
import multiprocessing
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.support import image_folders as made
from tests.support.limits import HANGS
from trainers.streams.base import DataError
from trainers.streams.images import sources
from trainers.streams.images.cache import _write
from trainers.streams.images.decode import decode


def pixel_file(cache):
    (path,) = cache.glob("*/pixels")
    return path


def test_the_second_time_nothing_is_decoded(source, cache, decodings):
    seen = []
    first = decode(source, 32, cache, progress=lambda done, total: seen.append((done, total)))
    assert len(decodings) == 18 and seen == [(18, 18)]
    second = decode(source, 32, cache)
    assert len(decodings) == 18 and second.fingerprint == first.fingerprint
    np.testing.assert_array_equal(second.mean, first.mean)
    decode(source, 16, cache)
    assert len(decodings) == 36


def test_facts_say_what_the_folder_holds(source, cache):
    decode(source, 32, cache)
    _, facts = (pixel_file(cache).parent / "facts").read_text().split("\n", 1)
    found = json.loads(facts)
    assert found["images"] == 18 and found["size"] == 32 and found["corrupt"] == []


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
    assert told == [f"{folder} is damaged or lacks images that can be decoded now: all are decoded again"]
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


@pytest.mark.slow
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


@pytest.mark.slow
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
