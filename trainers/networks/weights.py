"""Starts of members: random, one a seed, or pretrained weights."""

import hashlib
import os
import pickle
import zipfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

import numpy as np
import torch
from torch import Tensor

from trainers.networks.base import Network
from trainers.networks.heads import Linear
from trainers.networks.resnet import STANDARD, ResNet
from trainers.notes import first_line, notify
from trainers.schedule import generator
from trainers.streams.base import DataError
from trainers.streams.files import open_regular, too_large

IMAGENET = "imagenet"
LARGEST = 2**31  # bytes of a file of weights, unpacked; a ResNet-18 has 47 million
# What torchvision's file holds of batch normalisation besides: members start with statistics of their own.
NOT_PARAMETERS = ("running_mean", "running_var", "num_batches_tracked")


def start_rows(net: Network, seeds: Sequence[int], tasks: Sequence[int], pretrained: str | None) -> Tensor:
    """Returns the untrained network of each seed, [S, D].

    All but its head comes from pretrained weights where there are some.

    tasks: those of the stream, whose lowest number goes into the draw, so that D^CV and D^EV start from different ones.
    Raises DataError.
    """
    rows = torch.from_numpy(np.stack([net.init(generator(seed, "init", min(tasks))) for seed in seeds]))
    if pretrained is not None:
        assert isinstance(net, ResNet)  # Architecture has seen to it
        put(net, rows, load(pretrained), pretrained)
    return rows


def put(net: ResNet, rows: Tensor, weights: dict[str, Tensor], source: str) -> None:
    """Writes pretrained weights over the rows, but for the head. Raises DataError where they do not fit.

    As in A-GEM's released code, moving averages are not among them: they start as those of an untrained network.
    """
    backbone = {name: view for name, view in net.layout.views(rows).items() if not _of_head(name)}
    tensors = {
        name: value for name, value in weights.items() if not _of_head(name) and not name.endswith(NOT_PARAMETERS)
    }
    if tensors.keys() != backbone.keys():
        name = min(tensors.keys() ^ backbone.keys())
        kind = "lack" if name in backbone else "also have"
        raise DataError(f"the weights in {source} are not those of a ResNet-18 of torchvision: they {kind} {name}")
    for name, view in backbone.items():
        if tensors[name].shape != view.shape[1:]:
            shapes = ["×".join(map(str, shape)) for shape in (tensors[name].shape, view.shape[1:])]
            raise DataError(
                f"the weights in {source} are of another network: {name} is {shapes[0]}, allowed {shapes[1]}"
            )
        if not _plain(tensors[name]):
            raise DataError(f"the weights in {source} must be finite floating-point numbers; {name} has others")
        view.copy_(tensors[name])


@lru_cache(maxsize=1)
def check(pretrained: str) -> str:
    """Returns a hash of the weights, 16 hexadecimal digits, after they have been seen to fit. Raises DataError.

    By names in order and values as float32, whatever file and type they were saved in: it is part of content keys. The
    head, which starts at random, is left out.
    """
    weights = load(pretrained)
    net = ResNet(STANDARD, True, Linear(1, random_bias=False))
    put(net, torch.zeros(1, net.row), weights, pretrained)
    digest = hashlib.sha256()
    for name in sorted(name for name, _ in net.layout.shapes if not _of_head(name)):
        digest.update(np.ascontiguousarray(weights[name].detach().float().numpy()).data)
    return digest.hexdigest()[:16]


_LOADED: dict[str, dict[str, Tensor]] = {}  # by this process


def load(pretrained: str) -> dict[str, Tensor]:
    """Returns weights by their names in torchvision: those of ImageNet or of a file. Raises DataError.

    ImageNet's are downloaded if need be.

    pretrained: "imagenet" or a path. The last one is kept, as every cohort of a study asks for the same.
    """
    if pretrained not in _LOADED:
        keep(pretrained, _imagenet() if pretrained == IMAGENET else _file(Path(pretrained)))
    return _LOADED[pretrained]


def clear_cache() -> None:
    """Reads files of weights again at the next `load` or `check`: they may have changed since."""
    _LOADED.clear()
    check.cache_clear()


def keep(pretrained: str, weights: dict[str, Tensor]) -> None:
    """Sets the weights that `load` returns: those of another machine, where the file is."""
    _LOADED.clear()
    _LOADED[pretrained] = weights


def _imagenet() -> dict[str, Tensor]:
    """Returns the ImageNet weights from torchvision, which keeps the download in torch's cache folder."""
    advice = "give a file of them with --pretrained PATH, or train from random weights with --pretrained none"
    try:
        from torchvision.models import ResNet18_Weights
    except (ImportError, RuntimeError) as error:
        raise DataError(
            f"the ImageNet weights need torchvision, which cannot be imported ({first_line(error)}); {advice}"
        ) from error
    try:
        weights = ResNet18_Weights.IMAGENET1K_V1
        _drop_damaged(Path(torch.hub.get_dir(), "checkpoints", Path(urlsplit(weights.url).path).name))
        return cast(dict[str, Tensor], weights.get_state_dict(progress=False, check_hash=True))
    except Exception as error:  # of torchvision, urllib, pickle, …
        raise DataError(f"the ImageNet weights cannot be downloaded ({first_line(error)}); {advice}") from error


def _drop_damaged(path: Path) -> None:
    """Removes a damaged download: torch compares a file with the hash in its name when it downloads it, never again."""
    if not path.is_file():
        return
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if not digest.startswith(path.stem.rpartition("-")[2]):
        notify(f"{path} is damaged: the weights are downloaded again")
        path.unlink(missing_ok=True)  # another process may have been faster


def _file(path: Path) -> dict[str, Tensor]:
    """Returns a state dict as torch.save writes it. Raises DataError with one line that says what to do."""
    try:
        with open_regular(path) as file:
            _check_size(path, file)
            # Tensors alone: a pickle of anything else would run code of whoever wrote the file.
            saved: Any = torch.load(file, map_location="cpu", weights_only=True)
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"no file of weights at {path}; --pretrained takes imagenet, none or a file's path") from None
    except OSError as error:
        raise DataError(f"cannot read weights from {path}: {error.strerror or first_line(error)}") from error
    except pickle.UnpicklingError as error:
        raise DataError(
            f"cannot read weights from {path}: it is damaged, or holds more than tensors by their names; "
            "torch.save(model.state_dict(), …) writes such a file"
        ) from error
    except Exception as error:  # torch and zipfile have their own
        raise DataError(f"cannot read weights from {path}: {first_line(error)}") from error
    # Training scripts save the state dict beside an epoch and an optimiser.
    if isinstance(saved, dict) and isinstance(saved.get("state_dict"), dict):
        saved = saved["state_dict"]
    if not isinstance(saved, dict) or not all(
        isinstance(name, str) and isinstance(value, Tensor) for name, value in saved.items()
    ):
        raise DataError(f"{path} must hold a state dict, names with tensors; got a {type(saved).__name__}")
    return saved


def _plain(weights: Tensor) -> bool:
    """Returns whether they are finite floating-point numbers in plain memory, neither sparse nor on another device."""
    dense = weights.layout is torch.strided and weights.device.type == "cpu" and weights.is_floating_point()
    return dense and bool(weights.float().isfinite().all())


def _check_size(path: Path, file: BinaryIO) -> None:
    """Raises DataError for a file that is too large, or would be once it is unpacked.

    Members of a file that torch saved are not compressed; others could unpack to any size.
    """
    size = os.fstat(file.fileno()).st_size
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            size = max(size, sum(member.file_size for member in archive.infolist()))
    if size > LARGEST:
        raise DataError(f"cannot read weights from {path}: {too_large(size, LARGEST)}")
    file.seek(0)


def _of_head(name: str) -> bool:
    return name.startswith(("fc.", "embedding."))
