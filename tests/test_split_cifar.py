"""benchmarks/split_cifar.py trains each member once, and replays its searches from the file alone."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import split_cifar
import split_cifar_page
from split_cifar import METHODS, SEEDS, Member, Sizes, Studies, Waiting, member_of, missing, record_of, replay, write

from epsearch.loop.content import known_as

SIZES = Sizes(examples_per_task=20, tasks=5, points=5, repeats=2, seeds=2)


def entry(member, accuracy=None, status="ok"):
    """A stored member whose accuracy falls with the distance of ε from 0.5."""
    value = 0.9 - abs((member.epsilon or 0) - 0.5) + member.seed / 100 if accuracy is None else accuracy
    rest = {"status": status, "steps": 6, "seconds": 1.0, "fingerprint": "0", "commit": "none"}
    rest |= {"initial": [0.2] * 3, "within": [[0.2] * 11] * 3, "violations": [None, 0.3, 0.3]}
    return {**member._asdict(), **rest, "accuracies": [[0.5, None, None], [0.5, 0.5, None], [value] * 3]}


@pytest.fixture
def studies(tmp_path):
    return Studies(str(tmp_path), SIZES)


def all_members(studies):
    """Every member, in the order in which one worker trains them."""
    stored = []
    while (following := next(missing(studies, stored), None)) is not None:
        stored.append(entry(following))
    return stored


@pytest.mark.slow
def test_the_first_round_comes_first_and_each_member_once(studies):
    first = list(missing(studies, []))
    values = (0.0, 0.25, 0.5, 0.75, 1.0)
    assert first[:10] == [Member("cv", "soft_agem", value, seed) for value in values for seed in (0, 1)]
    assert len(first) == len(set(first))
    members = [member_of(one) for one in all_members(studies)]
    assert len(members) == len(set(members))
    assert {one.method for one in members if one.phase == "eval"} == set(METHODS)
    moved = [one for one in members if one.moved]
    assert len(moved) == 4 and all(one._replace(moved=False) in members for one in moved)
    assert members.index(moved[0]) < min(members.index(one) for one in members if one.phase == "eval")
    assert all(sum(one.method == name for one in members) >= len(SEEDS) for name in METHODS)


@pytest.mark.slow
def test_the_value_that_a_search_names_is_evaluated(studies):
    stored = all_members(studies)
    known = {member_of(one): record_of(one) for one in stored}
    for study in studies.searches:
        open_members, named = replay(study, known)
        assert open_members == []
        assert 0.3 < named < 0.7
        assert Member("eval", "soft_agem", named, 0) in known


def test_the_choice_of_a_gem_is_trained_once(studies):
    """ε = 0 has A-GEM's arithmetic and values, so it has the same record."""
    at_zero, a_gem = (studies.learner(Member("eval", *of, 1)) for of in (("soft_agem", 0.0), ("agem", None)))
    assert known_as(at_zero) == known_as(a_gem)
    chosen = [(one.method, one.epsilon) for one in split_cifar.evaluated(("soft_agem", "agem"), 0.0)]
    assert chosen == [("soft_agem", 0.5)] * 3 + [("agem", None)] * 3


@pytest.mark.parametrize(("best", "row"), [(0.0, "ε = 0, has the row of A-GEM."), (0.5, "has a row of its own.")])
def test_the_page_says_which_row_has_the_choice(studies, best, row):
    members = []
    while open_members := replay(studies.searches[0], {member_of(one): record_of(one) for one in members})[0]:
        known = {member_of(one) for one in members}
        members += [entry(one, 0.9 - abs(one.epsilon - best) / 2) for one in open_members if one not in known]
    figures = {"sizes": SIZES._asdict(), "members": members}
    assert split_cifar_page.row_of_the_choice(figures).endswith(row)
    assert split_cifar_page.row_of_the_choice(figures | {"members": members[:4]}) == ""


def test_entries_from_before_moved_starts_are_not_moved():
    old = {name: value for name, value in entry(Member("cv", "soft_agem", 0.25, 1)).items() if name != "moved"}
    assert member_of(old) == Member("cv", "soft_agem", 0.25, 1, moved=False)


@pytest.mark.slow
def test_the_page_names_the_choice_of_a_complete_search(studies):
    figures = {"sizes": SIZES._asdict(), "members": all_members(studies)}
    named = float(
        re.fullmatch(
            r"The paper's search is complete, and names ε = (\S+)\.", split_cifar_page.choice_of_the_paper(figures)
        )[1]
    )
    assert named == pytest.approx(
        replay(studies.searches[0], {member_of(one): record_of(one) for one in figures["members"]})[1],
        abs=1e-3,
    )
    assert split_cifar_page.choice_of_the_paper(figures | {"members": figures["members"][:4]}) == ""


def test_a_diverged_member_has_no_score(studies):
    lost = Member("cv", "soft_agem", 0.25, 1)
    first = list(missing(studies, []))[:10]
    known = {one: record_of(entry(one, status="diverged" if one == lost else "ok")) for one in first}
    open_members, _ = replay(studies.searches[0], known)
    fresh = [one.epsilon for one in open_members if one not in known]
    assert fresh
    assert max(fresh) > 0.75  # around the best two that did not diverge, 0.5 and 0.75


@pytest.mark.slow
def test_results_open_further_members_of_the_same_iterator(studies):
    members = []
    waiting = Waiting(studies, members)
    first = list(waiting)
    assert next(waiting, None) is None
    members += [entry(one) for one in first]
    assert next(waiting) not in first


@pytest.mark.slow
def test_a_second_run_trains_what_the_first_has_not(monkeypatch, tmp_path, studies):
    trained = []

    class Train:
        def __init__(self, *arguments):
            pass

        def __call__(self, member):
            trained.append(member)
            return entry(member)

    monkeypatch.setattr(split_cifar, "Train", Train)
    monkeypatch.setattr(split_cifar, "ProcessPoolExecutor", lambda workers, **_: ThreadPoolExecutor(workers))
    monkeypatch.setattr(split_cifar.Study, "request", lambda *_: type("Request", (), {"open": lambda self: None})())
    file = tmp_path / "file.json"
    stored = [entry(one) for one in list(missing(studies, []))[:4]]
    fresh = {"sizes": SIZES._asdict(), "seeds": list(SEEDS), "numeric_path": split_cifar.PATH}
    write(file, {**fresh, "members": stored})
    split_cifar.make(file, str(tmp_path), SIZES, 2, float("inf"))
    assert not set(trained) & {member_of(one) for one in stored}
    assert len(trained) == len(set(trained))
    again = json.loads(file.read_text(encoding="utf-8"))
    assert len(again["members"]) == len(trained) + 4
    trained.clear()
    split_cifar.make(file, str(tmp_path), SIZES, 2, float("inf"))
    assert not trained
    with pytest.raises(ValueError, match="other sizes"):
        split_cifar.make(file, str(tmp_path), Sizes(), 2, 0)


def test_matrices_keep_six_decimals_and_null(studies):
    assert split_cifar.plain(np.array([[0.5, np.nan], [1 / 3, 0.25]])) == [[0.5, None], [0.333333, 0.25]]


GRID = (0.0, 0.25, 0.5, 0.75, 1.0)


def searched(accuracy, values=GRID, seeds=(0, 1)):
    """The section of a page on members of the search; accuracy: of ε and seed."""
    members = [
        entry(Member("cv", "soft_agem", value, seed), accuracy(value, seed)) for value in values for seed in seeds
    ]
    return split_cifar_page.section({"sizes": SIZES._replace(tasks=20)._asdict(), "members": members})


def test_the_page_says_that_the_curve_rises_where_it_does():
    noise = np.random.default_rng(0).normal(0, 0.002, 2 * len(GRID))
    text, plots = searched(lambda value, seed: 0.8 - (value - 0.5) ** 2 / 2 + noise[GRID.index(value) * 2 + seed])
    assert "Of the search 10 members are trained, none of the evaluation" in text and "is complete" not in text
    assert "are above ε = 0, the highest mean is at ε = 0.5, and ε = 0.5 differs from ε = 0 by +12" in text
    assert "by more than chance explains" in text
    assert float(re.search(r"names ε = (\S+); its 95 % set", text)[1]) == pytest.approx(0.5, abs=0.1)
    assert set(plots) == {"parabola-cifar.svg"}
    assert len([line for line in text.splitlines() if line.startswith("| 0") or line.startswith("| 1")]) == len(GRID)


def test_the_page_says_that_a_flat_curve_shows_nothing():
    noise = np.random.default_rng(1).normal(0, 0.02, 2 * len(GRID))
    text, _ = searched(lambda value, seed: 0.6 + noise[GRID.index(value) * 2 + seed])
    assert "no more than chance explains" in text


def test_the_page_of_a_first_grid_that_is_not_complete():
    text, plots = searched(lambda value, seed: 0.6 + value / 10 + seed / 100, values=GRID[:2])
    assert "The first grid is not complete yet." in text and plots
    text, plots = split_cifar_page.section({"sizes": SIZES._asdict(), "members": []})
    assert "Of the search 0 members are trained" in text and not plots


@pytest.mark.parametrize(("gain", "said"), [(0.4, "is the best, +"), (-0.4, "that after 17 tasks ε = 0 is the best.")])
def test_the_page_says_what_is_expected_after_all_tasks(gain, said):
    """Of an accuracy that all ε keep alike, but for a clear slope over ε."""
    members = [entry(Member("cv", "soft_agem", value, seed), 0.5) for value in GRID for seed in (0, 1)]
    for one in members:
        level = 0.5 + gain * one["epsilon"] + one["seed"] / 1000
        one["accuracies"] = [[level, None, None], [level, level, None], [level] * 3]
    sizes = SIZES._replace(tasks=20)._asdict()
    text = split_cifar_page.prediction(members, GRID, sizes)
    assert said in text and "cannot tell" not in text
    moved = [one | {"moved": True, "accuracies": [[0.9, None, None]] + [[0.9] * 3] * 2} for one in members[:2]]
    assert split_cifar_page.prediction(members + moved, GRID, sizes) == text


def test_values_without_all_seeds_and_diverged_ones_have_no_difference():
    members = [entry(Member("cv", "soft_agem", value, seed)) for value in GRID for seed in (0, 1)]
    members[-1]["status"] = "diverged"
    scores = split_cifar_page.scores_of(members, 2)
    assert list(scores.whole) == [True, True, True, True, False]
    assert split_cifar_page.values(scores).splitlines()[-1].endswith("| – |")
    assert split_cifar_page.values(scores).splitlines()[-1].startswith("| 1 | 1 |")


@pytest.mark.parametrize("step", [0.0, 0.01])
def test_rounding_noise_is_half_the_variance_of_two_members(step):
    """Members that differ by ± 2 steps, of which half the variance is each one's own; seeds differ by a point."""
    pairs = [(Member("cv", "soft_agem", value, seed), (-1) ** seed) for value in (0.0, 0.5) for seed in range(4)]
    members = [entry(one, 0.6 + one.seed / 100) for one, _ in pairs]
    assert split_cifar_page.rounding(members) == "The rounding noise is not measured yet."
    members += [entry(one._replace(moved=True), 0.6 + one.seed / 100 + 2 * step * sign) for one, sign in pairs]
    text = split_cifar_page.rounding(members)
    assert f"8 members have another A_T, by up to {200 * step:.1f} points" in text
    assert f"a standard deviation of {100 * step * 2**0.5:.2f}, the seeds" in text and text.endswith("one of 1.29.")
    assert len(split_cifar_page.scores_of(members, 4).epsilons) == 2


def test_the_evaluation_stands_beside_print():
    members = [
        entry(Member("eval", name, value, seed), 0.6 + seed / 100)
        for name, value in (("soft_agem", 0.5), ("van", None), ("soft_agem", 0.25))
        for seed in (0, 1, 2)
    ]
    figures = {"sizes": Sizes()._asdict(), "members": members}
    text, plots = split_cifar_page.evaluation(figures)
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert [row.split(" | ")[0].split("<")[0] for row in rows] == [
        "| VAN",
        "| ε-SOFT-GEM, ε = 0.5",
        "| ε-SOFT-GEM, ε = 0.25",
    ]
    assert "61.00 ± 0.82<br>63.9 ± 1.53<br>" in rows[1] and not plots
    assert split_cifar_page.evaluation(figures | {"members": []})[0] == "No member of the evaluation is trained yet."
