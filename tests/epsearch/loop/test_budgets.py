"""Comparisons with the same bytes of memory, and the same member-steps of tuning, for every row."""

import csv
from itertools import pairwise

import pytest

from epsearch.failures.errors import UsageError
from epsearch.ledger.location import ledger_url
from epsearch.loop.candidates import quasi_random, tunable
from epsearch.loop.content import CANDIDATES
from epsearch.loop.table import table_rows
from epsearch.preparation.budgets import budgets
from epsearch.preparation.build import build
from epsearch.preparation.data import open_evaluation
from epsearch.publishing.points import publication, trial_of
from epsearch.session.session import open_store, stored_loop
from epsearch.study.kinds import Comparison
from results.ledger.store import Store
from tests.epsearch.conftest import TINY
from tests.support.drive import fake, finish, make
from trainers.methods import method

STEPS = 2 * 2 * 6
"""Of a candidate with TINY: two seeds, two tasks of 60 examples."""
OF_BYTES = {name: value for name, value in TINY.items() if name != "memory"}


def arguments(command, sizes=TINY, **options):
    pairs = [(f"--{name.replace('_', '-')}", str(value)) for name, value in (sizes | options).items()]
    return [command, *(word for pair in pairs for word in pair), "--quiet"]


def costs(folder):
    with (folder / "costs.csv").open(encoding="utf-8") as file:
        return {row["row"]: row for row in csv.DictReader(file)}


class TestBytes:
    @pytest.mark.slow
    def test_every_memory_is_the_largest_that_fits(self, epsearch, tmp_path):
        """A reservoir takes in the last task, so that of equal bytes it has fewer examples of each."""
        done = epsearch(
            *arguments("compare", OF_BYTES, methods="agem,er,ewc", memory_bytes="6KB", name="one", out=tmp_path)
        )
        assert done.status == 0, done.err
        found = costs(tmp_path / "one")
        # 65 bytes an example, 10 classes; one task is stored by A-GEM, two by a reservoir.
        assert int(found["A-GEM"]["kept_bytes"]) == 65 * 60  # all 60 examples of a task: no class has more
        assert int(found["ER, reference batch 8"]["kept_bytes"]) == 65 * 10 * 2 * 4 <= 6000
        assert int(found["EWC"]["kept_bytes"]) == int(found["EWC"]["arrays_bytes"]) > 6000
        page = (tmp_path / "one" / "comparison.html").read_text(encoding="utf-8")
        assert "The rows differ in bytes kept" in page
        table = (tmp_path / "one" / "comparison.md").read_text(encoding="utf-8")
        assert "memory = 4" in table, "which bytes have set"

    @pytest.mark.slow
    def test_members_are_those_of_the_same_memory(self, epsearch, tmp_path):
        """The bytes are no part of a key."""
        one = arguments("compare", OF_BYTES, methods="er", memory_bytes="6KB", out=tmp_path, seeds=1)
        assert epsearch(*one).status == 0
        again = epsearch(*arguments("compare", methods="er", memory=4, out=tmp_path, seeds=1), "--json").json
        assert again["effort"]["trained"] == 0 and again["effort"]["reused"] == 2

    @pytest.mark.parametrize(
        ("options", "line"),
        [
            ({"memory_bytes": "1KB", "methods": "er"}, "memory-bytes must be >= 1300B for an example of each class"),
            ({"memory_bytes": "10"}, "memory-bytes must be a size >= 1KB like 2MB or 500KiB, got '10'"),
            ({"memory_bytes": "2MB", "methods": "van,ewc"}, "memory-bytes changes nothing, as no method here has an"),
            ({"memory_bytes": "2MB", "memory": 4}, "memory 4 changes nothing: memory-bytes sets it; leave it out"),
        ],
    )
    def test_wrong_bytes_are_one_line(self, epsearch, options, line, tmp_path):
        answer = epsearch(*arguments("compare", OF_BYTES, **options, out=tmp_path))
        assert answer.status == 2 and line in answer.err and len(answer.err.splitlines()) == 1


class TestSteps:
    def test_every_row_has_the_same_number_of_candidates(self, tmp_path):
        study = build(
            Comparison, TINY | {"methods": "agem,ewc,soft_agem", "budget": 5 * STEPS + 1, "out": tmp_path / "runs"}
        )
        images = budgets(study, open_evaluation(study)[0])
        assert images == {CANDIDATES: dict.fromkeys(("agem", "ewc", "soft_agem"), 5)}
        rows = table_rows(study, images)
        for row, axes in zip(rows, ({"lr"}, {"lr", "strength"}, {"lr", "epsilon"}), strict=True):
            own, *others = row.candidates()
            assert own == row and len(others) == 4
            for each in others:
                changed = {
                    name
                    for name, value in vars(each.hyperparameters).items()
                    if value != vars(row.hyperparameters)[name]
                }
                assert changed == axes
        assert {each.label for each in rows[2].candidates()} == {
            f"ε-SOFT-GEM, ε = {value}" for value in ("0.5", "0.333333", "0.666667", "0.111111", "0.444444")
        }

    def test_the_best_candidate_is_evaluated(self, tmp_path):
        """Made-up scores, which are higher the nearer the learning rate is to 0.02."""
        study = build(Comparison, TINY | {"methods": "agem,van", "budget": 9 * STEPS, "out": tmp_path / "runs"})
        with Store.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as store:
            loop = make(study, store)
            tried = {row.method: [one.hyperparameters.lr for one in row.candidates()] for row in loop.rows}
            finish(loop, fake(lambda one: 1 - abs(one.lr - 0.02)))
            for row in loop.rows:
                nearest = min(tried[row.method], key=lambda rate: abs(rate - 0.02))
                assert row.hyperparameters.lr == nearest and row.short_values()["lr"] == nearest
            assert loop.untuned == []

    @pytest.mark.slow
    def test_the_page_has_the_steps_of_the_tuning(self, epsearch, tmp_path):
        given = arguments("compare", methods="agem,ewc", budget=3 * STEPS, name="one", out=tmp_path)
        done = epsearch(*given, "--json")
        assert done.status == 0, done.err
        assert done.json["effort"]["trained"] == (3 * 2 + 2) * 2
        found = costs(tmp_path / "one")
        assert {float(row["tuning_steps"]) for row in found.values()} == {3 * STEPS}
        page = (tmp_path / "one" / "comparison.html").read_text(encoding="utf-8")
        assert "member-steps of tuning (" not in page and "learning rate (" not in page, "as the tuning was alike"
        assert epsearch("show", "one", "--out", str(tmp_path)).status == 0

    @pytest.mark.slow
    def test_a_published_member_has_the_name_of_its_tuned_row(self, epsearch, tmp_path):
        """A title has the value of ε, which the tuning chose."""
        given = arguments("compare", methods="soft_agem", budget=3 * STEPS, name="one", out=tmp_path)
        label = epsearch(*given, "--json").json["rows"][0]["row"]
        with open_store(url := ledger_url(tmp_path)) as store:
            loop = stored_loop(store.study("one"), store, url, tmp_path)
            members = [record for record in loop.records.values() if record.phase == "eval"]
            assert len(members) == 2 and {trial_of(loop.study, member).label for member in members} == {label}
            assert [trial.label for trial in publication(loop).trials] == [label]

    @pytest.mark.slow
    def test_grids_of_different_sizes_are_named(self, epsearch, tmp_path):
        given = arguments("compare", methods="agem,mas", name="one", out=tmp_path, seeds=1)
        assert epsearch(*given, "--tune").status == 0
        page = (tmp_path / "one" / "comparison.html").read_text(encoding="utf-8")
        # Eight rates, and with each four λ.
        assert f"member-steps of tuning ({8 * 12:,} to {32 * 12:,})" in page

    @pytest.mark.parametrize(
        ("options", "line"),
        [
            ({"budget": 2 * STEPS - 1}, f"budget must be >= {2 * STEPS} member-steps, 2 candidates of agem, got"),
            ({"budget": 0}, "budget must be >= 1, got 0"),
            ({"budget": 10**8}, "candidates × seeds must be <="),
            ({"budget": 100, "tune": True}, "tune has published grids, and budget candidates of its own"),
            (
                {"budget": 100, "methods": "lwf", "settings": "lwf.distillation=0"},
                "distillation must be > 0 with budget, which tries a decade around it; got 0",
            ),
        ],
    )
    def test_wrong_budgets_are_one_line(self, epsearch, options, line, tmp_path):
        flag = ["--tune"] if options.pop("tune", False) else []
        answer = epsearch(*arguments("compare", **{"methods": "agem", "out": tmp_path} | options), *flag)
        assert answer.status == 2 and line in answer.err and len(answer.err.splitlines()) == 1


@pytest.mark.parametrize("option", [{"tune": True}, {"budget": 100}])
def test_a_stream_without_a_search_part_names_what_would_do(option):
    with pytest.raises(UsageError, match=r"^cv-tasks must be >= 1, got 0 of the"):
        build(Comparison, {"dataset": "split_digits", **option})


@pytest.mark.parametrize("name", ["agem", "ewc", "pi", "soft_agem", "mas", "rwalk", "van"])
def test_candidates_lie_within_what_is_allowed(name):
    declared = method(name)
    values = declared.of({one.name: 10.0 for one in declared.own if one.name == "strength"})
    axes = tunable(name, values)
    few, many = quasi_random(axes, 4), quasi_random(axes, 40)
    assert many[:4] == few, "so that a larger budget goes on with what a smaller one has trained"
    assert len({tuple(point.values()) for point in many}) == 40
    for point in many:
        assert values.but(**point).check(declared.hyperparameters) is None
    for axis in axes:
        shares = sorted((axis.coordinate(point[axis.name]) - axis.axis().low) / axis.axis().width for point in many)
        assert shares[0] < 0.1 and shares[-1] > 0.9 and max(b - a for a, b in pairwise(shares)) < 0.1
