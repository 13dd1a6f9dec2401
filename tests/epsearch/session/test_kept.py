"""Damaged files in the cache, as a study meets them: the same results, and a line for each file."""

import pytest

from epsearch.session import session
from tests.support.events import Recorded


@pytest.mark.slow
def test_damaged_first_tasks_are_trained_again_and_said_so(small_study, cache, tmp_path):
    def train(folder):
        events = Recorded()
        study = small_study(out=tmp_path / folder, seeds=1, repeats=1, points=3)
        loop, _ = session.train(study, events)
        return {key: record.accuracies for key, record in loop.records.items()}, events.notes

    first, said = train("one")
    kept = sorted((cache / "learners").iterdir())
    assert len(kept) == 2 and not said  # one of the search, one of the evaluation
    for path in kept:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    again, said = train("two")
    for path in kept:
        assert sum(line.startswith(f"{path} ") for line in said) == 1
    assert again.keys() == first.keys() and all(str(again[key]) == str(first[key]) for key in first)
