"""A study in a storage of Optuna: trials, attributes and files, once however often it is published."""

import sys
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.artifacts import get_all_artifact_meta
from optuna.trial import TrialState

import epsearch
from results.metrics import average_accuracy, average_accuracy_curve
from tests.epsearch.publishing.conftest import SCORED
from tests.support.drive import fake
from tests.support.servers import free_port, get, server


@pytest.fixture
def publish(studies, tmp_path):
    """Publishes a study of the ledger; returns what was told, and the study as Optuna has it."""
    url = f"sqlite:///{tmp_path}/optuna.db"

    def one(name):
        told = epsearch.publish(name, "optuna", url, studies.out, artifacts=tmp_path / "artifacts")
        return told, optuna.load_study(study_name=name, storage=url)

    one.url = url
    return one


@pytest.mark.slow
def test_a_point_is_a_trial_with_its_mean_its_seeds_and_its_curve(studies, publish):
    loop = studies.trained(name="one")
    told, found = publish("one")
    assert told.places == told.added == len(found.trials) and told.files > 3
    assert {trial.state for trial in found.trials} == {TrialState.COMPLETE}
    assert found.metric_names == ["A_T (%)"]
    assert found.best_params == {"epsilon": loop.best.point[0]}
    assert found.best_value == pytest.approx(100 * loop.best.value)
    for trial in found.trials:
        records = [one for one in loop.search_records() if one.epsilon == trial.params["epsilon"]]
        values = [100 * float(average_accuracy(one.accuracies)) for one in records]
        assert trial.value == pytest.approx(np.mean(values))
        assert [trial.user_attrs[f"A_T, seed {one.seed}"] for one in records] == pytest.approx(values)
        assert {trial.user_attrs[f"run, seed {one.seed}"] for one in records} == {one.key for one in records}
        mean = 100 * average_accuracy_curve(np.stack([one.accuracies for one in records])).mean(axis=0)
        assert trial.intermediate_values == pytest.approx(dict(enumerate(mean, start=1)))
        assert trial.user_attrs["round"] in (1, 2, 3) and trial.user_attrs["seeds"] == 2
    facts = found.user_attrs
    assert facts["state"] == "finished" and "dataset: permuted_digits" in facts["options"] and facts["answer"]
    chosen = [one for one in loop.evaluation_records() if one.epsilon == loop.best.point[0]]
    mean = np.mean([100 * average_accuracy(one.accuracies) for one in chosen])
    assert facts["evaluation, chosen: A_T"] == pytest.approx(mean)


@pytest.mark.slow
def test_publishing_again_changes_nothing(studies, publish, tmp_path):
    studies.trained(name="one")
    before = publish("one")[1]
    trials, files = before.trials, sorted((tmp_path / "artifacts").iterdir())
    told, after = publish("one")
    assert (told.added, told.files) == (0, 0)
    assert after.trials == trials and sorted((tmp_path / "artifacts").iterdir()) == files
    names = [one.filename for one in get_all_artifact_meta(after)]
    assert {"report.html", "study.yaml", "evaluation.csv"} <= set(names) and len(set(names)) == len(names)


@pytest.mark.slow
def test_an_unfinished_study_is_published_as_far_as_it_is_and_then_to_its_end(studies, publish):
    studies.trained(name="one", jobs=1)
    told, found = publish("one")
    first = found.trials
    assert 0 <= len(first) < 4 and "repeat 1" in found.user_attrs["state"]
    studies.trained(name="one")
    told, found = publish("one")
    assert found.trials[: len(first)] == first and told.added == len(found.trials) - len(first) > 0
    assert found.user_attrs["state"] == "finished" and told.files > 0
    names = [one.filename for one in get_all_artifact_meta(found)]
    assert len(set(names)) == len(names)


@pytest.mark.slow
def test_a_study_with_more_seeds_is_written_anew(studies, publish):
    loop = studies.trained(name="one")
    publish("one")
    studies.extended(loop, seeds=3)
    told, found = publish("one")
    # The value that the curve of two seeds named is no point of the search of three.
    assert sorted(trial.user_attrs["seeds"] for trial in found.trials)[1:] == [3] * (len(found.trials) - 1)
    points = [trial.params["epsilon"] for trial in found.trials]
    assert len(set(points)) == len(points) == told.places


@pytest.mark.slow
def test_points_that_diverge_or_lose_a_race_are_no_results(studies, publish):
    diverges = fake(lambda one: float("nan") if getattr(one, "epsilon", 0.0) == 1 else 0.5)
    studies.trained(name="lost", train=diverges)
    _, found = publish("lost")
    (failed,) = [trial for trial in found.trials if trial.params["epsilon"] == 1]
    assert failed.state == TrialState.FAIL and failed.user_attrs["A_T, seed 0"] == "diverged"
    studies.trained(name="race", race=True, seeds=4, strategy="grid")
    _, found = publish("race")
    seeds = {trial.state: trial.user_attrs["seeds"] for trial in found.trials}
    assert seeds[TrialState.COMPLETE] == 4 and seeds[TrialState.PRUNED] < 4


@pytest.mark.slow
def test_several_hyperparameters_and_choices(studies, publish):
    search = "epsilon=0..1 lr=log:0.01..0.1 memory=2,3 trigger=zero,epsilon"
    studies.trained(name="many", strategy="random", search=search)
    _, found = publish("many")
    kinds = {name: type(one).__name__ for name, one in found.trials[0].distributions.items()}
    assert kinds == {
        "epsilon": "FloatDistribution",
        "lr": "FloatDistribution",
        "memory": "CategoricalDistribution",
        "trigger": "CategoricalDistribution",
    }
    assert found.trials[0].distributions["lr"].log


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "options", "names"),
    [("compare", {"methods": "van,agem,er"}, {"row"}), ("memory", {"sizes": "2,3"}, {"row", "memory"})],
)
def test_rows_of_tables_are_trials(studies, publish, command, options, names):
    loop = studies.trained(command, name="table", **options)
    told, found = publish("table")
    assert len(found.trials) == len(loop.rows) == told.places
    assert {frozenset(trial.params) for trial in found.trials} == {frozenset(names)}
    assert publish("table")[0].added == 0


@pytest.mark.slow
def test_what_is_not_ours_is_left_alone(studies, publish):
    studies.trained(name="one")
    optuna.create_study(study_name="one", storage=publish.url)
    with pytest.raises(epsearch.UsageError, match="has a study 'one' that epsearch has not published"):
        publish("one")


@pytest.mark.slow
def test_bad_input_is_one_line_without_passwords(studies, epsearch, tmp_path):
    studies.trained(name="one")
    publish = ("publish", "one", "--out", studies.out, "--to")
    for tool, where, words in (
        ("optuno", "x", "no tool 'optuno'; known: optuna, mlflow, tensorboard; did you mean 'optuna'?"),
        ("optuna", "postgresql+nothing://me:s3cretive@localhost/x", "me:***@localhost"),
        ("optuna", f"sqlite:///{tmp_path}/none/x.db", "cannot publish to the Optuna storage"),
        ("optuna", "not a url", "cannot publish to the Optuna storage not a url"),
    ):
        answer = epsearch(*publish, tool, where)
        assert answer.status == 2 and answer.err.count("\n") == 1 and words in answer.err, answer.err
        assert "s3cretive" not in answer.err
    assert epsearch("publish", "two", "--out", studies.out, "--to", "optuna", "x").status == 2


@pytest.mark.slow
def test_the_command_says_what_it_did(studies, epsearch, tmp_path):
    studies.trained(name="one")
    url = f"sqlite:///{tmp_path}/optuna.db"
    answer = epsearch("publish", "one", "--out", studies.out, "--to", "optuna", url)
    assert answer.status == 0 and f"; optuna-dashboard {url} --artifact-dir {studies.out}/artifacts" in answer.out
    again = epsearch("publish", "one", "--out", studies.out, "--to", "optuna", url, "--json").json
    assert again["added"] == again["files"] == 0 and again["name"] == "one"


@pytest.mark.service
def test_a_published_study_opens_in_optuna_dashboard(studies, publish, tmp_path):
    loop = studies.trained(name="one", train=SCORED)
    told, _ = publish("one")
    port = free_port()
    program = Path(sys.executable).with_name("optuna-dashboard")
    command = [program, publish.url, "--port", port, "--artifact-dir", tmp_path / "artifacts"]
    with server(command, port, tmp_path) as url:
        (summary,) = get(f"{url}/api/studies")["study_summaries"]
        assert summary["study_name"] == "one"
        study = get(f"{url}/api/studies/{summary['study_id']}")
        assert len(study["trials"]) == told.places
        values = {trial["params"][0]["param_internal_value"]: trial["values"][0] for trial in study["trials"]}
        assert max(values, key=values.get) == pytest.approx(loop.best.point[0])
        names = {one["filename"] for one in study["artifacts"]}
        assert "report.html" in names
