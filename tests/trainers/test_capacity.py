"""Cohorts that do not fit into memory, and the estimate of what they take."""

from dataclasses import replace

import pytest
import torch

from tests.support.made_images import made_images
from tests.support.numeric_paths import MKL, SMALL, rows_equal
from tests.support.toy_streams import toy
from trainers import Cohort, Member, TrainConfig
from trainers.capacity import in_halves
from trainers.engines.compiled import engine
from trainers.footprint import bytes_at_work, bytes_of, bytes_of_member, free_bytes
from trainers.methods import METHODS
from trainers.numeric_path import NumericPath
from trainers.population import train_cohort
from trainers.streams.images.split import SplitStream

COHORT_OF_ONE = Cohort("soft_agem", (Member(0.5, 0),))
COHORT = Cohort("soft_agem", tuple(Member(epsilon, 0) for epsilon in (0.0, 0.2, 0.4, 0.6, 0.8)))


def test_a_cohort_that_runs_out_of_memory_is_trained_in_halves(monkeypatch):
    """Never more than two members at a time fit; the results are those of the whole cohort."""
    whole = train_cohort(COHORT, toy(), SMALL, MKL)
    original, sizes = engine.CompiledEngine.train, set()

    def train(self, learners, first, last):
        if len(learners.params) > 2:
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes.")
        sizes.add(len(learners.params))
        original(self, learners, first, last)

    monkeypatch.setattr(engine.CompiledEngine, "train", train)
    found = train_cohort(COHORT, toy(), SMALL, MKL)
    assert sizes == {1, 2}
    assert found.note.endswith("which do not fit: they are trained in halves") and whole.note == ""
    for row in range(5):
        assert rows_equal(found, row, whole, row)


def test_a_cohort_larger_than_the_room_is_not_tried_whole():
    groups, tried = [(-1, [0, 1, 2, 3]), (0, [4])], []

    def train(done, rows):
        tried.append((done, rows))
        return rows

    found = list(in_halves(groups, train, lambda rows: 10 * len(rows), 25))
    assert tried == [(-1, [0, 1]), (-1, [2, 3]), (0, [4])]
    assert [rows for rows, _, _ in found] == [[0, 1], [2, 3], [4]]
    assert found[0][2].startswith("4 members need about 0.0 GiB")


def test_one_member_that_does_not_fit_is_an_error_in_one_line():
    def train(done, rows):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with pytest.raises(MemoryError, match=r"^one member needs about 2\.0 GiB, which do not fit; a smaller .*") as error:
        list(in_halves([(-1, [0, 1])], train, lambda rows: 2**31, None))
    assert "\n" not in str(error.value)


def test_other_errors_are_not_taken_for_it():
    def train(done, rows):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="shapes"):
        list(in_halves([(-1, [0, 1])], train, len, None))


@pytest.mark.parametrize("method", METHODS)
def test_estimates_grow_with_what_is_trained(method):
    images = SplitStream(made_images(classes=8, size=32), range(1, 4), 2)
    config = TrainConfig(network="reduced_resnet18", memory=2, memory_batch=5)
    row = 4 * 1_094_280  # bytes of the reduced ResNet-18 with 8 outputs
    one = bytes_of_member(method, images, config)
    assert one >= row and (one >= 2 * row) == (method in ("ewc", "pi", "mas", "rwalk", "prognn"))
    path = NumericPath(products="onednn")
    few, many = (Cohort(method, tuple(Member(0.5, seed) for seed in range(count))) for count in (1, 3))
    assert bytes_of(many, images, config, path) - bytes_of(few, images, config, path) == 2 * one
    assert bytes_of(many, images, config, NumericPath()) > bytes_of(many, images, config, path)


def test_the_estimate_of_a_step_is_near_what_was_measured():
    """256 images of CIFAR took 613 MiB in a step of the reduced network; 16 of 224 pixels, in the other, 556 MiB."""
    cifar = SplitStream(made_images(classes=8, train=100, size=32), range(1, 4), 2)
    config = TrainConfig(network="reduced_resnet18", memory=100, memory_batch=256)
    assert 500 < bytes_at_work("agem", cifar, config, 1) / 2**20 < 800
    large = SplitStream(made_images(classes=8, train=2, test=1, size=224), range(1, 4), 2)
    config = TrainConfig(network="resnet18", batch_size=16)
    assert 450 < bytes_at_work("van", large, config, 1) / 2**20 < 750


def test_a_containers_limit_counts_without_what_its_files_take(tmp_path, monkeypatch):
    """Of 1,000 MB 900 are in use, 500 of them for files, which are given back when memory is needed."""
    million = 10**6
    (tmp_path / "memory.max").write_text(f"{1000 * million}\n")
    (tmp_path / "memory.current").write_text(f"{900 * million}\n")
    (tmp_path / "memory.stat").write_text(f"anon 1\ninactive_file {300 * million}\nactive_file {200 * million}\n")
    monkeypatch.setattr("trainers.footprint.CGROUP", tmp_path)
    assert free_bytes(NumericPath()) == int(0.9 * 600 * million)
    (tmp_path / "memory.max").write_text("max\n")
    assert free_bytes(NumericPath()) > 600 * million  # no limit but the machine's


@pytest.mark.parametrize("method", METHODS)
def test_a_memory_larger_than_the_data_is_as_large_as_these(method):
    """No more is set aside, and none of the results is another one."""
    tasks = toy().tasks
    largest = replace(SMALL, memory=toy().size(0, tasks[0]), memory_batch=None)
    beyond = replace(largest, memory=10**12, memory_batch=10**12)
    one = Cohort(method, (Member(0.5, 0, strength=1.0),))
    assert bytes_of(one, toy(), beyond, MKL) == bytes_of(one, toy(), largest, MKL)
    found, whole = (train_cohort(one, toy(), config, MKL, folder=None) for config in (beyond, largest))
    assert rows_equal(found, 0, whole, 0)


@pytest.mark.parametrize("change", [{"memory": 64}, {"hidden": (256, 256)}, {"memory_batch": None}])
def test_the_error_names_what_a_member_needs(change, monkeypatch):
    """Its memory with the schedule of the reference batches, and its layers: all that it takes is in the estimate."""

    def fails(*what):
        raise MemoryError

    config = replace(SMALL, memory=8, memory_batch=4)
    one, larger = (bytes_of(COHORT_OF_ONE, toy(), each, MKL) for each in (config, replace(config, **change)))
    assert larger > one
    monkeypatch.setattr(engine.CompiledEngine, "train", fails)
    monkeypatch.setattr("trainers.capacity.GIB", 1000)
    with pytest.raises(MemoryError, match=rf"one member needs about {larger / 1000:.1f} GiB, .* a smaller memory, "):
        train_cohort(COHORT_OF_ONE, toy(), replace(config, **change), MKL)


def test_free_memory_is_known_here():
    assert 2**20 < free_bytes(NumericPath()) < 2**50
