"""Where datasets of images lie: the published layouts, class folders and zip files of either."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
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


class Found(NamedTuple):
    """A place that has the images, and how they are listed."""

    where: str
    read: Callable[[], Source]


CIFAR = Family("CIFAR-100", cifar.NAMES, cifar.OFFICIAL, cifar.WANTED)
CUB = Family("CUB-200-2011", cub.NAMES, cub.OFFICIAL, cub.WANTED, cub.COLUMNS, CUB_ATTRIBUTES, cub.matches, cub.read)
AWA = Family("AwA2", awa.NAMES, awa.OFFICIAL, awa.WANTED, awa.COLUMNS, AWA_ATTRIBUTES, awa.matches, awa.read)
DATASETS = MappingProxyType(
    {"split_cifar": CIFAR, "split_cub": CUB, "split_cub_je": CUB, "split_awa": AWA, "split_awa_je": AWA}
)


def find(dataset: str, data_dir: Path) -> Source:
    """The images of one of DATASETS; only CIFAR-100 is downloaded where it is missing.

    Those that end in _je have attributes. Raises DataError where the images are missing or not as they should be.
    """
    family = DATASETS[dataset]
    found = _locate(family, data_dir)
    if found is None and family is CIFAR:
        download("CIFAR100", family.title, data_dir, family.wanted)
        found = _locate(family, data_dir)
    if found is None:
        raise DataError(f"no {family.title} under {data_dir}; {family.wanted}, or give another folder with --data-dir")
    source = replace(found.read(), official=family.official)
    if dataset.endswith("_je") and source.attributes is None:
        shape = f"{len(source.classes)}×{family.columns}"
        raise DataError(f"{dataset} needs attributes ({family.attributes}, {shape}), and {source.where} has none")
    return source


def present(dataset: str, data_dir: Path) -> str | None:
    """Where one of DATASETS lies, or None; downloads nothing and lists no images."""
    try:
        found = _locate(DATASETS[dataset], data_dir)
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
