"""Permuted streams, MNIST's files whole and broken. What every stream promises: tests/contracts/test_streams.py."""

import gzip
import math
import os
import struct
import threading
import tracemalloc
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from trainers.streams import DataError, PermutedStream, open_stream, present
from trainers.streams.base import Examples, Images
from trainers.streams.pixels import mnist
from trainers.streams.pixels.digits import load as load_digits

REAL_MNIST = Path(__file__).parents[4] / "shared" / "data" / "mnist"


def write_idx(folder, images=(30, 12), shape=(28, 28), compress=True):
    """Random images in MNIST's four files."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for name, count in zip(("train", "t10k"), images, strict=True):
        pixels = rng.integers(0, 256, (count, *shape), dtype=np.uint8)
        labels = (np.arange(count) % 10).astype(np.uint8)
        for kind, array in (("images-idx3-ubyte", pixels), ("labels-idx1-ubyte", labels)):
            raw = struct.pack(f">4B{array.ndim}i", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()
            path = folder / (f"{name}-{kind}.gz" if compress else f"{name}-{kind}")
            path.write_bytes(gzip.compress(raw) if compress else raw)
    return folder


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def data_dir(tmp_path):
    mnist.load.cache_clear()
    write_idx(tmp_path / "MNIST" / "raw")
    yield tmp_path
    mnist.load.cache_clear()


@pytest.mark.parametrize("name", ["permuted_digits", "permuted_mnist"])
class TestPermutedStreams:
    @pytest.fixture
    def stream(self, name, data_dir):
        return open_stream(name, data_dir, range(1, 4), None)

    def test_shapes_and_label_range(self, stream):
        order = np.arange(stream.available)
        for part in (stream.train(0, 1, order), stream.test(0, 1)):
            assert part.inputs.dtype == np.uint8 and part.inputs.shape == (len(part.labels), stream.inputs)
            assert part.labels.dtype == np.int64
            assert part.labels.min() >= 0 and part.labels.max() < stream.classes
            assert part.inputs.max() <= stream.largest
        assert stream.examples == stream.available

    def test_same_seed_same_data_and_others_differ(self, stream):
        order = np.arange(10)
        first, again = stream.train(0, 1, order), stream.train(0, 1, order)
        assert (first.inputs == again.inputs).all() and (first.labels == again.labels).all()
        assert (first.inputs != stream.train(1, 1, order).inputs).any()
        assert (first.inputs != stream.train(0, 2, order).inputs).any()

    def test_train_and_test_are_disjoint(self, stream):
        train, test = stream.train(0, 1, np.arange(stream.available)), stream.test(0, 1)
        seen = {row.tobytes() for row in train.inputs}
        assert not any(row.tobytes() in seen for row in test.inputs)

    def test_train_and_test_share_the_permutation(self, stream):
        plain, moved = stream.images.test.inputs, stream.test(0, 1).inputs
        assert (moved == plain[:, stream.permutation(0, 1)]).all()
        assert (np.sort(moved, axis=1) == np.sort(plain, axis=1)).all()
        assert not (moved == plain).all()

    def test_description_holds_what_determines_it(self, name, stream, data_dir):
        assert stream.describe() == open_stream(name, data_dir, range(1, 4), None).describe()
        fewer = open_stream(name, data_dir, range(1, 4), 5)
        assert fewer.describe()["examples_per_task"] == 5 != stream.describe()["examples_per_task"]

    @pytest.mark.parametrize("examples", [0, 10**6])
    def test_more_examples_than_there_are_is_an_error(self, name, data_dir, examples):
        with pytest.raises(DataError, match=f"examples-per-task must lie in 1….*got {examples}"):
            open_stream(name, data_dir, range(1, 4), examples)

    def test_it_says_where_its_data_lie(self, name, data_dir):
        assert present(name, data_dir)


def test_a_dataset_that_there_is_not_is_one_line():
    with pytest.raises(DataError, match=r"^no dataset 'permuted_minst'; known: permuted_digits, .*module:factory$"):
        open_stream("permuted_minst", Path("."), range(3), None)


def test_digits_are_split_once_and_for_all():
    images = load_digits()
    assert len(images.train.labels) == 1442 and len(images.test.labels) == 355
    assert set(np.bincount(images.test.labels)) <= {34, 35, 36}  # every class, a fifth of it


def test_fingerprint_sees_every_pixel_and_label():
    images = load_digits()
    pixels, labels = images.train.inputs.copy(), images.train.labels.copy()
    pixels[5, 5] ^= 1
    labels[7] = (labels[7] + 1) % 10
    changed = [Images(Examples(pixels, images.train.labels), images.test, 10, 16.0)]
    changed.append(Images(Examples(images.train.inputs, labels), images.test, 10, 16.0))
    assert len({images.fingerprint(), *(one.fingerprint() for one in changed)}) == 3


@pytest.mark.skipif(not REAL_MNIST.exists(), reason="needs the real MNIST files")
def test_real_mnist():
    mnist.load.cache_clear()
    images = mnist.load(REAL_MNIST)
    assert images.train.inputs.shape == (60000, 784) and images.test.inputs.shape == (10000, 784)
    assert images.train.labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert images.train.inputs.mean() / 255 == pytest.approx(0.1307, abs=1e-4)  # the well-known mean


@pytest.mark.parametrize("folder", mnist.FOLDERS)
@pytest.mark.parametrize("compress", [True, False])
def test_mnist_is_found_in_every_layout(tmp_path, folder, compress):
    mnist.load.cache_clear()
    write_idx(tmp_path / folder, compress=compress)
    assert mnist.load(tmp_path).train.inputs.shape == (30, 784)
    mnist.load.cache_clear()


class TestBrokenFiles:
    """Each gives one line that names the file."""

    def damage(self, data_dir, name, content):
        (data_dir / "MNIST" / "raw" / name).write_bytes(content)
        with pytest.raises(DataError) as error:
            mnist.load(data_dir)
        assert "\n" not in str(error.value) and name in str(error.value)
        return str(error.value)

    def test_truncated_archive(self, data_dir):
        name = "train-images-idx3-ubyte.gz"
        whole = (data_dir / "MNIST" / "raw" / name).read_bytes()
        assert "cannot read" in self.damage(data_dir, name, whole[: len(whole) // 2])

    def test_not_an_archive(self, data_dir):
        assert "cannot read" in self.damage(data_dir, "t10k-labels-idx1-ubyte.gz", b"<html>not found</html>")

    def test_truncated_content(self, data_dir):
        raw = struct.pack(">4Bi", 0, 0, 8, 1, 12) + bytes(5)
        message = self.damage(data_dir, "t10k-labels-idx1-ubyte.gz", gzip.compress(raw))
        assert "5 bytes of data, its header says 12" in message

    def test_another_kind_of_content(self, data_dir):
        message = self.damage(data_dir, "train-labels-idx1-ubyte.gz", gzip.compress(b"nothing of the kind"))
        assert "is not an IDX file" in message

    @pytest.mark.parametrize("shape", [(2**31 - 1,) * 3, (2**32 - 1,) * 3, (2**20, 2**20, 2**24), (3, 2**20, 2**20)])
    def test_headers_that_say_more_than_fits(self, data_dir, shape):
        """The third, multiplied in 64 bits, is 0."""
        raw = struct.pack(">4B3I", 0, 0, 8, 3, *shape)
        message = self.damage(data_dir, "t10k-images-idx3-ubyte.gz", gzip.compress(raw))
        assert f"its header says {'×'.join(map(str, shape))}, it has {math.prod(shape):,} bytes" in message

    @pytest.mark.parametrize("shape", [(0, 28, 28), (12, 0, 0)])
    def test_headers_that_say_nothing(self, data_dir, shape):
        raw = struct.pack(">4B3I", 0, 0, 8, 3, *shape)
        message = self.damage(data_dir, "t10k-images-idx3-ubyte.gz", gzip.compress(raw))
        assert "0 bytes of data, its header says" in message

    def test_what_unpacks_to_more_than_its_header_says(self, data_dir):
        raw = struct.pack(">4Bi", 0, 0, 8, 1, 12) + bytes(2**25)
        tracemalloc.start()
        try:
            message = self.damage(data_dir, "t10k-labels-idx1-ubyte.gz", gzip.compress(raw))
            assert tracemalloc.get_traced_memory()[1] < 2**26  # raw and what is compressed
        finally:
            tracemalloc.stop()
        assert "more than 12 bytes of data, its header says 12" in message

    def test_images_of_two_sizes(self, data_dir):
        raw = struct.pack(">4B3i", 0, 0, 8, 3, 12, 20, 20) + bytes(12 * 400)
        (data_dir / "MNIST" / "raw" / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(raw))
        with pytest.raises(DataError, match=r"training images in .* have 784 pixels, the test images 400"):
            mnist.load(data_dir)

    def test_what_is_no_regular_file(self, data_dir):
        path = data_dir / "MNIST" / "raw" / "train-images-idx3-ubyte.gz"
        path.unlink()
        path.symlink_to(os.devnull)
        with pytest.raises(DataError, match=rf"cannot read {path}: it is a device, no regular file"):
            mnist.load(data_dir)
        assert present("permuted_mnist", data_dir) is None

    @pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
    def test_folders_that_cannot_be(self, data_dir, name, monkeypatch):
        datasets = pytest.importorskip("torchvision.datasets")
        monkeypatch.setattr(datasets.MNIST, "mirrors", [(data_dir / "nowhere").as_uri() + "/"])
        assert present("permuted_mnist", data_dir / name) is None
        with pytest.raises(DataError, match="the download failed"):
            mnist.load(data_dir / name)

    def test_labels_out_of_range(self, data_dir):
        raw = struct.pack(">4Bi", 0, 0, 8, 1, 12) + bytes([11] * 12)
        (data_dir / "MNIST" / "raw" / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(raw))
        with pytest.raises(DataError, match="test labels must lie in 0…9, got 11…11"):
            mnist.load(data_dir)

    def test_images_without_labels(self, data_dir):
        raw = struct.pack(">4Bi", 0, 0, 8, 1, 11) + bytes(11)
        (data_dir / "MNIST" / "raw" / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(raw))
        with pytest.raises(DataError, match="12 images but 11 labels"):
            mnist.load(data_dir)


class TestImages:
    """Images that a user's own stream makes."""

    examples = Examples(np.zeros((3, 4), np.uint8), np.arange(3))

    @pytest.mark.parametrize("largest", [0, -1.0, math.nan, math.inf])
    def test_a_divisor_that_leaves_no_finite_pixel(self, largest):
        with pytest.raises(DataError, match=r"largest.* must be a finite number > 0, got"):
            Images(self.examples, self.examples, classes=3, largest=largest)

    def test_no_images(self):
        empty = Examples(np.zeros((0, 4), np.uint8), np.arange(0))
        with pytest.raises(DataError, match="the test set is empty"):
            Images(self.examples, empty, classes=3, largest=255.0)


class TestDownload:
    """torchvision does it; here its mirrors are replaced by files and by failures."""

    @pytest.fixture(autouse=True)
    def fresh(self):
        mnist.load.cache_clear()
        yield
        mnist.load.cache_clear()

    @pytest.mark.slow
    def test_missing_files_are_downloaded(self, tmp_path, monkeypatch):
        """The real MNIST class fetches, checks and unpacks; its mirror is a server on this machine."""
        datasets = pytest.importorskip("torchvision.datasets")
        import hashlib

        mirror = write_idx(tmp_path / "mirror")
        resources = [
            (name, hashlib.md5((mirror / name).read_bytes()).hexdigest()) for name, _ in datasets.MNIST.resources
        ]
        monkeypatch.setattr(datasets.MNIST, "resources", resources)
        handler = partial(QuietHandler, directory=mirror)
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            serving = threading.Thread(target=server.serve_forever)
            serving.start()
            monkeypatch.setattr(datasets.MNIST, "mirrors", [f"http://127.0.0.1:{server.server_port}/"])
            try:
                images = mnist.load(tmp_path / "data")
            finally:
                server.shutdown()
                serving.join()
        assert images.train.inputs.shape == (30, 784)
        assert mnist.present(tmp_path / "data")

    def test_no_network_is_one_line(self, tmp_path, monkeypatch):
        datasets = pytest.importorskip("torchvision.datasets")
        monkeypatch.setattr(datasets.MNIST, "mirrors", [(tmp_path / "nowhere").as_uri() + "/"])
        with pytest.raises(DataError, match=r"no MNIST files under .*, and the download failed .*--data-dir"):
            mnist.load(tmp_path / "data")

    @pytest.mark.parametrize("error", [EOFError(), ValueError("\n\nodd\nmore")])
    def test_whatever_the_download_raises_is_one_line(self, tmp_path, monkeypatch, error):
        datasets = pytest.importorskip("torchvision.datasets")

        def broken(*_, **__):
            raise error

        monkeypatch.setattr(datasets, "MNIST", broken)
        with pytest.raises(DataError, match=r"the download failed \((EOFError|odd)\); give"):
            mnist.load(tmp_path)

    def test_torchvision_that_does_not_fit_torch_is_one_line(self, tmp_path, monkeypatch):
        import builtins

        original = builtins.__import__

        def broken(name, *rest, **kwargs):
            if name.startswith("torchvision"):
                raise RuntimeError("operator torchvision::nms does not exist\nmore")
            return original(name, *rest, **kwargs)

        monkeypatch.setattr(builtins, "__import__", broken)
        with pytest.raises(DataError, match=r"torchvision, .*, cannot be imported \(operator .* does not exist\)"):
            mnist.load(tmp_path)


def test_a_permuted_stream_refuses_nothing_it_can_show():
    stream = PermutedStream(load_digits(), range(2), 1)
    assert stream.examples == 1
