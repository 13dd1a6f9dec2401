"""The source of a user's own stream, and a study of it, for those who change or break it."""

import pytest

SIZES = "--tasks 4 --cv-tasks 2 --seeds 1 --examples-per-task 40 --memory 2 --memory-batch 8"
PLACE = "--runner local --device cpu --numeric-path cpu-float32-mkl"
COMMON = ["--dataset", "mine:factory", *SIZES.split(), *PLACE.split()]
TINY = [*COMMON, "--points", "3", "--repeats", "1", "--certify", "0"]
STREAM = """
import signal, sys, threading
from trainers.streams.pixels.digits import load
from trainers.streams.permuted import PermutedStream

class Mine(PermutedStream):
    pass

def factory(tasks, examples_per_task):
    return Mine(load(), tasks, examples_per_task)
"""


@pytest.fixture
def mine(tmp_path):
    """Writes a module beside the study."""

    def write(text=STREAM, name="mine.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    return write
