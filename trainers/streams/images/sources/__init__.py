"""Where datasets of images lie: the published layouts, class folders and zip files of either."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from trainers.streams.base import DataError
from trainers.streams.download import download
from trainers.streams.files import odd_kind
from trainers.streams.images.sources import awa, cifar, cub, folders
from trainers.streams.images.sources.base import PARTS, Damaged, Source
from trainers.streams.images.sources.tables import AWA_ATTRIBUTES, CUB_ATTRIBUTES
from trainers.streams.images.sources.trees import FolderTree, Tree, open_tree

__all__ = ["DATASETS", "PARTS", "Damaged", "Source", "find", "open_folder", "present"]


class Family(NamedTuple):
    """A published dataset. names: of folders and zip files under data_dir, lower case, the preferred ones first.

    columns: of its attributes. attributes: the file that holds them.
    """

    title: str
    names: tuple[str, ...]
    official: dict[str, int]
    wanted: str
    columns: int | None = None
    attributes: str = ""
    matches: Callable[[Tree], bool] = lambda tree: False
    read: Callable[[Tree], Source] = folders.read
    downloaded_as: str = ""  # torchvision's class; "" where torchvision has none


class Published(NamedTuple):
    """A dataset whose tasks have been published."""

    family: Family
    embedding: bool = False
    """Whether classes are known by their attributes, in a joint embedding with images."""
    recurring: bool = False
    """Whether a class of one task may come back in another."""


class Found(NamedTuple):
    """A place that has the images, and how they are listed."""

    where: str
    read: Callable[[], Source]


CIFAR = Family("CIFAR-100", cifar.NAMES, cifar.OFFICIAL, cifar.WANTED, downloaded_as="CIFAR100")
CUB = Family("CUB-200-2011", cub.NAMES, cub.OFFICIAL, cub.WANTED, cub.COLUMNS, CUB_ATTRIBUTES, cub.matches, cub.read)
AWA = Family("AwA2", awa.NAMES, awa.OFFICIAL, awa.WANTED, awa.COLUMNS, AWA_ATTRIBUTES, awa.matches, awa.read)
DATASETS: dict[str, Published] = {
    "split_cifar": Published(CIFAR),
    "split_cub": Published(CUB),
    "split_cub_je": Published(CUB, embedding=True),
    "split_awa": Published(AWA, recurring=True),
    "split_awa_je": Published(AWA, embedding=True, recurring=True),
}


def find(dataset: str, data_dir: Path) -> Source:
    """The images of one of DATASETS, downloaded where they are missing and torchvision can.

    Raises DataError where the images are missing or not as they should be.
    """
    family = DATASETS[dataset].family
    found = _locate(family, data_dir)
    if found is None and family.downloaded_as:
        download(family.downloaded_as, family.title, data_dir, family.wanted)
        found = _locate(family, data_dir)
    if found is None:
        raise DataError(f"no {family.title} under {data_dir}; {family.wanted}, or give another folder with --data-dir")
    source = replace(found.read(), official=family.official)
    if DATASETS[dataset].embedding and source.attributes is None:
        shape = f"{len(source.classes)}×{family.columns}"
        raise DataError(f"{dataset} needs attributes ({family.attributes}, {shape}), and {source.where} has none")
    return source


def present(dataset: str, data_dir: Path) -> str | None:
    """Where one of DATASETS lies, or None; downloads nothing and lists no images."""
    try:
        found = _locate(DATASETS[dataset].family, data_dir)
    except DataError:
        return None
    return None if found is None else found.where


def open_folder(path: Path) -> Source:
    """The user's own class folders, or a zip file of them. Raises DataError."""
    return folders.read(open_tree(path))


def _locate(family: Family, data_dir: Path) -> Found | None:
    """The published layout anywhere, else class folders."""
    if kind := odd_kind(data_dir):
        raise DataError(f"data-dir {data_dir} is {kind}; a folder or a zip file of images is needed")
    pickles = cifar.folder(data_dir) if family is CIFAR else None
    if pickles is not None:
        return Found(str(pickles), lambda: cifar.read(pickles))
    meant = [open_tree(path) for path in _named(family, data_dir)]  # for this dataset, whatever they hold
    meant += [open_tree(data_dir)] if os.path.isfile(data_dir) else []
    other = [FolderTree(data_dir)]
    inside = [tree.below(folder) for tree in meant for folder in tree.folders("")]
    published = next((tree for tree in (*meant, *other, *inside) if family.matches(tree)), None)
    if published is not None:
        return Found(published.where, lambda: family.read(published))
    also = f", or {family.title} as published"
    plain = next((tree for tree in (*meant, *filter(folders.matches, other))), None)
    return None if plain is None else Found(plain.where, lambda: folders.read(plain, family.columns, also))


def _named(family: Family, data_dir: Path) -> Iterator[Path]:
    """Folders and zip files under data_dir with the family's names in any case."""
    tree = FolderTree(data_dir)
    for name in family.names:
        yield from (data_dir / folder for folder in tree.folders("") if folder.lower() == name)
        yield from (data_dir / file for file in tree.files("") if file.lower() == f"{name}.zip")
