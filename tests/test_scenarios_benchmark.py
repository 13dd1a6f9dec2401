"""benchmarks/scenarios.py trains what `epsearch run` trains, and its page says what is to come."""

import json

import numpy as np
import pytest

from results import metrics

PATH = "cpu-float32-mkl-lazy"
pytestmark = pytest.mark.usefixtures("benchmarks")


def test_every_member_is_trained_once():
    import scenarios

    pieces = scenarios.left([])
    members = [(curve, epsilon) for curve, epsilons in pieces for epsilon in epsilons]
    assert len(members) == len(set(members)) == len(scenarios.STREAMS) * len(scenarios.SEEDS) * len(scenarios.EPSILONS)
    stored = [curve._asdict() | {"epsilon": epsilon} for curve, epsilon in members[:-1]]
    assert scenarios.left(stored) == [(members[-1][0], (members[-1][1],))]


@pytest.mark.parametrize("scenario", ["task", "domain", "class"])
def test_members_are_those_of_a_search(scenario, data_dir):
    import scenarios

    from epsearch.loop.content import measures_transfer
    from trainers import Cohort
    from trainers.numeric_path import NumericPath
    from trainers.population import Training, train_cohort

    curve = scenarios.Curve("split_mnist", scenario, 1)
    found = scenarios.trained((curve, (0.0, 0.5)), str(data_dir), PATH, 20, 1)
    study = scenarios.study_of(curve, str(data_dir), PATH, 20)
    assert study.scenario == scenario and study.cv_tasks == 0 and study.score_on == "eval"
    cohort = Cohort(tuple(study.learner((epsilon,), 1) for epsilon in (0.0, 0.5)))
    stream = study.request("eval").open()
    path = NumericPath(products="mkl", lazy=True)
    result = train_cohort(cohort, Training(stream, path=path, transfer=measures_transfer("eval")))
    expected = 100 * metrics.average_accuracy(result.accuracies)
    np.testing.assert_allclose([member["A_T"] for member in found], expected, atol=1e-6)
    assert all(scenarios.curve_of(member) == curve for member in found)


def test_the_page_names_what_is_missing_and_what_is_best(tmp_path):
    import scenarios
    import scenarios_page

    def member(curve, epsilon):
        score = 50 + 30 * epsilon + curve.seed
        return curve._asdict() | {"epsilon": epsilon, "A_T": score, "F_T": 0.1, "numeric_path": PATH, "commit": "c"}

    first = scenarios.Curve("split_mnist", "class", 0)
    pairs = [(first._replace(seed=seed), epsilon) for seed in range(5) for epsilon in scenarios.EPSILONS]
    found = {"members": [member(*pair) for pair in pairs]}
    text, plots = scenarios_page.section(json.loads(json.dumps(found)))
    assert "Still to come, by the same command: 15 curves." in text and len(plots) == 2
    assert "**Split MNIST, class-incremental**: the best tried ε, 1, is +30.00 ± 0.00 points above A-GEM" in text
    assert scenarios_page.section({"members": found["members"][:3]})[0] == (
        "Still to come, by the same command: 20 curves."
    )
