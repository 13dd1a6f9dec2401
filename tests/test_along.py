"""benchmarks/along.py stores whole matrices of searches, benchmarks/forecasts.py judges what is predicted from them."""

import json
from dataclasses import replace

import numpy as np
import pytest

PATH = "cpu-float32-mkl-lazy"
pytestmark = pytest.mark.usefixtures("benchmarks")


def stored(piece, accuracies):
    """Members of a piece as the file has them."""
    import along

    return [
        {
            "stream": piece.row.name,
            "stage": piece.stage,
            "seed": piece.seed,
            "value": value,
            "accuracies": along.packed(accuracies(piece, value)),
        }
        for value in piece.values
    ]


def forgetful(piece, value):
    """Values forget the less the larger they are, and learn the less."""
    tasks = piece.row.tasks[piece.stage]
    age = np.subtract.outer(np.arange(len(tasks)), np.arange(len(tasks)))
    share = piece.row.values.index(value) / (len(piece.row.values) - 1)
    learned, rate = 0.95 - 0.05 * share + 0.001 * piece.seed, 0.02 * (1 - share)
    return np.where(age >= 0, learned * np.exp(-rate * np.maximum(age, 0)), np.nan)


@pytest.mark.slow
def test_every_member_is_trained_once_and_search_and_evaluation_share_no_task():
    import along

    rows = along.rows()
    assert len({row.name for row in rows}) == len(rows)
    pieces = along.left([])
    members = [along.identity(one) for piece in pieces for one in stored(piece, forgetful)]
    assert len(members) == len(set(members)) == sum(len(row.values) * row.seeds * len(row.tasks) for row in rows)
    known = [one for piece in pieces for one in stored(piece, forgetful)][:-1]
    assert along.left(known) == [pieces[-1]._replace(values=pieces[-1].values[-1:])]
    for row in rows:
        first, count = row.evaluation
        assert set(range(first, first + count)).isdisjoint(row.tasks["search"])
    assert sorted(row.method for row in rows if row.judge) == ["ewc", "soft_agem"]


@pytest.mark.slow
def test_what_is_tested_does_not_change_what_is_trained(data_dir):
    """An evaluation here has the accuracies of the evaluation of a study, which tests later tasks, too."""
    import along
    from parabola import executed

    row = next(row for row in along.rows() if row.name == "permuted_mnist, 2000 images, soft_agem")
    piece = along.Piece(row._replace(evaluation=(3, 4)), "evaluation", 1, (0.5,))
    (found,) = along.trained(piece, str(data_dir), PATH, 60, 1)
    study = along.study_of(row, str(data_dir), PATH, 60)
    request = replace(study.request("eval"), tasks=range(3, 7))
    expected = executed(study, "eval", request, piece.values, 1, 1).value.accuracies[0]
    below = np.tril_indices(4)
    np.testing.assert_allclose(along.unpacked(found["accuracies"])[below], expected[below], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["permuted_mnist, 2000 images, soft_agem", "rotated_mnist, 2000 images, ewc"])
def test_members_are_those_of_a_search_and_begin_alike_on_fewer_tasks(name, data_dir):
    """The matrix of a search on three tasks is the corner of that on more: so one training judges them all."""
    import along
    from parabola import executed

    row = next(row for row in along.rows() if row.name == name)
    piece = along.Piece(row._replace(search=(20, 5)), "search", 1, (row.values[1], row.values[4]))
    found = along.trained(piece, str(data_dir), PATH, 60, 1)
    study = along.study_of(row, str(data_dir), PATH, 60)
    request = replace(study.request("cv"), tasks=range(20, 23))
    fewer = executed(study, "cv", request, piece.values, 1, 1).value.accuracies
    assert study.method == row.method and len(found) == 2
    for member, expected in zip(found, fewer, strict=True):
        whole = along.unpacked(member["accuracies"])
        assert whole.shape == (5, 5)
        np.testing.assert_allclose(whole[:3, :3][np.tril_indices(3)], expected[np.tril_indices(3)], atol=1e-4)


def test_a_file_of_other_settings_is_refused(tmp_path):
    import along

    piece = along.left([])[0]
    file = tmp_path / "along.json"
    along.SCRIPT.write(file, {"streams": along.described(), "members": stored(piece, forgetful)})
    assert len(along.read(file)["members"]) == len(piece.values)
    found = json.loads(file.read_text(encoding="utf-8"))
    found["streams"][piece.row.name]["images"] = 7
    file.write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(ValueError, match=f"along.json has members of other settings of {piece.row.name}"):
        along.read(file)


def test_rules_are_those_of_their_names():
    """On forgetting in proportion to age all but the plain choice and the root of age continue it exactly."""
    import forecasts

    age = np.subtract.outer(np.arange(4), np.arange(4))
    a = np.where(age >= 0, np.array([0.9, 0.8])[:, None, None, None] - 0.02 * age, np.nan)
    truth = np.array([0.9, 0.8]) - 0.02 * np.arange(10).mean()
    for name in ("line over age", "proportional to age", "first loss, then a rate", "line through A_k"):
        np.testing.assert_allclose(forecasts.RULES[name](a, 10), truth, atol=1e-12)
    np.testing.assert_allclose(forecasts.plain(a, 10), np.array([0.9, 0.8]) - 0.02 * 1.5)
    root = np.where(age >= 0, 0.9 - 0.02 * np.sqrt(np.maximum(age, 0)), np.nan)[None, None]
    np.testing.assert_allclose(forecasts.root(root, 10), 0.9 - 0.02 * np.sqrt(np.arange(10)).mean())


@pytest.fixture
def judged():
    """(row, what is written) of one stream, whose best value of three tasks is the worst one of seventeen."""
    import along
    import forecasts

    row = along.rows()[0]
    members = [one for piece in along.pieces() if piece.row == row for one in stored(piece, forgetful)]
    return row, forecasts.results({"facts": {}, "members": members})


@pytest.mark.slow
def test_the_model_is_judged_by_the_evaluation(judged):
    import forecasts

    row, found = judged
    (stream,) = found["streams"]
    assert (stream["stream"], stream["tasks"], stream["seeds"]) == (row.name, 17, row.seeds)
    of_three = stream["searches"][0]
    learned, rates = 0.95 - 0.05 * np.linspace(0, 1, 11), 0.02 * (1 - np.linspace(0, 1, 11))
    learned += 0.001 * np.mean(range(row.seeds))
    truth = np.array([np.mean(x * np.exp(-rate * np.arange(17))) for x, rate in zip(learned, rates, strict=True)])
    assert stream["gap"] == pytest.approx(100 * (truth.max() - truth.min()), abs=0.01)
    first = of_three["rules"]["highest A_k"]
    assert first["regret"] == pytest.approx(100 * (truth.max() - truth[0]), abs=0.01) and first["r"] < 0
    assert of_three["rules"][forecasts.MODEL]["regret"] == pytest.approx(0, abs=0.01)
    better, error = of_three["better"]
    assert better == pytest.approx(first["regret"], abs=0.01) and 0 < error < 0.1


@pytest.mark.slow
def test_the_page_says_what_is_missing_and_by_how_much_aims_are_missed(judged):
    import along
    import along_page

    _, found = judged
    text, plots = along_page.section(json.loads(json.dumps(found)))
    assert plots == {} and f"Still to come, by the same commands: {len(along.rows()) - 1} streams" in text
    cells = next(line for line in text.splitlines() if line.startswith("| Permuted Digits, ε-SOFT-GEM")).split(" | ")
    assert cells[2] == "3" and cells[4] == "0.00 (0.00)" and cells[5].startswith("+")
    (aims,) = [line for line in text.splitlines() if line.startswith("| all | 3 | 100 % (met) | ")]
    assert " (missed by " in aims
    assert along_page.section({"streams": []})[0].endswith(f"{len(along.rows())} streams of {len(along.rows())}.")


@pytest.mark.slow
def test_a_search_along_tasks_costs_what_goes_on(judged):
    """All values see four tasks; a further one is a tenth of the steps of those that go on."""
    import forecasts

    row, found = judged
    few, many = found["streams"][0]["along"]
    assert (few["most"], many["most"]) == forecasts.FURTHER and few["regret"] == many["regret"] == 0
    goes_on = (few["steps"] - 0.4) * 10 * len(row.values)
    assert few["unresolved"] == 1 and goes_on == pytest.approx(round(goes_on), abs=0.01) and 2 <= goes_on <= 11
    assert few["steps"] < many["steps"] < 1


@pytest.mark.slow
def test_a_judge_is_no_stream_by_which_anything_is_chosen(judged):
    import along_page

    _, found = judged
    stream = found["streams"][0]
    judge = stream | {
        "judge": True,
        "searches": [search | {"rules": stream["searches"][0]["rules"]} for search in stream["searches"]],
    }
    text, _ = along_page.section({"streams": [stream, judge]})
    both = text.split("On the streams that judge alone:")
    assert len(both) == 2 and along_page.candidates([stream]) in both[0] and along_page.candidates([judge]) in both[1]


def test_the_readme_says_what_was_measured():
    """Of Permuted MNIST with all images from four tasks, and of all streams."""
    import machine

    readme = " ".join((machine.RESULTS.parent.parent / "README.md").read_text(encoding="utf-8").split())
    streams = json.loads((machine.RESULTS / "forecasts.json").read_text(encoding="utf-8"))["streams"]
    four = {one["stream"]: search for one in streams for search in one["searches"] if search["tasks seen"] == 4}
    full = four["permuted_mnist, 60000 images, soft_agem"]
    gain, error = full["better"]
    assert f"loses {gain:.2f} ± {error:.2f} points on the seventeen" in readme
    assert full["rules"]["the model"]["regret"] == 0
    model, plain = (
        np.mean([one["rules"][rule]["regret"] for one in four.values()]) for rule in ("the model", "highest A_k")
    )
    words = {12: "twelve", 13: "thirteen", 14: "fourteen"}[len(four)]
    assert f"On {words} streams it loses {model:.2f} points in place of {plain:.2f};" in readme


def test_the_page_says_how_forgetting_of_ewc_goes_on():
    """Of the first three tasks: what one after the fifth takes, in what one before it takes."""
    import forecasts
    import machine

    page = " ".join((machine.RESULTS.parent.parent / "docs" / "along.md").read_text(encoding="utf-8").split())
    figures = json.loads((machine.RESULTS / "along.json").read_text(encoding="utf-8"))
    of = {stream.row.name: stream.search.mean(axis=(0, 1)) for stream in forecasts.streams(figures)}

    def grows(a):
        before = np.mean([(a[j, j] - a[4, j]) / (4 - j) for j in range(3)])
        return np.mean([(a[4, j] - a[9, j]) / 5 for j in range(3)]) / before

    small, middle = (grows(of[f"permuted_mnist, {images} images, ewc"]) for images in (2000, 8000))
    assert f"takes {small:.1f} (2,000 images) or {middle:.1f} times (8,000) as much as one before" in page


def test_the_page_says_what_split_cifar_shows():
    """How much shared tasks differ when learned, and the gap of EWC's values with its error."""
    import forecasts
    import machine

    page = " ".join((machine.RESULTS.parent.parent / "docs" / "along.md").read_text(encoding="utf-8").split())
    figures = json.loads((machine.RESULTS / "along.json").read_text(encoding="utf-8"))
    of = {stream.row.name: stream for stream in forecasts.streams(figures)}
    epsilon, strength = (of[f"split_cifar, 1000 images, {method}"] for method in ("soft_agem", "ewc"))
    for stream in (epsilon, strength):
        learned = np.diagonal(stream.search, axis1=2, axis2=3).mean(axis=(0, 1))
        assert f"when learned, {100 * learned.std(ddof=1):.0f} points more or less" in page
    best, worst = (strength.truth[pick(strength.truth.mean(axis=1))] for pick in (np.argmax, np.argmin))
    apart = 100 * (best - worst)
    error = apart.std(ddof=1) / len(apart) ** 0.5
    assert f"ahead of the worst by {apart.mean():.1f} ± {error:.1f} points" in page
    judged = json.loads((machine.RESULTS / "forecasts.json").read_text(encoding="utf-8"))["streams"]
    covered = {one["stream"]: search["covered"] for one in judged for search in one["searches"][-1:]}
    assert covered[epsilon.row.name] == pytest.approx(5 / 6, abs=1e-3), "all but one of six"
    assert covered[strength.row.name] == 1
    assert f"of ε is {-judged_by(judged, epsilon.row.name, 3)['better'][0]:.1f} points behind the plain one" in page


def judged_by(judged, name, tasks):
    """The search of a stream that sees so many tasks."""
    (stream,) = (one for one in judged if one["stream"] == name)
    (search,) = (one for one in stream["searches"] if one["tasks seen"] == tasks)
    return search
