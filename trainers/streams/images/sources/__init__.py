"""Layouts of image datasets: published ones, class folders, zip files."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from trainers.streams.base import DataError
from trainers.streams.download import download
from trainers.streams.files import odd_kind
from trainers.streams.images.sources import awa, cifar, cub, folders
from trainers.streams.images.sources.base import PARTS, DamagedImage, Source
from trainers.streams.images.sources.tables import AWA_ATTRIBUTES, CUB_ATTRIBUTES
from trainers.streams.images.sources.trees import FolderTree, Tree, open_tree

__all__ = ["DATASETS", "PARTS", "DamagedImage", "Source", "find", "open_folder", "present"]


class _Published(NamedTuple):
    """A published dataset, cut into tasks as published."""

    title: str
    names: tuple[str, ...]
    """Of folders and zip files under data_dir, lower case, the preferred ones first."""
    official: dict[str, int]
    """Its published counts, as `Source.official`."""
    wanted: str
    """What a user without it should put where."""
    columns: int | None = None
    """Attributes of a class, None where there are none."""
    attributes: str = ""
    """The file that holds them."""
    matches: Callable[[Tree], bool] = lambda tree: False
    """Whether a tree is laid out as published."""
    read: Callable[[Tree], Source] = folders.read
    """Of a tree that matches."""
    pickles: cifar.Pickles | None = None
    """Its layout as pickles; None where it has none."""
    downloaded_as: str = ""
    """torchvision's class; "" where torchvision has none."""
    embedding: bool = False
    """Whether classes are known by their attributes, in a joint embedding with images."""
    recurring: bool = False
    """Whether a class of one task may come back in another."""


CIFAR_10, CIFAR_100 = (
    _Published(
        title=pickles.title,
        names=pickles.names,
        official={"classes": classes, "train": 50000, "test": 10000},
        wanted=f"put torchvision's {pickles.folder} there, or class folders in {pickles.names[0]} or "
        f"{pickles.names[0]}.zip",
        downloaded_as=pickles.title.replace("-", ""),
        pickles=pickles,
    )
    for pickles, classes in ((cifar.CIFAR10, 10), (cifar.CIFAR100, 100))
)
CUB = _Published(
    title="CUB-200-2011",
    names=("cub_200_2011", "cub-200-2011", "cub200", "cub-200", "cub_200", "cub"),
    official={"classes": 200, "train": 5994, "test": 5794},
    wanted="put the folder CUB_200_2011 of the published archive there (images/, images.txt, train_test_split.txt, …)",
    columns=cub.COLUMNS,
    attributes=CUB_ATTRIBUTES,
    matches=cub.matches,
    read=cub.read,
)
AWA = _Published(
    title="AwA2",
    names=("animals_with_attributes2", "awa2", "awa", "awa2-data"),
    official={"classes": 50, "images": 37322},
    wanted="put the folder Animals_with_Attributes2 of the published archive there (JPEGImages/, classes.txt, …)",
    columns=awa.COLUMNS,
    attributes=AWA_ATTRIBUTES,
    matches=awa.matches,
    read=awa.read,
)
DATASETS: dict[str, _Published] = {
    "split_cifar": CIFAR_100,
    "split_cifar10": CIFAR_10,
    "split_cub": CUB,
    "split_cub_je": CUB._replace(embedding=True),
    "split_awa": AWA._replace(recurring=True),
    "split_awa_je": AWA._replace(embedding=True, recurring=True),
}


def find(dataset: str, data_dir: Path) -> Source:
    """Returns the images of one of DATASETS, downloaded where they are missing and torchvision can.

    Raises DataError where the images are missing or not as they should be.
    """
    published = DATASETS[dataset]
    place = _locate(published, data_dir)
    if place is None and published.downloaded_as:
        download(published.downloaded_as, published.title, data_dir, published.wanted)
        place = _locate(published, data_dir)
    if place is None:
        raise DataError(
            f"no {published.title} under {data_dir}; {published.wanted}, or give another folder with --data-dir"
        )
    _, read = place
    source = replace(read(), official=published.official)
    if published.embedding and source.attributes is None:
        shape = f"{len(source.classes)}×{published.columns}"
        raise DataError(f"{dataset} needs attributes ({published.attributes}, {shape}), and {source.where} has none")
    return source


def present(dataset: str, data_dir: Path) -> str | None:
    """Returns the place of one of DATASETS, or None; downloads nothing and lists no images.

    Raises DataError where what lies there cannot be read.
    """
    place = _locate(DATASETS[dataset], data_dir)
    return None if place is None else place[0]


def open_folder(path: Path) -> Source:
    """Returns the user's own class folders, or a zip file of them. Raises DataError."""
    return folders.read(open_tree(path))


def _locate(known: _Published, data_dir: Path) -> tuple[str, Callable[[], Source]] | None:
    """Returns (place, reader) of the published layout anywhere, else of class folders. Raises DataError."""
    if kind := odd_kind(data_dir):
        raise DataError(f"data-dir {data_dir} is {kind}; a folder or a zip file of images is needed")
    layout = known.pickles
    pickles = cifar.folder(layout, data_dir) if layout else None
    if layout and pickles:
        return str(pickles), lambda: cifar.read(layout, pickles)
    meant = [open_tree(path) for path in _paths_of(known, data_dir)]  # for this dataset, whatever they hold
    meant += [open_tree(data_dir)] if os.path.isfile(data_dir) else []
    other = [FolderTree(data_dir)]
    inside = [tree.below(folder) for tree in meant for folder in tree.folders("")]
    published = next((tree for tree in (*meant, *other, *inside) if known.matches(tree)), None)
    if published is not None:
        return published.where, lambda: known.read(published)
    also = f", or {known.title} as published"
    plain = next((tree for tree in (*meant, *filter(folders.matches, other))), None)
    return None if plain is None else (plain.where, lambda: folders.read(plain, known.columns, also))


def _paths_of(published: _Published, data_dir: Path) -> Iterator[Path]:
    """Yields folders and zip files under data_dir with the names of the dataset in any case."""
    tree = FolderTree(data_dir)
    for name in published.names:
        yield from (data_dir / folder for folder in tree.folders("") if folder.lower() == name)
        yield from (data_dir / file for file in tree.files("") if file.lower() == f"{name}.zip")
