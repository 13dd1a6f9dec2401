"""Small datasets of images in the layouts that real ones have, made of noise."""

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

CUB_CLASSES = ("001.Black_footed_Albatross", "002.Laysan_Albatross", "010.Red_winged_Blackbird")
AWA_CLASSES = ("antelope", "grizzly+bear", "killer+whale", "beaver")  # the published order is not that of the names
FOLDER_CLASSES = ("apple", "bear", "cup")
BIRDS = tuple(f"{at:03}.Bird_{at}" for at in range(1, 9))
ANIMALS = ("zebra", "antelope", "bat", "cow", "dolphin", "elk", "fox", "giraffe")


def noise(seed, width=32, height=32):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def encoded(pixels, kind="PNG"):
    """A file's bytes."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **({"quality": 90} if kind == "JPEG" else {}))
    return file.getvalue()


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content) if isinstance(content, bytes) else path.write_text(content, encoding="utf-8")
    return path


def attribute_table(rows, columns, seed=0):
    table = np.random.default_rng(seed).uniform(0, 100, (rows, columns))
    return "\n".join(" ".join(f"{value:.2f}" for value in row) for row in table) + "\n"


def cub(root: Path, train=3, test=2, classes=CUB_CLASSES):
    """CUB-200-2011's layout with a few classes; test images come first in the lists."""
    images, labels, split = [], [], []
    for label, name in enumerate(classes, start=1):
        for at in range(train + test):
            number = len(images) + 1
            file = f"{name}/{name[4:]}_{at:04}_{number}.jpg"
            put(root / "images" / file, encoded(noise(number, 50, 37), "JPEG"))
            images.append(f"{number} {file}\n")
            labels.append(f"{number} {label}\n")
            split.append(f"{number} {int(at >= test)}\n")
    put(root / "images.txt", "".join(images))
    put(root / "image_class_labels.txt", "".join(labels))
    put(root / "train_test_split.txt", "".join(split))
    put(root / "classes.txt", "".join(f"{at} {name}\n" for at, name in enumerate(classes, start=1)))
    put(root / "attributes" / "class_attribute_labels_continuous.txt", attribute_table(len(classes), 312))
    return root


def awa(root: Path, count=20, classes=AWA_CLASSES):
    """AwA2's layout with a few classes."""
    for label, name in enumerate(classes):
        for at in range(count):
            file = f"{name}_{10001 + at}.jpg"
            put(root / "JPEGImages" / name / file, encoded(noise(1000 * label + at, 44, 50), "JPEG"))
    put(root / "classes.txt", "".join(f"{at}\t{name}\n" for at, name in enumerate(classes, start=1)))
    put(root / "predicate-matrix-continuous.txt", attribute_table(len(classes), 85))
    return root


def class_files(train=4, test=2, side=32):
    """{"train/apple/apple_s_000.png": pixels}: the images of folders(), zipped() and cifar()."""
    found = {}
    for part, count in (("train", train), ("test", test)):
        for name in FOLDER_CLASSES:
            for at in range(count):
                found[f"{part}/{name}/{name}_s_{at:03}.png"] = noise(len(found), side, side)
    return found


def folders(root: Path, files=None):
    for name, pixels in (files or class_files()).items():
        put(root / name, encoded(pixels))
    return root


def every_layout(root: Path, copies=False):
    """CUB and AwA2 as published, and class folders `mine`; eight classes each, and always the same bytes.

    copies: the test images of `mine` are images that it trains on, too.
    """
    cub(root / "CUB_200_2011", train=6, test=2, classes=BIRDS)
    awa(root / "Animals_with_Attributes2", 20, ANIMALS)
    files = {}
    for at, name in enumerate(ANIMALS):
        for part, count, first in (("train", 6, 0), ("test", 2, 0 if copies else 50)):
            files |= {f"{part}/{name}/{n}.png": noise(100 * at + first + n, 20, 20) for n in range(count)}
    folders(root / "mine", files)
    return root


def zipped(path: Path, files=None, top="cifar100/"):
    """Class folders in a zip file, with one folder around them; the entries are in no order."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, pixels in reversed((files or class_files()).items()):
            archive.writestr(top + name, encoded(pixels))
    return path


def cifar10(root: Path):
    """CIFAR-10's pickles of the same images: those to train on in five of them, a few in each."""
    files, folder = class_files(), root / "cifar-10-batches-py"
    parts = {part: [name for name in files if name.startswith(part)] for part in ("train", "test")}
    batches = {f"data_batch_{number + 1}": parts["train"][number::5] for number in range(5)}
    for batch, names in (batches | {"test_batch": parts["test"]}).items():
        content = {
            "data": np.stack([files[name].transpose(2, 0, 1).reshape(-1) for name in names]),
            "labels": [FOLDER_CLASSES.index(name.split("/")[1]) for name in names],
            "filenames": [name.split("/")[2] for name in names],
        }
        put(folder / batch, pickle.dumps(content))
    put(folder / "batches.meta", pickle.dumps({"label_names": list(FOLDER_CLASSES)}))
    return root


def cifar(root: Path, files=None):
    """torchvision's pickles of the same images, in no order."""
    for part in ("train", "test"):
        named = [(name, pixels) for name, pixels in (files or class_files()).items() if name.startswith(part)][::-1]
        content = {
            "data": np.stack([pixels.transpose(2, 0, 1).reshape(-1) for _, pixels in named]),
            "fine_labels": [FOLDER_CLASSES.index(name.split("/")[1]) for name, _ in named],
            "filenames": [name.split("/")[2] for name, _ in named],
        }
        put(root / "cifar-100-python" / part, pickle.dumps(content))
    put(root / "cifar-100-python" / "meta", pickle.dumps({"fine_label_names": list(FOLDER_CLASSES)}))
    return root
