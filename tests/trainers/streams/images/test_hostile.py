"""What lies where images should, and is none, is told in one line: nothing hangs, nothing fills the memory."""

import os
import shutil
import struct
import threading
import tracemalloc
import warnings
import zipfile
import zlib
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image

from tests.support import image_folders as made
from trainers.streams.base import DataError
from trainers.streams.images import decoder, sources
from trainers.streams.images.decode import decode
from trainers.streams.images.inspection import inspect
from trainers.streams.images.sources.base import LARGEST_FILE, DamagedImage
from trainers.streams.images.sources.trees import open_tree

APPLE = "train/apple/apple_s_001.png"


@contextmanager
def fifo(path):
    """A FIFO that is empty for who reads it: were it opened, a test would fail but not wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    over = threading.Event()

    def write_nothing():
        while not over.is_set():
            os.close(os.open(path, os.O_WRONLY))

    writer = threading.Thread(target=write_nothing, daemon=True)
    writer.start()
    yield path
    over.set()
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # lets the writer go
    writer.join()
    os.close(reader)


def png(width, height):
    """A PNG that says how large it is and has hardly anything."""

    def part(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", zlib.compress(bytes(100))) + part(b"IEND", b"")


def why(source, cache):
    """What is said of the only corrupt image; all the others are decoded without a warning."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(DataError) as error:
            decode(source, 32, cache)
        assert len(decode(source, 32, cache, skip_corrupt=True).labels) == len(source.names) - 1
    assert not told and "\n" not in str(error.value)
    assert str(error.value).startswith(f"1 of {len(source.names)} images cannot be decoded: {APPLE} (")
    (reason,) = inspect(source, 32, cache).reasons.values()
    assert f"({reason}); --skip-corrupt" in str(error.value)
    return reason


@pytest.fixture
def root(tmp_path):
    return made.folders(tmp_path / "images")


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def test_a_fifo_named_like_an_image(root, cache):
    with fifo(root / APPLE):
        assert why(sources.open_folder(root), cache) == "it is a FIFO, no regular file"


def test_a_link_to_a_device(root, cache):
    (root / APPLE).unlink()
    (root / APPLE).symlink_to(os.devnull)
    assert why(sources.open_folder(root), cache) == "it is a device, no regular file"


def test_a_file_that_is_too_large(root, cache):
    os.truncate(root / APPLE, LARGEST_FILE + 1)  # which takes no room on the disk
    assert why(sources.open_folder(root), cache) == "it has 268,435,457 bytes, at most 268,435,456 are read"


@pytest.mark.parametrize(("width", "height"), [(9460, 9460), (50_000, 50_000), (2**31 - 1, 2**31 - 1)])
def test_too_many_pixels(root, cache, width, height):
    """Of the first, Pillow would only warn."""
    made.put(root / APPLE, png(width, height))
    assert why(sources.open_folder(root), cache) == "it has more than 89,478,485 pixels"


def test_pillows_warnings_do_not_decide(root, cache):
    """Neither is a file of which Pillow warns refused nor is the warning shown."""
    content = bytearray(made.encoded(made.noise(3), "TIFF"))
    (start,) = struct.unpack("<I", content[4:8])
    count = int.from_bytes(content[start : start + 2], "little")
    tag = start + 2 + 12 * (count - 1)
    content[tag : tag + 12] = struct.pack("<HHII", 65000, 1, 2**20, 2**20)  # a value that lies outside the file
    with pytest.warns(UserWarning):
        decoder.decode_image(bytes(content), 32)
    made.put(root / APPLE, bytes(content))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not inspect(sources.open_folder(root), 32, cache).corrupt


def test_formats_that_could_start_programs_are_no_images(root, cache):
    made.put(root / APPLE, b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n")
    assert why(sources.open_folder(root), cache) == "it is no PNG, JPEG, BMP, GIF, WEBP, PPM or TIFF"


def test_too_little_memory_is_one_line_and_no_corrupt_image(root, cache, monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr(decoder, "decode_image", full)
    with pytest.raises(DataError, match=r"^there is too little memory to decode .*png in .*images$"):
        decode(sources.open_folder(root), 32, cache, skip_corrupt=True)


def entry_of(content, name):
    """Where the central directory of a zip file has a member."""
    return content.rindex(name.encode()) - 46


def patched(path, name, at, kind, value):
    """The zip file with one number of the member's entry changed."""
    content = bytearray(path.read_bytes())
    struct.pack_into(kind, content, entry_of(content, name) + at, value)
    return made.put(path, bytes(content))


def test_a_member_that_says_it_unpacks_to_more_than_fits(tmp_path, cache):
    path = patched(made.zipped(tmp_path / "a.zip", top=""), APPLE, 24, "<I", 2**31)
    assert why(sources.open_folder(path), cache) == "it has 2,147,483,648 bytes, at most 268,435,456 are read"


def test_encrypted_members(tmp_path, cache):
    path = patched(made.zipped(tmp_path / "a.zip", top=""), APPLE, 8, "<H", 1)
    assert why(sources.open_folder(path), cache) == "it is encrypted"


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_member_that_unpacks_to_more_than_it_says(tmp_path, compression):
    """It is read in pieces, and no further than it says."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", compression) as archive, archive.open("a/b.png", "w") as member:
        for _ in range(8):
            member.write(bytes(2**20))
    tree = open_tree(patched(path, "a/b.png", 24, "<I", 100))
    tracemalloc.start()
    try:
        with pytest.raises(DamagedImage):
            tree.read("a/b.png")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**20 or compression != zipfile.ZIP_DEFLATED  # the others unpack PIECE bytes at once
    with pytest.raises(DamagedImage, match="at most 10 are read"):
        tree.read("a/b.png", most=10)


def test_a_compression_nobody_knows(tmp_path, cache):
    path = patched(made.zipped(tmp_path / "a.zip", top=""), APPLE, 10, "<H", 9)
    assert "compression" in why(sources.open_folder(path), cache)


@pytest.mark.parametrize("offset", [2**31, 2**32 - 2])
def test_a_member_that_lies_outside_the_file(tmp_path, cache, offset):
    path = patched(made.zipped(tmp_path / "a.zip", top=""), APPLE, 42, "<I", offset)
    with pytest.raises(DataError):  # newer versions of Python refuse the whole file
        decode(sources.open_folder(path), 32, cache)


def test_names_with_dots_slashes_and_backslashes_stay_inside(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for part in ("./train", "/train", "train/", "test"):
            for label in "ab":
                archive.writestr(f"{part}/{label}/{part.strip('./')}{len(part)}.png", made.encoded(made.noise(1)))
        for name in ("../train/a/out.png", "train/../../etc/x.png", "train/a/../b/x.png", "__MACOSX/train/a/._1.png"):
            archive.writestr(name, b"")
        archive.writestr("train\\a\\back.png", b"")
        archive.writestr("/".join(["deep"] * 5000) + "/x.png", b"")
    source = sources.open_folder(path)
    assert source.names == (
        *("train/a/back.png", "train/a/train6.png", "train/a/train7.png"),
        *("train/b/train6.png", "train/b/train7.png", "test/a/test4.png", "test/b/test4.png"),
    )


def test_of_two_members_of_one_name_the_last_is_the_file_as_when_unpacked(tmp_path, cache):
    path = made.zipped(tmp_path / "a.zip", top="")
    newer = made.noise(77)
    with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile's, of the duplicate
        archive.writestr(APPLE, made.encoded(newer))
    shutil.unpack_archive(path, tmp_path / "unpacked")
    zipped, unpacked = (sources.open_folder(place) for place in (path, tmp_path / "unpacked"))
    assert zipped.names == unpacked.names and len(zipped.names) == 18
    images = [decode(source, 32, cache) for source in (zipped, unpacked)]
    assert images[0].fingerprint == images[1].fingerprint
    np.testing.assert_array_equal(images[0].pixels[zipped.names.index(APPLE)], newer)


@pytest.mark.parametrize("where", ["folder:", "split_cub", "split_cifar", "permuted_mnist"])
def test_odd_things_as_data_folders(tmp_path, where):
    from trainers.streams import ImageOptions, StreamRequest

    with fifo(tmp_path / "odd") as odd:
        dataset = f"folder:{odd}" if where == "folder:" else where
        with pytest.raises(DataError, match=r"odd.* is a FIFO; a folder .*is needed"):
            StreamRequest(dataset, odd, range(2), images=ImageOptions(2, 8)).open()


def test_archives_that_are_no_regular_files(tmp_path):
    with fifo(tmp_path / "cub.zip"), pytest.raises(DataError, match=r"cub\.zip is a FIFO; a folder or a zip file"):
        sources.find("split_cub", tmp_path)
    with (
        fifo(tmp_path / "cifar-100-python" / "train") as odd,
        pytest.raises(DataError, match=rf"cannot read {odd}: it is a FIFO, no regular file"),
    ):
        sources.find("split_cifar", tmp_path)


@pytest.mark.parametrize("name", ["images.txt", "classes.txt", "attributes/class_attribute_labels_continuous.txt"])
def test_tables_that_are_no_regular_files_or_too_large(tmp_path, name):
    root = made.cub(tmp_path / "cub")
    os.truncate(root / name, 2**24 + 1)
    with pytest.raises(DataError, match=rf"{name} in .* is damaged: it has 16,777,217 bytes, at most 16,777,216"):
        sources.find("split_cub", tmp_path)
    with fifo(root / name), pytest.raises(DataError, match=rf"{name} in .* is damaged: it is a FIFO"):
        sources.find("split_cub", tmp_path)


def test_links_in_a_circle_and_names_with_a_zero_byte(root, tmp_path):
    (root / "around").symlink_to(root / "around")
    (root / "train" / "around").symlink_to(root / "train" / "around")
    assert len(sources.open_folder(root).names) == 18
    (root / APPLE).unlink()
    (root / APPLE).symlink_to(root / APPLE)
    with pytest.raises(DataError, match=r"1 of 18 images .* \(it is a link that leads nowhere\)"):
        decode(sources.open_folder(root), 32, tmp_path / "cache")
    for dataset in ("split_cub", "split_cifar"):
        with pytest.raises(DataError) as error:
            sources.find(dataset, tmp_path / "a\0b")
        assert "\0" not in str(error.value)
    chain = tmp_path / "chain"
    chain.mkdir()
    (chain / "down").symlink_to(chain)
    with pytest.raises(DataError, match="no class folders in"):
        sources.open_folder(chain)


def test_a_folder_beside_that_cannot_be_listed_is_no_class_folder(tmp_path, monkeypatch):
    made.put(tmp_path / "private" / "x", b"")
    made.put(tmp_path / "zoo" / "x", b"")
    real = os.scandir

    def forbidden(path):
        if str(path).endswith("private"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", forbidden)
    with pytest.raises(DataError, match="no CUB-200-2011 under"):
        sources.find("split_cub", tmp_path)


def test_names_that_no_terminal_shows(tmp_path, cache):
    root = made.folders(tmp_path / "images")
    bad = os.fsencode(root / "train" / "apple") + b"/a\xff\n\x1b[31m.png"
    with open(bad, "wb"):
        pass
    source = sources.open_folder(root)
    with pytest.raises(DataError) as error:
        decode(source, 32, cache)
    assert str(error.value).isprintable() and "a\\udcff\\n\\x1b[31m.png (it is no" in str(error.value)


def test_lists_of_cub_that_lead_astray(tmp_path):
    root = made.cub(tmp_path / "data" / "cub")
    Image.fromarray(made.noise(0)).save(tmp_path / "data" / "secret.jpg")
    lines = (root / "images.txt").read_text().splitlines(keepends=True)

    def refused(first, match):
        made.put(root / "images.txt", "".join([first, *lines[1:]]))
        with pytest.raises(DataError, match=match):
            sources.find("split_cub", tmp_path / "data")

    refused("1 ../../secret.jpg\n", r"1 of them are missing: images/\.\./\.\./secret\.jpg")
    refused(lines[14].replace("15 ", "1 ", 1), r"lists 1 images more than once: images/010\.Red")
    refused("9" * 5000 + " a.jpg\n", r"line 1: '9+' is not a number and a value")
    made.put(root / "images.txt", "\ufeff" + "".join(lines))  # as Windows writes it
    assert len(sources.find("split_cub", tmp_path / "data").names) == 15
    made.put(root / "image_class_labels.txt", "".join(f"{at} {'9' * 5000}\n" for at in range(1, 16)))
    with pytest.raises(DataError, match=r"image 1 has '9+', allowed is 1…3"):
        sources.find("split_cub", tmp_path / "data")


def test_attributes_that_overflow(tmp_path):
    root = made.cub(tmp_path / "cub")
    made.put(root / "attributes" / "class_attribute_labels_continuous.txt", ("1e300 " * 312 + "\n") * 3)
    with pytest.raises(DataError, match="row 1: attributes must be finite"):
        sources.find("split_cub_je", tmp_path)
