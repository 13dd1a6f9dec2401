"""What the cache says of files follows their bytes: what was damaged is read once it is whole, however it got so."""

import os
import shutil
import zipfile

import numpy as np
import pytest
from PIL import Image

from tests.support import image_folders as made
from trainers.streams.base import DataError
from trainers.streams.images import decoder, registry, sources
from trainers.streams.images.decode import decode
from trainers.streams.images.inspection import inspect
from trainers.streams.images.registry import ImageOptions


def damaged(data, archive):
    """Bytes within every fifth member; sizes and CRCs in the table of contents stay."""
    for one in archive.infolist()[::5]:
        at = one.header_offset + 30 + len(one.filename) + one.compress_size // 2
        data[at : at + 8] = b"\xff" * 8


def marked(data, archive, offset, change):
    """Changes a byte of every header, local and central."""
    for one in archive.infolist():
        data[one.header_offset + 6 + offset] = change(data[one.header_offset + 6 + offset])
    at = data.find(b"PK\1\2")
    while at >= 0:
        data[at + 8 + offset] = change(data[at + 8 + offset])
        at = data.find(b"PK\1\2", at + 4)


SPOILT = {
    "damaged": damaged,
    "encrypted": lambda data, archive: marked(data, archive, 0, lambda flags: flags | 1),
    "deflate64": lambda data, archive: marked(data, archive, 2, lambda method: 9),
}


@pytest.mark.parametrize("again", ["in place", "another file", "with its times"])
@pytest.mark.parametrize("how", SPOILT)
def test_a_zip_that_is_had_again_is_read_again(tmp_path, cache, how, again):
    path = made.zipped(tmp_path / "images.zip")
    whole = path.read_bytes()
    data = bytearray(whole)
    with zipfile.ZipFile(path) as archive:
        SPOILT[how](data, archive)
    path.write_bytes(data)
    with pytest.raises(DataError, match="of 18 images cannot be decoded"):
        decode(sources.open_folder(path), 32, cache)
    before = path.stat()
    if again == "another file":
        path.unlink()
    path.write_bytes(whole)
    if again == "with its times":
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    for skip in (True, False):
        images = decode(sources.open_folder(path), 32, cache, skip)
        assert len(images.labels) == 18
    assert inspect(sources.open_folder(path), 32, cache).corrupt == []


def test_a_file_that_is_mended_with_its_size_and_times(tmp_path, cache):
    root = made.folders(tmp_path / "images")
    path = root / "train" / "bear" / "bear_s_000.png"
    whole, before = path.read_bytes(), path.stat()
    path.write_bytes(whole[:60] + b"\xff" * 8 + whole[68:])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert len(decode(sources.open_folder(root), 32, cache, skip_corrupt=True).labels) == 17
    path.write_bytes(whole)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert len(decode(sources.open_folder(root), 32, cache, skip_corrupt=True).labels) == 18


def test_pixels_follow_a_file_that_changes_with_its_size_and_times(tmp_path, cache):
    """No image was corrupt: it is just another one."""
    root = made.folders(tmp_path / "images")
    path = root / "train" / "bear" / "bear.bmp"
    made.put(path, made.encoded(made.noise(1), "BMP"))
    before, first = path.stat(), decode(sources.open_folder(root), 32, cache).fingerprint
    path.write_bytes(made.encoded(made.noise(2), "BMP"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert decode(sources.open_folder(root), 32, cache).fingerprint != first


def test_pickles_follow_their_bytes(tmp_path, cache):
    root = made.cifar(tmp_path)
    path = root / "cifar-100-python" / "train"
    first, before, whole = decode(sources.find("split_cifar", root), 32, cache), path.stat(), path.read_bytes()
    at = whole.index(first.pixels[0][:, :, 0].tobytes())
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert decode(sources.find("split_cifar", root), 32, cache).fingerprint != first.fingerprint


def test_what_another_version_of_a_library_reads_is_tried_again(source, cache, monkeypatch, decodings, told):
    real = decoder._resize

    def old(image, size):
        if image.size == (32, 32) and np.asarray(image)[0, 0, 0] < 60:
            raise OSError("decoder avif not available")
        return real(image, size)

    with monkeypatch.context() as patch:
        patch.setattr(decoder, "_resize", old)
        kept = decode(source, 32, cache, skip_corrupt=True)
    assert 0 < len(kept.labels) < 18
    assert len(decode(source, 32, cache, skip_corrupt=True).labels) == 18
    (line,) = told
    assert line.endswith("is damaged or lacks images that can be decoded now: all are decoded again")
    count = len(decodings)
    decode(source, 32, cache)
    assert len(decodings) == count


def test_a_process_reads_again_what_changed_between_its_studies(tmp_path, cache):
    root, options = made.folders(tmp_path / "images"), ImageOptions(1, 32, cache=cache)
    first = registry.load(f"folder:{root}", tmp_path, options)
    assert registry.load(f"folder:{root}", tmp_path, options) is first  # cohorts of a study ask for the same
    shutil.copy(root / "train/cup/cup_s_000.png", root / "train/bear/bear_s_000.png")
    registry.clear_cache()
    assert registry.load(f"folder:{root}", tmp_path, options).fingerprint != first.fingerprint


def test_corrupt_images_stay_corrupt_where_nothing_changed(tmp_path, cache, told):
    root = made.folders(tmp_path / "images")
    (root / "train/cup/cup_s_000.png").write_bytes(b"no image")
    Image.new("RGB", (4, 4)).save(root / "train/cup/cup_s_001.png")
    for _ in range(3):
        assert len(decode(sources.open_folder(root), 32, cache, skip_corrupt=True).labels) == 17
    assert not told
