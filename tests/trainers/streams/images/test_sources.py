"""Datasets of images are found in every layout, and what is wrong with one is said in one line."""

import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.support import image_folders as made
from trainers.streams import present
from trainers.streams.base import DataError
from trainers.streams.images import sources
from trainers.streams.images.inspection import differences
from trainers.streams.images.sources.awa import split

REAL = Path(__file__).parents[5] / "shared" / "data" / "cifar100.zip"


def counts(source):
    return [
        [int(((source.labels == label) & (source.parts == part)).sum()) for part in range(3)]
        for label in range(len(source.classes))
    ]


def refused(dataset, data_dir, *fragments):
    with pytest.raises(DataError) as error:
        sources.find(dataset, data_dir)
    message = str(error.value)
    assert "\n" not in message
    for fragment in fragments:
        assert fragment in message


@pytest.mark.parametrize("place", ["CUB_200_2011", "cub", "."])
def test_cub_has_its_own_split_labels_and_attributes(tmp_path, place):
    root = made.cub(tmp_path / place)
    source = sources.find("split_cub_je", tmp_path)
    assert source.classes == made.CUB_CLASSES and counts(source) == [[3, 2, 0]] * 3
    assert source.names[0] == "images/001.Black_footed_Albatross/Black_footed_Albatross_0002_3.jpg"
    assert source.attributes.shape == (3, 312) and source.attributes.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(source.attributes, axis=1), 1, rtol=1e-6)
    assert source.read(source.names[0]) == (root / source.names[0]).read_bytes()
    assert present("split_cub", tmp_path) == source.where


def test_awa_is_numbered_by_classes_txt_and_split_the_same_way_everywhere(tmp_path):
    made.awa(tmp_path / "a" / "AwA2")
    shutil.make_archive(str(tmp_path / "b" / "AwA2"), "zip", tmp_path / "a", "AwA2")
    first, second = (sources.find("split_awa_je", tmp_path / name) for name in "ab")
    assert first.classes == made.AWA_CLASSES and counts(first) == [[14, 3, 3]] * 4
    assert first.names == second.names and (first.parts == second.parts).all() and first.key != second.key
    assert first.attributes.shape == (4, 85)
    assert second.read(second.names[7]) == first.read(first.names[7])


def test_awas_split_never_changes():
    assert split("antelope", 10) == [0, 0, 2, 0, 0, 1, 0, 0, 1, 0]
    for count in range(2, 60):
        parts = split("ox", count)
        assert parts.count(0) >= 1 and parts.count(1) >= 1 and len(parts) == count


def test_the_same_images_are_listed_alike_in_every_layout(tmp_path):
    made.folders(tmp_path / "folders" / "cifar100")
    made.zipped(tmp_path / "zip" / "CIFAR100.zip")
    made.cifar(tmp_path / "pickles")
    found = [sources.find("split_cifar", tmp_path / name) for name in ("folders", "zip", "pickles")]
    own = sources.open_folder(tmp_path / "folders" / "cifar100")
    for source in (*found, own):
        assert source.classes == made.FOLDER_CLASSES and counts(source) == [[4, 2, 0]] * 3
        assert source.names == found[0].names and (source.labels == found[0].labels).all()
        assert list(source.names[:5]) == [f"train/apple/apple_s_00{at}.png" for at in range(4)] + [
            "train/bear/bear_s_000.png"
        ]
    assert len({source.key for source in found}) == 3 and own.key == found[0].key
    assert found[0].official == {"classes": 100, "train": 50000, "test": 10000} and own.official == {}


def test_the_key_changes_with_a_file(tmp_path):
    root = made.folders(tmp_path)
    before = sources.open_folder(root)
    assert sources.open_folder(root).key == before.key
    made.put(root / before.names[3], made.encoded(made.noise(99)))
    os.utime(root / before.names[3], ns=(1, 1))
    assert sources.open_folder(root).key != before.key


def test_every_fifth_image_is_for_testing_without_folders_train_and_test(tmp_path):
    for name in ("b", "a"):
        for at in range(11):
            made.put(tmp_path / name / f"{at:02}.JPG", b"")
        made.put(tmp_path / name / ".hidden.jpg", b"")
        made.put(tmp_path / name / "notes.txt", b"")
    source = sources.open_folder(tmp_path)
    assert source.classes == ("a", "b") and counts(source) == [[9, 2, 0]] * 2
    assert [name for name, part in zip(source.names, source.parts, strict=True) if part == 1][:2] == [
        "a/04.JPG",
        "a/09.JPG",
    ]


def test_class_folders_with_attributes_beside_serve_joint_embeddings(tmp_path):
    root = made.folders(tmp_path / "cub200")
    refused("split_cub_je", tmp_path, "split_cub_je needs attributes", "3×312", str(root))
    assert sources.find("split_cub", tmp_path).attributes is None
    made.put(root / "attributes" / "class_attribute_labels_continuous.txt", made.attribute_table(3, 312))
    assert sources.find("split_cub_je", tmp_path).attributes.shape == (3, 312)
    made.put(root / "classes.txt", "1 cup\n2 apple\n3 bear\n")
    assert sources.find("split_cub_je", tmp_path).classes == ("cup", "apple", "bear")
    made.put(root / "classes.txt", "1 cup\n2 apple\n3 pear\n")
    refused("split_cub_je", tmp_path, "names 3 classes that are not its 3 class folders: bear, pear")


def test_awas_attributes_need_the_order_of_the_classes(tmp_path):
    root = made.folders(tmp_path / "awa")
    made.put(root / "predicate-matrix-continuous.txt", made.attribute_table(3, 85))
    refused("split_awa_je", tmp_path, "no classes.txt")


@pytest.mark.parametrize(
    ("content", "fragment"),
    [
        (made.attribute_table(2, 312), "has shape 2×312, allowed is 3×312"),
        (made.attribute_table(3, 85), "has shape 3×85, allowed is 3×312"),
        ("1 2 x\n" * 3, "must be a table of numbers"),
        ("1 2\n1 2 3\n", "must be a table of numbers"),
        ("", "has shape 0×"),
        (("0 " * 312 + "\n") * 3, "row 1: attributes must be finite and not all zero"),
        (b"\xff\xfe\x00", "is damaged"),
    ],
)
def test_bad_attributes(tmp_path, content, fragment):
    root = made.cub(tmp_path / "cub")
    made.put(root / "attributes" / "class_attribute_labels_continuous.txt", content)
    refused("split_cub_je", tmp_path, "class_attribute_labels_continuous.txt", fragment)


@pytest.mark.parametrize(
    ("file", "content", "fragment"),
    [
        ("images.txt", "1 a/b.jpg\n2\n", "line 2: '2' is not a number and a value"),
        ("images.txt", "1 a/b.jpg\n1 a/c.jpg\n", "number 1 is there twice"),
        ("image_class_labels.txt", "1 1\n", "has 1 images, images.txt has 15 or others"),
        ("image_class_labels.txt", "".join(f"{at} 4\n" for at in range(1, 16)), "image 1 has '4', allowed is 1…3"),
        ("train_test_split.txt", "".join(f"{at} 1\n" for at in range(1, 16)), "3 of 3 classes have no test image"),
    ],
)
def test_bad_lists_of_cub(tmp_path, file, content, fragment):
    made.put(made.cub(tmp_path / "cub") / file, content)
    refused("split_cub", tmp_path, fragment)


def test_images_that_a_list_names_must_be_there(tmp_path):
    root = made.cub(tmp_path / "cub")
    shutil.rmtree(root / "images" / made.CUB_CLASSES[1])
    refused("split_cub", tmp_path, "lists 15 images, 5 of them are missing: images/002")
    (root / "classes.txt").unlink()
    refused("split_cub", tmp_path, "has no classes.txt")


def test_what_is_not_there(tmp_path):
    refused("split_cub", tmp_path / "none", "no CUB-200-2011 under", "CUB_200_2011", "--data-dir")
    refused("split_awa", tmp_path, "no AwA2 under", "Animals_with_Attributes2", "--data-dir")
    for dataset in sources.DATASETS:
        assert present(dataset, tmp_path) is None
    assert not list(tmp_path.iterdir())
    with pytest.raises(DataError, match=r"there is no .*nowhere"):
        sources.open_folder(tmp_path / "nowhere")


def test_a_failed_download_is_one_line(tmp_path, monkeypatch):
    import torchvision

    def offline(*_, **__):
        raise OSError("no route to host\nand more")

    monkeypatch.setattr(torchvision.datasets, "CIFAR100", offline)
    refused("split_cifar", tmp_path, "the download failed (no route to host)", "cifar100.zip")


def test_zip_files_that_are_none(tmp_path):
    path = made.put(tmp_path / "cifar100.zip", b"not a zip")
    refused("split_cifar", tmp_path, f"{path} is not a zip file")
    assert present("split_cifar", tmp_path) is None
    made.zipped(path)
    path.write_bytes(path.read_bytes()[:-40])
    refused("split_cifar", tmp_path, f"{path} is not a zip file")
    made.zipped(path, {"a.png": made.noise(0)}, top="")
    refused("split_cifar", tmp_path, "no class folders in", "train/<class>/")


def test_class_folders_that_lack_something(tmp_path):
    root = made.folders(tmp_path / "cifar100")
    (root / "train" / "empty").mkdir()
    refused("split_cifar", tmp_path, "1 of 4 classes have no train image (empty)")
    (root / "train" / "empty").rmdir()
    shutil.rmtree(root / "test" / "cup")
    refused("split_cifar", tmp_path, "1 of 3 classes have no test image (cup)")
    shutil.rmtree(root / "test")
    refused("split_cifar", tmp_path, "has a folder train but no folder test")


LOOKED = "looked for train/<class>/ and test/<class>/, or <class>/, with images in each"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["tmp/[/apple/1.png", "[/x.txt"], "2 of 2 folders hold no image themselves ([, tmp)"),
        (["a/1.png", "b/images/1.png"], "1 of 2 folders hold no image themselves (b)"),
        (["Train/a/1.png", "TEST/a/1.png"], "it has TEST, Train, folders of parts are called train and test"),
        (["Train/1.png", "Test/1.png"], "it has Test, Train, folders of parts are called train and test"),
        (["train/a/images/1.png", "test/a/1.png"], "1 of 1 folders hold no image themselves (train/a)"),
        (["train/1.png", "test/a/1.png"], "train has no folders"),
        (["1.png", "2.png"], "it has no folders"),
        (["__MACOSX/a/1.png", ".git/a/1.png", "lost+found/1.png"], "it has no folders"),
    ],
)
def test_folders_that_are_no_classes(tmp_path, packed, names, told):
    root = tmp_path / "cub"
    for name in names:
        made.put(root / name, b"")
    if packed:
        shutil.make_archive(str(root), "zip", root)
        shutil.rmtree(root)
    where = tmp_path / "cub.zip" if packed else root
    with pytest.raises(DataError) as error:
        sources.open_folder(where)
    assert str(error.value) == f"no class folders in {where}: {told}; {LOOKED}"
    refused("split_cub", tmp_path, f"no class folders in {where}: {told}; {LOOKED}, or CUB-200-2011 as published")


def test_what_an_archive_has_around_its_class_folders(tmp_path):
    """As one of absolute paths has; what systems and people leave beside is not looked at."""
    root = made.folders(tmp_path / "a" / "home" / "[me]" / "data")
    for name in ("__MACOSX/train/apple/._1.png", "lost+found/1.png", "home/[me]/readme.txt", "cover.png"):
        made.put(tmp_path / "a" / name, b"")
    shutil.make_archive(str(tmp_path / "a"), "zip", tmp_path / "a")
    plain = sources.open_folder(root)
    for place in (tmp_path / "a", tmp_path / "a.zip"):
        source = sources.open_folder(place)
        assert source.names == plain.names and source.classes == made.FOLDER_CLASSES


def test_a_class_may_be_called_attributes(tmp_path):
    for name in ("attributes", "others"):
        for at in range(5):
            made.put(tmp_path / name / f"{at}.png", b"")
    assert sources.open_folder(tmp_path).classes == ("attributes", "others")


def test_a_data_folder_full_of_other_things_is_no_dataset(tmp_path):
    made.put(tmp_path / "mnist" / "raw.gz", b"")
    made.put(tmp_path / "photos" / "cat.jpg", b"")
    assert present("split_cub", tmp_path) is None
    refused("split_cub", tmp_path, "no CUB-200-2011")


def test_joint_embeddings_share_the_cache_of_the_plain_dataset(tmp_path):
    made.cub(tmp_path / "cub")
    plain, joint = (sources.find(name, tmp_path) for name in ("split_cub", "split_cub_je"))
    assert plain.key == joint.key


def test_the_published_layout_is_found_inside_archives_and_before_class_folders(tmp_path):
    made.folders(tmp_path / "data" / "cub")
    made.cub(tmp_path / "whole" / "CUB_200_2011")
    shutil.make_archive(str(tmp_path / "data" / "CUB_200_2011"), "zip", tmp_path / "whole")
    archive = tmp_path / "data" / "CUB_200_2011.zip"
    for place in (tmp_path / "data", archive):
        source = sources.find("split_cub", place)
        assert source.classes == made.CUB_CLASSES and source.where == f"{archive}/CUB_200_2011"


def test_a_data_folder_that_cannot_be_listed_is_one_line(tmp_path, monkeypatch):
    def forbidden(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", forbidden)
    refused("split_cub", tmp_path, f"cannot read {tmp_path}", "Permission denied")


def test_damaged_pickles(tmp_path):
    made.cifar(tmp_path)
    folder = tmp_path / "cifar-100-python"
    content = (folder / "train").read_bytes()
    made.put(folder / "train", content[:-100])
    refused("split_cifar", tmp_path, "not one of CIFAR-100's pickles, or damaged")
    made.put(folder / "train", pickle.dumps({"data": 1}))
    refused("split_cifar", tmp_path, "lacks fine_labels, filenames")
    made.put(folder / "train", pickle.dumps(os.system))
    refused("split_cifar", tmp_path, "it wants")
    wrong = pickle.loads(content)
    made.put(folder / "train", pickle.dumps(wrong | {"fine_labels": [7] * 12}))
    refused("split_cifar", tmp_path, "has the label 7, allowed are 0…2")


def test_the_pickles_of_cifar_10(tmp_path):
    """The same images, in five pickles to train on and one to test on."""
    made.cifar(tmp_path / "hundred")
    made.cifar10(tmp_path / "ten")
    found, wanted = sources.find("split_cifar10", tmp_path / "ten"), sources.find("split_cifar", tmp_path / "hundred")
    assert found.names == wanted.names and (found.labels == wanted.labels).all() and (found.parts == wanted.parts).all()
    for name in found.names:
        np.testing.assert_array_equal(found.read(name), made.class_files()[name])
    assert found.official == {"classes": 10, "train": 50000, "test": 10000}
    assert sources.present("split_cifar", tmp_path / "ten") is None
    (tmp_path / "ten" / "cifar-10-batches-py" / "data_batch_3").write_bytes(b"")
    refused("split_cifar10", tmp_path / "ten", "not one of CIFAR-10's pickles, or damaged")


def test_cifar_10_is_downloaded_as_such(tmp_path, monkeypatch):
    import torchvision

    def offline(root, download):
        raise OSError("no route to host")

    monkeypatch.setattr(torchvision.datasets, "CIFAR10", offline)
    refused("split_cifar10", tmp_path, "no CIFAR-10 under", "the download failed (no route to host)", "cifar10.zip")


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        ({"fine_labels": [None] * 12}, "must hold a list of numbers under 'fine_labels'"),
        ({"fine_labels": [10**5000] * 12}, "must hold a list of numbers under 'fine_labels'"),
        ({"fine_labels": 3}, "must hold a list of numbers under 'fine_labels'"),
        ({"filenames": [b"a"] * 12}, "must hold a list of names under 'filenames'"),
        ({"filenames": ["a"] * 11}, "has 12 images, 12 labels and 11 names"),
        ({"data": [1, 2]}, "must hold bytes [n, 3072] under 'data'"),
        ({"data": np.zeros((12, 3072), np.int16)}, "must hold bytes [n, 3072] under 'data'"),
        ({"data": np.zeros((12, 3072), object)}, "it wants an array of 'O8'"),
    ],
)
def test_pickles_with_other_content(tmp_path, change, fragment):
    made.cifar(tmp_path)
    path = tmp_path / "cifar-100-python" / "train"
    made.put(path, pickle.dumps(pickle.loads(path.read_bytes()) | change))
    refused("split_cifar", tmp_path, str(path), fragment)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_of_every_protocol(tmp_path, protocol):
    made.cifar(tmp_path)
    wanted = sources.find("split_cifar", tmp_path)
    for name in ("train", "test", "meta"):
        path = tmp_path / "cifar-100-python" / name
        content = pickle.loads(path.read_bytes())
        if "fine_labels" in content:
            content["fine_labels"] = np.array(content["fine_labels"], ">i4" if name == "test" else "<i8")
        made.put(path, pickle.dumps(content, protocol))
    found = sources.find("split_cifar", tmp_path)
    assert found.names == wanted.names and (found.labels == wanted.labels).all()
    for name in found.names:
        np.testing.assert_array_equal(found.read(name), made.class_files()[name])


def test_pickles_that_would_have_numpy_read_foreign_memory_or_reserve_too_much(tmp_path):
    """A dtype that says it holds no objects though it does; a place among 4 billion remembered ones."""
    made.cifar(tmp_path)
    path = tmp_path / "cifar-100-python" / "meta"
    made.put(path, b"cnumpy\ndtype\n(S'V8'\nI0\nI1\ntR.")
    refused("split_cifar", tmp_path, "it wants an array of 'V8'")
    made.put(path, b"}r\xff\xff\xff\x7f.")
    refused("split_cifar", tmp_path, "it lacks fine_label_names")
    made.put(path, b"B\xff\xff\xff\xff.")
    refused("split_cifar", tmp_path, "or damaged: EOFError")
    made.put(path, b"c_codecs\nencode\n(S'a'\nS'zlib'\ntR.")
    refused("split_cifar", tmp_path, "it wants the encoding 'zlib'")


def test_official_counts_are_compared():
    official = sources.DATASETS["split_cub"].official
    assert differences({"train": 5994, "test": 5794}, 200, official) == []
    assert differences({"train": 5993, "test": 5794}, 200, official) == [
        "train: 5,993 here, 5,994 in the published dataset"
    ]


@pytest.mark.slow
@pytest.mark.skipif(not REAL.exists(), reason="no CIFAR-100 beside the repository")
def test_the_real_cifar_100():
    source = sources.find("split_cifar", REAL.parent)
    assert len(source.classes) == 100 and counts(source) == [[500, 100, 0]] * 100
    assert source.classes[:3] == ("apple", "aquarium_fish", "baby") and source.classes[99] == "worm"
    assert differences({"train": 50000, "test": 10000}, 100, source.official) == []
