"""Whatever lies in a folder of images is read, counted or refused."""

import os
import shutil

import numpy as np
import pytest

from tests.support import image_folders as made
from trainers.streams.base import DataError
from trainers.streams.images import sources
from trainers.streams.images.decode import decode
from trainers.streams.images.inspection import inspect

ANT = "train/apple"
CUB_TABLE = "attributes/class_attribute_labels_continuous.txt"


@pytest.fixture(params=["folder", "zip"])
def opened(request, tmp_path):
    """A function that opens what was put into the folder, or a zip file of it."""

    def function(root):
        if request.param == "folder":
            return sources.open_folder(root)
        shutil.make_archive(str(tmp_path / "packed"), "zip", root)
        return sources.open_folder(tmp_path / "packed.zip")

    return function


@pytest.mark.parametrize("suffix", ["jfif", "JFIF", "pjpeg", "pjp", "jif", "jfi", "apng"])
def test_other_names_of_images_are_read(tmp_path, cache, opened, suffix):
    root = made.folders(tmp_path / "images")
    kind = "PNG" if suffix == "apng" else "JPEG"
    made.put(root / ANT / f"more.{suffix}", made.encoded(made.noise(1), kind))
    images = decode(opened(root), 32, cache)
    assert len(images.labels) == 19


def beside(root, name):
    made.put(root / name, made.encoded(made.noise(2)))


LEFT_OUT = {
    "unknown suffixes": (
        [f"{ANT}/{name}" for name in ("a.heic", "b.heic", "Thumbs.db", "README")],
        "4 files that are no images by their names (2 .heic, 1 without a suffix, 1 .db) in class folders",
    ),
    "many suffixes": (
        [f"{ANT}/a.{letter}" for letter in "vwxyz"],
        "5 files that are no images by their names (1 .v, 1 .w, 1 .x, …) in class folders",
    ),
    "folders within": ([f"{ANT}/more/x.png", "test/cup/a/b/x.png"], "2 folders in class folders"),
    "files and folders": (
        [f"{ANT}/x.txt", f"{ANT}/more/x.png"],
        "1 files that are no images by their names (1 .txt) and 1 folders in class folders",
    ),
    "valid": (["valid/apple/x.png", "valid/cup/y.png", "valid/z.txt"], "valid/ (2 images)"),
    "val and more": (["val/apple/x.png", "extra/y.png"], "extra/ (1 images) and val/ (1 images)"),
    "outside": (["x.png", "train/y.png"], "2 images outside class folders"),
    "both": (
        ["val/apple/x.png", f"{ANT}/x.svg"],
        "val/ (1 images); 1 files that are no images by their names (1 .svg) in class folders",
    ),
}


@pytest.mark.parametrize("what", LEFT_OUT)
def test_what_is_left_out_is_counted_in_one_line(tmp_path, cache, opened, told, what):
    root = made.folders(tmp_path / "images")
    names, line = LEFT_OUT[what]
    for name in names:
        beside(root, name)
    source = opened(root)
    assert inspect(source, 32, cache).left_out == source.left_out == line
    assert len(decode(source, 32, cache).labels) == 18
    assert told == [f"{source.where}: left out are {line}"]


def test_nothing_is_said_where_nothing_is_left_out(tmp_path, cache, opened, told):
    root = made.folders(tmp_path / "images")
    made.put(root / "README.md", "images of three things")
    assert opened(root).left_out == "" and not told
    plain = {name.removeprefix("train/"): one for name, one in made.class_files(train=5).items() if "train" in name}
    assert opened(made.folders(tmp_path / "plain", plain)).left_out == ""


def test_a_third_part_in_the_place_of_test_is_named(tmp_path):
    root = made.folders(tmp_path / "images")
    (root / "test").rename(root / "valid")
    with pytest.raises(DataError, match=r"has a folder train but no folder test, and valid; looked for"):
        sources.open_folder(root)


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
def test_links_that_lead_nowhere_are_corrupt_until_they_lead_somewhere(tmp_path, cache):
    root, elsewhere = made.folders(tmp_path / "images"), tmp_path / "elsewhere.png"
    for at in range(2):
        os.symlink(elsewhere, root / ANT / f"link{at}.png")
    with pytest.raises(DataError, match=r"2 of 20 images .*link0\.png \(it is a link that leads nowhere\)"):
        decode(sources.open_folder(root), 32, cache)
    assert len(decode(sources.open_folder(root), 32, cache, skip_corrupt=True).labels) == 18
    made.put(elsewhere, made.encoded(made.noise(1)))
    assert len(decode(sources.open_folder(root), 32, cache).labels) == 20


NAMES = ["brown bear", "grey fox", "7 up", "sea  lion"]


@pytest.mark.parametrize("line", ["{name}", "{at} {name}", "{at}\t{name}", "{at}. {name}", "  {name}  "])
def test_names_of_classes_may_have_spaces(tmp_path, opened, line):
    root = made.folders(
        tmp_path / "x", {f"{part}/{name}/0.png": made.noise(1) for part in ("train", "test") for name in NAMES}
    )
    lines = [line.format(name=name, at=at) for at, name in enumerate(reversed(NAMES), start=1)]
    made.put(root / "classes.txt", "\r\n".join(lines) + "\n")
    assert opened(root).classes == tuple(reversed(NAMES))


def test_names_of_classes_that_are_no_folders(tmp_path):
    root = made.folders(
        tmp_path / "x", {f"{part}/{name}/0.png": made.noise(1) for part in ("train", "test") for name in NAMES}
    )
    made.put(root / "classes.txt", "\n".join(["brown bears", *NAMES[1:]]))
    with pytest.raises(DataError, match=r"names 4 classes that are not its 4 class folders: brown bear, brown bears"):
        sources.open_folder(root)


def numbered(root, names):
    made.folders(root, {f"{part}/{name}/0.png": made.noise(1) for part in ("train", "test") for name in names})
    made.put(root / CUB_TABLE, "\n".join(" ".join(map(str, row)) for row in np.eye(len(names))))
    return root


@pytest.mark.parametrize(
    "names",
    [
        [str(at) for at in range(1, 13)],
        [str(at) for at in range(12)],
        [f"{at}.bird" for at in range(1, 13)],
        [f"{at:03}.bird" for at in range(1, 13)],
        ["003", "007"],
    ],
)
def test_folder_n_has_row_n_of_cubs_attributes(tmp_path, opened, names):
    source = opened(numbered(tmp_path / "x", names))
    assert list(source.classes) == names
    np.testing.assert_array_equal(source.attributes, np.eye(len(names)))


def test_numbers_with_gaps_need_names(tmp_path, opened):
    root = numbered(tmp_path / "x", ["2", "7", "10"])
    with pytest.raises(DataError, match=r"numbered folders with gaps, but no classes\.txt"):
        opened(root)
    made.put(root / "classes.txt", "2\n7\n10\n")
    assert opened(root).classes == ("2", "7", "10")
