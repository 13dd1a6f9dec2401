"""benchmarks/reproduction.py trains the rows of its YAML, and its page sets them beside print."""

import json

import numpy as np
import pytest

from results import metrics
from results.verdict.reproduction import of_scores
from trainers import Architecture, Cohort, Learner
from trainers.methods import METHODS
from trainers.numeric_path import NumericPath
from trainers.population import Training, train_cohort
from trainers.streams import StreamRequest

PATH = "cpu-float32-mkl-lazy"
pytestmark = pytest.mark.usefixtures("benchmarks")


def test_every_row_is_one_that_can_be_trained():
    import reproduction

    rows = list(reproduction.rows())
    assert len({json.dumps(row.identity, sort_keys=True) for row in rows}) == len(rows)
    for row in rows:
        Learner.of(row.method, 0, **dict(row.values))
        assert row.scenario in METHODS[row.method].scenarios
    pieces = reproduction.left([])
    assert len(pieces) == len(rows) * len(reproduction.SEEDS)
    stored = [json.loads(json.dumps({"row": row.identity, "seed": seed})) for row, seed in pieces[:-1]]
    assert reproduction.left(stored) == pieces[-1:]


@pytest.mark.slow
def test_a_member_is_that_of_the_row(data_dir):
    import reproduction

    row = next(one for one in reproduction.rows() if (one.table, one.method, one.start) == ("P-MNIST", "er", ""))
    (member,) = reproduction.trained((row, 1), str(data_dir), PATH, 60)
    stream = StreamRequest("permuted_mnist", data_dir, range(20), 60).open()
    learner = Learner.of("er", 1, batch_size=128, lr=0.2, memory=1, memory_batch=128)
    training = Training(stream, Architecture(hidden=(100, 100)), NumericPath.parse(PATH), transfer=False)
    accuracies = train_cohort(Cohort((learner,)), training).accuracies[0]
    assert member["A_T"] == pytest.approx(100 * float(metrics.average_accuracy(accuracies)), abs=1e-4)
    assert member["row"] == row.identity and member["seed"] == 1


@pytest.mark.slow
def test_a_member_begins_with_the_authors_weights(data_dir, monkeypatch):
    """One step would differ, too: a run of 60 images a task has another accuracy than with our weights."""
    import reproduction

    ours, theirs = (
        next(one for one in reproduction.rows() if (one.table, one.method, one.start) == ("P-MNIST", "van", start))
        for start in ("", "xavier")
    )
    assert ours.identity != theirs.identity and "start" not in ours.identity[-1]
    members = [reproduction.trained((row, 0), str(data_dir), PATH, 60)[0] for row in (theirs, ours)]
    assert members[0]["A_T"] != members[1]["A_T"]


@pytest.mark.slow
def test_a_memory_of_any_class_is_as_large(data_dir):
    import reproduction

    labels = np.repeat(np.arange(10), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    chosen = [reproduction.uniform_choice(0, task, labels, 2) for task in range(300)]
    assert {len(one) for one in chosen} == {20} and all(len(set(one)) == 20 for one in chosen)
    shares = np.bincount(labels[np.concatenate(chosen)], minlength=10) / (300 * 20)
    np.testing.assert_allclose(shares, np.bincount(labels) / 55, atol=0.02)
    plain, other = (
        next(one for one in reproduction.rows() if one.method == "gem" and one.start and one.of_any_class is drawn)
        for drawn in (False, True)
    )
    found = [reproduction.trained((row, 0), str(data_dir), PATH, 60)[0]["A_T"] for row in (plain, other)]
    assert found[0] != found[1] and plain.identity != other.identity


def test_the_page_sets_ours_beside_print():
    import reproduction
    import reproduction_page

    row = next(one for one in reproduction.rows() if one.pack is not None and one.start)
    printed = row.pack.mean
    scores = [printed + 1, printed + 2, printed + 3]
    members = [{"row": row.identity, "seed": n, "A_T": score, "F_T": None} for n, score in enumerate(scores)]
    text, _ = reproduction_page.section(json.loads(json.dumps({"members": members})))
    error = 1 / np.sqrt(3)
    needed = of_scores(row.pack.as_data(), scores)["seeds_needed"]
    answer = f"cannot tell; {needed} seeds would"
    assert f"| {printed + 2:.2f} ± 1.00 | – | {printed:g} | +2.00 | +{2 / error:.1f} | {answer} | – |" in text
    assert f"{len(reproduction.left(members))} runs" in text


@pytest.mark.slow
def test_packs_are_trained_once_and_their_answers_are_a_table(data_dir, tmp_path, monkeypatch):
    """Two small ones; the same command goes on with the answers that its file has."""
    import argparse

    import packs
    import reproduction_page

    from search_spaces.published.pack import load_pack

    monkeypatch.setattr(packs, "in_order", lambda: [load_pack("van-pmnist-20"), load_pack("derpp-pmnist-200")])
    given = argparse.Namespace(
        data_dir=str(data_dir), out=str(tmp_path), workers=1, until=float("inf"), tiny=tmp_path / "packs.json"
    )
    packs.train(given.tiny, given)
    found = json.loads(given.tiny.read_text(encoding="utf-8"))
    assert [one["name"] for one in found["answers"]] == ["van-pmnist-20", "derpp-pmnist-200"]
    assert all(one["n"] == 1 and one["changed"] for one in found["answers"]), "as fewer images are no row of print"
    marked = [one | {"seconds": -1.0} for one in found["answers"]]
    given.tiny.write_text(json.dumps({"answers": [*marked[:1], marked[1] | {"margin": 9}]}), encoding="utf-8")
    packs.train(given.tiny, given)
    again = json.loads(given.tiny.read_text(encoding="utf-8"))["answers"]
    assert again == [marked[0], found["answers"][1]], "kept without training; the other asked another question"
    text, plots = reproduction_page.answers(found)
    assert plots == {} and text.startswith("Still to come, by the same command: 22 packs. 9 have run as rows of ")
    (header, _, *rows) = next(part for part in text.split("\n\n") if part.startswith("|")).splitlines()
    assert header.startswith("| method | stream | source") and len(rows) == 2 + 9
    assert rows[0].startswith("| DER++ | Permuted MNIST") and "83.6" in rows[0]


def test_packs_at_full_size_are_answered_by_the_comparison():
    """The answer of scores with its mean and standard deviation; other packs, and other settings, have none there."""
    from dataclasses import replace

    import reproduction_page

    from search_spaces.published.pack import load_pack

    pack = load_pack("agem-pmnist-17")
    answer = reproduction_page.of_comparison(pack)
    (row,) = [
        line for line in reproduction_page.COMPARISON.read_text(encoding="utf-8").splitlines() if ",agem," in line
    ]
    assert f",{answer['mean']}," in row and answer["n"] == 3
    assert answer["sd"] * np.sqrt(2 / 3) == pytest.approx(float(row.split(",")[6]))
    assert reproduction_page.of_comparison(replace(pack, settings={"lr": 0.03})) is None
    assert reproduction_page.of_comparison(load_pack("agem-pmnist-200")) is None
    assert reproduction_page.of_comparison(load_pack("agem-rmnist-200")) is None


def test_packs_are_missing_that_neither_ran_nor_are_rows_of_the_comparison():
    import reproduction_page

    from search_spaces.published.pack import load_pack, packs

    answer = reproduction_page.of_comparison(load_pack("agem-pmnist-17"))
    trained = [answer | {"name": name} for name in packs() if not name.endswith("-17")]
    text, _ = reproduction_page.answers({"answers": trained[1:]})
    assert text.startswith("Still to come, by the same command: 1 pack. 9 have run as rows of ")
    text, _ = reproduction_page.answers({"answers": trained})
    assert text.startswith("All packs have run. 9 have run as rows of ")


def test_every_pack_is_in_the_order_once():
    import packs

    from search_spaces.published.pack import packs as names

    order = [pack.name for pack in packs.in_order()]
    assert sorted(order) == sorted(names()) and order[-1].endswith("-17"), "those of many SGD steps come last"
