"""Comparisons and memory studies: rows, loop, tuning, files, and bad input in one line."""

import csv
import math
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from epsearch.failures.errors import UsageError
from epsearch.findings import reports
from epsearch.loop.content import content, content_key
from epsearch.loop.jobs import JobResult, Run, execute
from epsearch.loop.table import table_rows
from epsearch.preparation.build import build, restore
from epsearch.preparation.data import open_evaluation
from epsearch.study.kinds import Comparison, MemoryStudy
from results.ledger.store import Store
from search_spaces.published.definition import learning_rate_grid, load_definition
from tests.epsearch.conftest import TINY
from tests.support.drive import make
from trainers.cohort import Cohort, CohortResult, Learner
from trainers.forks import steps_of
from trainers.methods import PLUGGED

METHODS = {"van", "ewc", "pi", "mas", "rwalk", "er", "gem", "agem", "a_agem", "soft_agem", "prognn"}
OLD_KEYS = [
    "b66caf1abd97c2d9c9539c948c339946bcecc530b14904838988b2e1ed82f645",
    "5a7ba1ebf92ec900a0781d9e34fa5411a7915e58718c62cebf17b30f8468a2e2",
]


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as opened:
        yield opened


def small(kind, tmp_path, **options):
    given = TINY | {"out": tmp_path / "runs"} | options
    return build(kind, {name: value for name, value in given.items() if name != "memory" or kind is Comparison})


def finish(loop, train=execute):
    jobs = []
    while not loop.done:
        asked = loop.ask()
        jobs += asked
        for job in asked:
            loop.tell([train(job)])
    return jobs


class TestRows:
    def test_every_method_with_the_definitions_hyperparameters(self):
        rows = table_rows(build(Comparison, {"dataset": "permuted_mnist"}))
        assert {row.method for row in rows} == METHODS and len(rows) == 13
        definition = load_definition("permuted_mnist")
        for row in rows:
            published = definition.method(row.method)
            assert (row.hyperparameters.lr, row.hyperparameters.get("strength")) == (
                published["learning_rate"],
                published.get("strength"),
            )
            assert row.hyperparameters.get("memory", 25) == 25 and row.hyperparameters.get("fisher_every", 10) == 10
            assert row.hyperparameters.get("epsilon") == (0.07185 if row.method == "soft_agem" else None)
        batches = {row.label: row.hyperparameters.memory_batch for row in rows if row.method == "er"}
        assert batches == {"ER, reference batch 256": 256, "ER, reference batch 10": 10}
        scales = {row.label: row.hyperparameters.a_agem_scale for row in rows if row.method == "a_agem"}
        assert scales == {"A-A-GEM": "unit", "A-A-GEM (raw average)": "raw"}

    def test_methods_with_settings_of_another_are_rows_where_they_are_named(self):
        """So that comparisons of before keep their rows, also those of `all`."""
        usual, every = (build(Comparison, given).methods for given in ({}, {"methods": "all"}))
        assert {*usual} == {*every} == METHODS
        one, alike = table_rows(build(Comparison, {"methods": "agem,agem_r"}))
        assert one.hyperparameters == alike.hyperparameters and one.label != alike.label

    def test_given_hyperparameters_win(self):
        given = {"methods": "ewc,agem", "settings": "ewc.lr=0.5,ewc.strength=7 agem.lr=0.25"}
        ewc, agem = table_rows(build(Comparison, given))
        assert (ewc.hyperparameters.lr, ewc.hyperparameters.strength, agem.hyperparameters.lr) == (0.5, 7.0, 0.25)
        assert ewc.short_values() == {"lr": 0.5, "λ": 7.0} and agem.short_values() == {"lr": 0.25}

    def test_the_definitions_values_are_part_of_the_study(self):
        """So that a stored comparison stays what it was when a definition changes."""
        study = build(Comparison, {"methods": "ewc,agem", "settings": "ewc.lr=0.5"})
        assert study.to_dict()["settings"] == {"ewc.lr": 0.5, "ewc.strength": 10.0, "agem.lr": 0.03}

    @pytest.mark.slow
    def test_a_plug_in_has_the_datasets_learning_rate(self):
        """At its declared rate of 0.1 it would be compared with methods at the 0.03 of the digits."""
        plug_in = "trainers.methods.agem:AGEM"
        with patch.dict(PLUGGED):
            study = build(Comparison, {"methods": f"agem,{plug_in}"})
            assert study.to_dict()["settings"] == {"agem.lr": 0.03, f"{plug_in}.lr": 0.03}
            assert [row.hyperparameters.lr for row in table_rows(study)] == [0.03, 0.03]
            own = build(Comparison, {"methods": f"agem,{plug_in}", "settings": f"{plug_in}.lr=0.2"})
            assert [row.hyperparameters.lr for row in table_rows(own)] == [0.03, 0.2]
            assert build(MemoryStudy, {"methods": plug_in}).to_dict()["settings"] == {f"{plug_in}.lr": 0.03}

    def test_one_reference_batch_of_10_is_one_row(self):
        assert len(table_rows(build(Comparison, {"methods": "er", "memory_batch": 10}))) == 1

    def test_memory_rows(self):
        rows = table_rows(build(MemoryStudy, {"sizes": "50,25"}))
        assert [(row.method, row.hyperparameters.memory) for row in rows] == [
            (method, size) for method in ("agem", "a_agem", "soft_agem") for size in (25, 50)
        ]
        raw = table_rows(build(MemoryStudy, {"sizes": "25", "methods": "a_agem", "a_agem_scale": "raw"}))
        assert [(row.label, row.hyperparameters.a_agem_scale) for row in raw] == [("A-A-GEM (raw average)", "raw")]

    def test_candidates_are_the_published_grids(self):
        rates = learning_rate_grid()
        ewc, agem = table_rows(build(Comparison, {"methods": "ewc,agem"}))
        assert {(one.hyperparameters.lr, one.hyperparameters.strength) for one in ewc.candidates()} == {
            (rate, strength) for rate in rates for strength in (1, 10, 100, 1000, 10000)
        }
        assert [one.hyperparameters.lr for one in agem.candidates()] == list(rates)
        pi, si = table_rows(build(Comparison, {"methods": "pi,si"}))  # which has the settings of PI
        tried = [[vars(row.hyperparameters)["strength"] for row in each.candidates()] for each in (pi, si)]
        assert tried[0] == tried[1] and len({*tried[1]}) == 5


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (Comparison, {"methods": "agem,gem2"}, "no method 'gem2'; known: .*; did you mean 'gem'"),
        (Comparison, {"methods": "agem,agem"}, "methods must be different names with commas between, or all; got"),
        (Comparison, {"settings": "ewc.lr"}, "settings takes METHOD.HYPERPARAMETER with a value"),
        (
            Comparison,
            {"settings": "ewc.rate=1"},
            "method 'ewc': no hyperparameter 'rate'; known: lr, strength, fisher_every",
        ),
        (Comparison, {"settings": "ewc.lr=1,ewc.lr=2"}, "settings name ewc.lr twice: 'ewc.lr=1,ewc.lr=2'"),
        (Comparison, {"settings": "ewc.lr=1", "tune": True}, "settings and tune exclude each other"),
        (Comparison, {"methods": 5}, "no method '5'; known: van, "),
        (Comparison, {"settings": "ewk.lr=1"}, "no method 'ewk'; known: .*; did you mean 'ewc'"),
        (Comparison, {"settings": "ewc.lr=-1"}, "ewc.lr must be a number > 0, got '-1'"),
        (Comparison, {"settings": "van.strength=1"}, "method 'van': no hyperparameter 'strength'; known: lr"),
        (
            Comparison,
            {"settings": "van.lr=1", "methods": "agem"},
            "settings of 'van' are given, but .* are agem",
        ),
        (Comparison, {"epsilon": "1.5"}, r"epsilon must be a number in \[0, 1\], got '1.5'"),
        (Comparison, {"fisher_every": 0}, "fisher-every must be >= 1, got 0"),
        (Comparison, {"penalty_form": "codes"}, "no penalty-form 'codes'; known: code, paper; did you mean 'code'"),
        (Comparison, {"margin": "-1"}, "margin must be a number >= 0, got '-1'"),
        (Comparison, {"memory": 0}, "memory must be >= 1, .* got 0"),
        (Comparison, {"repeats": 3}, "no option 'repeats'"),
        (
            MemoryStudy,
            {"sizes": "25,25"},
            "sizes must be different numbers .*; got '25,25'",
        ),
        (MemoryStudy, {"sizes": "25,x"}, "sizes must be a whole number >= 1, got 'x'"),
        (MemoryStudy, {"methods": "ewc"}, "method 'ewc' is not in a memory study; allowed: agem, a_agem"),
        (MemoryStudy, {"a_agem_scale": "row"}, "no a-agem-scale 'row'; known: unit, raw; did you mean 'raw'"),
    ],
)
def test_bad_values_are_refused_in_one_line(kind, options, message):
    with pytest.raises(UsageError, match=message) as error:
        build(kind, options)
    assert "\n" not in str(error.value)


def test_a_stored_comparison_comes_back(tmp_path):
    for kind, options in (
        (Comparison, {"methods": "ewc,agem", "settings": "ewc.strength=3"}),
        (Comparison, {"methods": "ewc,agem", "tune": True}),
        (MemoryStudy, {"sizes": "5,7"}),
    ):
        study = small(kind, tmp_path, **options)
        stored = {"kind": kind.kind, "study": study.identity(), "numeric_path": study.numeric_path}
        again = restore(stored, study.name, study.out, study.storage)
        assert type(again) is kind and again.identity() == study.identity()
        path = tmp_path / "study.yaml"
        path.write_text(study.to_yaml(), encoding="utf-8")
        assert build(kind, {}, path) == study


class TestKeys:
    """The hash under which a member's result is known."""

    def keys(self, tmp_path, *learners):
        study = small(Comparison, tmp_path)
        return [content_key(content(study, {"images": "x"}, Run("eval", one))) for one in learners]

    def test_every_hyperparameter_of_a_method_counts(self, tmp_path):
        rwalk = {"strength": 1.0}
        changes = (
            {},
            {"fisher_every": 7},
            {"penalty_form": "paper"},
            {"strength": 2.0},
            {"lr": 0.2},
            {"batch_size": 5},
        )
        learners = [Learner.of("rwalk", 0, **rwalk | change) for change in changes]
        assert len(set(self.keys(tmp_path, *learners))) == len(changes)

    def test_strengths_seeds_and_methods_differ(self, tmp_path):
        learners = [
            Learner.of(method, seed, strength=strength)
            for method in ("ewc", "pi")
            for seed in (0, 1)
            for strength in (1.0, 2.0)
        ]
        assert len(set(self.keys(tmp_path, *learners))) == 8

    def test_epsilon_zero_is_agem(self, tmp_path):
        soft = Learner.of("soft_agem", 0, epsilon=0.0, trigger="epsilon")
        assert len(set(self.keys(tmp_path, soft, Learner.of("agem", 0)))) == 1

    def test_keys_of_a_search_are_those_of_earlier_versions(self, tmp_path, monkeypatch):
        """Made with the code before there were other methods, of protocol version 2: nothing else tells them apart."""
        monkeypatch.setattr("epsearch.loop.content.PROTOCOL_VERSION", 2)
        study = small(Comparison, tmp_path, numeric_path="cpu-float32-mkl")
        soft = Run("eval", Learner.of("soft_agem", 1, epsilon=0.3))
        hard = Run("cv", Learner.of("soft_agem", 1, epsilon=0.0))
        found = [content_key(content(study, {"images": "x"}, one)) for one in (soft, hard)]
        assert found == OLD_KEYS


class TestLoop:
    @pytest.mark.slow
    def test_it_trains_every_row_and_seed_once(self, tmp_path, store):
        loop = make(small(Comparison, tmp_path), store)
        jobs = finish(loop)
        members = [run for job in jobs for run in job.runs]
        assert len(members) == len(set(members)) == loop.trained == len(store.all_runs()) == 13 * 2
        assert {job.phase for job in jobs} == {"eval"}
        for row in loop.rows:
            records = loop.records_of(loop.runs(row))
            assert [record.seed for record in records] == [0, 1]
            assert all(record.method == row.method for record in records)
        again = make(small(Comparison, tmp_path, seeds=1), store)
        assert again.done and again.trained == 0 and again.reused == 13

    def test_rows_with_the_same_result_are_trained_once(self, tmp_path, store):
        """ε-SOFT-GEM with ε = 0 is A-GEM."""
        loop = make(small(Comparison, tmp_path, methods="agem,soft_agem", epsilon=0), store)
        assert loop.stage_members() == (0, 2)
        finish(loop)
        assert loop.trained == 2 and [len(loop.records_of(loop.runs(row))) for row in loop.rows] == [2, 2]

    @pytest.mark.slow
    def test_a_search_has_trained_some_of_it_already(self, tmp_path, store, small_study):
        """A-GEM's members are those of ε = 0 of a search of the same sizes."""
        from epsearch.loop.search import open_search

        study = small_study(**TINY | {"examples_per_task": 60, "name": None})
        search = open_search(study, open_evaluation(study)[0].describe(), store)
        while not search.done:
            search.tell([execute(search.ask()[0])])
        found = make(small(Comparison, tmp_path, methods="agem", examples_per_task=60), store)
        assert found.done and found.reused == 2

    def test_the_longest_work_comes_first(self, tmp_path, store):
        loop = make(small(Comparison, tmp_path, seeds=1, memory=25, examples_per_task=400), store)
        weights = [sum(job.weights[1:]) * len(job.cohort.learners) for job in loop.ask()]
        assert weights == sorted(weights, reverse=True) and weights[0] > 3 * weights[-1]
        assert loop.ask()[0].cohort.method == "gem" and loop.ask()[-1].cohort.method == "van"

    def test_what_is_told_on_the_way_is_what_was_left(self, tmp_path, store):
        """Steps of each task with their own weight: those of the first, without a memory, are none of what was left."""
        loop, told = make(small(Comparison, tmp_path, methods="agem,mas", seeds=2), store), []
        left = loop.work_of(loop.counts())[1]
        firsts = count = 0
        while not loop.done:
            job = loop.ask()[0]
            for one in job.cohort.learners:  # of other seeds
                firsts += job.weights[0] * steps_of(one, job.stream.open())[0]
                count += sum(steps_of(one, job.stream.open()))
            loop.tell([execute(job, lambda *taken: told.append(taken))])
        steps, work = map(sum, zip(*told, strict=True))
        assert steps == count and work == pytest.approx(left + firsts, rel=1e-9)

    @pytest.mark.slow
    def test_what_is_left_falls_to_zero(self, tmp_path, store):
        loop = make(small(Comparison, tmp_path, seeds=1), store)
        seen = [loop.work_of(loop.counts())[1]]
        while not loop.done:
            loop.tell([execute(loop.ask()[0])])
            seen.append(loop.work_of(loop.counts())[1])
        assert seen == sorted(seen, reverse=True) and len(set(seen)) == 14 and seen[-1] == 0
        assert loop.headline() == "13/13 rows"

    def test_tuning_takes_the_best_candidate_that_loses_no_seed(self, tmp_path, store):
        """Made-up scores: a rate of 0.03 is the best for λ = 100, one of 0.3 would be but loses a seed."""

        def score(job, member):
            rate, strength = member.hyperparameters.lr, member.hyperparameters.get("strength")
            if job.phase == "eval":
                return 0.5
            if rate == 0.3 and member.seed == 1:
                return math.nan
            return 0.9 if rate == 0.3 else 0.8 if (rate, strength) == (0.03, 100) else 0.1

        study = small(Comparison, tmp_path, methods="ewc,van", tune=True)
        loop = make(study, store)
        assert loop.stage == "tuning" and loop.stage_members() == (0, 2 * (8 * 5 + 8))
        jobs = finish(loop, made_up(score))
        assert [job.phase for job in jobs] == sorted(job.phase for job in jobs)  # "cv" before "eval"
        ewc, van = loop.rows
        assert (ewc.hyperparameters.lr, ewc.hyperparameters.strength) == (0.03, 100)
        assert van.hyperparameters.lr != 0.3
        assert loop.untuned == [] and [len(loop.records_of(loop.runs(row))) for row in loop.rows] == [2, 2]
        assert make(study, store).rows == loop.rows  # from the ledger alone

    def test_a_method_that_always_diverges_keeps_its_values(self, tmp_path, store):
        loop = make(small(Comparison, tmp_path, methods="pi", tune=True), store)
        before = loop.rows
        finish(loop, made_up(lambda job, member: math.nan))
        assert loop.rows == before and loop.untuned == ["PI"]

    @pytest.mark.slow
    def test_candidates_of_a_method_are_trained_together(self, tmp_path, store):
        """One cohort holds different learning rates and λ; its members are those that would be trained alone."""
        study = small(Comparison, tmp_path, methods="ewc", tune=True, seeds=1)
        loop = make(study, store, workers=1)
        job = max(loop.ask(), key=lambda job: len(job.cohort.learners))
        rates = {member.hyperparameters.lr for member in job.cohort.learners}
        assert len(job.cohort.learners) == 10 and len(rates) > 1
        loop.tell([execute(job)])
        assert len(loop.records) == 10
        for run in loop._stage_runs():
            if found := loop.records_of([run]):
                alone = execute(replace(job, cohort=Cohort((run.learner,)))).value
                assert found[0].fingerprint == alone.fingerprints[0]


def made_up(score):
    """A trainer that makes up accuracies: score(job, member), the same on every task; NaN diverges."""

    def train(job):
        values = np.array([score(job, member) for member in job.cohort.learners])
        tasks, lost = len(job.stream.tasks), np.where(np.isnan(values), 0, -1)
        result = replace(
            CohortResult.empty(len(values), tasks),
            accuracies=np.where(np.tri(tasks, dtype=bool), values[:, None, None], np.nan),
            diverged_task=lost,
            diverged_step=lost,
        )
        return JobResult(job.number, result, seconds=1.0)

    return train


def options(**changes):
    """TINY as command-line arguments."""
    given = {key: value for key, value in (TINY | changes).items() if value is not None}
    return [part for name, value in given.items() for part in ("--" + name.replace("_", "-"), str(value))]


@pytest.mark.slow
def test_the_command_compares_all_methods(epsearch, tmp_path):
    answer = epsearch("compare", *options(), "--name", "first")
    assert answer.status == 0, answer.err
    for label in ("VAN", "EWC", "RWALK", "GEM", "A-A-GEM (raw average)", "PROGNN", "ER, reference batch 8"):
        assert label in answer.out
    folder = tmp_path / "runs" / "first"
    for name in ("comparison.html", "comparison.csv", "comparison.md", "comparison.tex", "ranking.csv", "study.yaml"):
        assert (folder / name).stat().st_size > 0
    with (folder / "comparison.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 13 and all(0 < float(row["A_T_mean"]) < 100 and int(row["n"]) == 2 for row in rows)

    again = epsearch("compare", *options(), "--name", "first", "--json").json
    assert again["effort"]["trained"] == 0 and again["effort"]["reused"] == 26
    assert {row["method"] for row in again["rows"]} == METHODS
    assert epsearch("list", "--json").json[0]["command"] == "compare"
    assert "finished" in epsearch("show", "first").out
    (folder / "comparison.html").unlink()
    assert epsearch("report", "first").status == 0 and (folder / "comparison.html").exists()


@pytest.mark.cluster
def test_ray_tune_trains_the_same(epsearch):
    """A penalty, a reservoir and a growing network, whose results must survive the transport."""
    some = ("--methods", "ewc,er,prognn", "--seeds", "1", "--json")
    threads = epsearch("compare", *options(), *some, "--out", "first").json
    tune = epsearch("compare", *options(runner="tune"), *some, "--out", "second").json
    assert tune["effort"]["trained"] == 4 and tune["rows"] == threads["rows"]


@pytest.mark.slow
def test_the_command_studies_the_memory(epsearch, tmp_path):
    answer = epsearch("memory", *options(memory=None), "--sizes", "2,4", "--name", "sizes")
    assert answer.status == 0, answer.err
    folder = tmp_path / "runs" / "sizes"
    with (folder / "memory.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["method"], row["memory"]) for row in rows] == [
        (method, size) for method in ("agem", "a_agem", "soft_agem") for size in ("2", "4")
    ]
    for name in ("memory.html", "memory.md", "memory.tex"):
        assert (folder / name).stat().st_size > 0
    shared = epsearch("compare", *options(memory=4), "--methods", "agem,a_agem,soft_agem", "--json").json
    assert shared["effort"]["reused"] == 6 and shared["effort"]["trained"] == 2  # the raw average is new


@pytest.mark.slow
def test_a_killed_comparison_goes_on(epsearch, tmp_path, monkeypatch):
    """Everything that was told is kept; the rest is trained by the same command."""
    from epsearch.failures.errors import Interrupted
    from epsearch.loop.base import Loop

    original = Loop._store_result

    def keep(self, job, result):
        if self.trained >= 6:
            raise Interrupted
        original(self, job, result)

    with monkeypatch.context() as patch:
        patch.setattr(Loop, "_store_result", keep)
        stopped = epsearch("compare", *options(), "--name", "first")
    assert stopped.status == 130 and "resumes from there" in stopped.err
    resumed = epsearch("compare", *options(), "--name", "first", "--json").json
    assert resumed["effort"]["reused"] >= 6
    whole = epsearch("compare", *options(), "--out", "other", "--name", "first", "--json").json
    assert whole["rows"] == resumed["rows"]


@pytest.mark.parametrize(("settings", "named"), [({}, True), ({"settings": "soft_agem.epsilon=1"}, False)])
def test_an_epsilon_that_no_paper_reports_is_named_where_a_row_has_it(tmp_path, store, settings, named):
    study = small(Comparison, tmp_path, methods="soft_agem,van", dataset="rotated_digits", **settings)
    loop = make(study, store)
    assert any("reports no ε" in note and "ε = 0.5 " in note for note in reports._notes(loop)) is named
