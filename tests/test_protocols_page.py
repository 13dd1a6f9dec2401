"""docs/protocols.md shows what benchmarks/protocols.py has written, however much of it is there."""

import argparse
import json
import re

import numpy as np
import pytest

from epsearch.protocols.registry import PROTOCOLS
from results.statistics.regret import Regret
from tests.support import synthetic_protocols as made

pytestmark = pytest.mark.usefixtures("benchmarks")
ORDERS = 5


def study(stream, method, first="first-task", **given):
    """A study as the file has it, of made-up members: the default among 0.1 and 0.5, and one protocol that peeks."""
    import protocols

    best, far = made.always(*[made.BEST] * ORDERS), made.always(*[0.5] * ORDERS)
    rows = (
        made.protocol(first, far, steps=0.4),
        made.protocol("end-of-training", best, steps=7.0),
        made.protocol("current-task", far, steps=7.0),
        made.protocol("end-of-training-on-test", best, evidence=(9, 9, 9), steps=7.0),
        made.protocol("hindsight", best, evidence=(9, 9, 9), steps=7.0, bound=True),
        made.protocol("cv-tasks", [], trained=False, remark="All have diverged."),
    )
    options = next(one for one in protocols.studies() if one[:2] == (stream, method))[2]
    found = protocols.described(stream, method, options | given, made.protocols(*rows))
    return json.loads(json.dumps(found))


def every(**given):
    import protocols

    return [study(stream, method, **given) for stream, method, _ in protocols.studies()]


@pytest.mark.slow
def test_the_page_can_be_made_without_a_study_with_one_and_with_all():
    import protocols_page

    text, plots = protocols_page.section({"studies": []})
    assert (text, plots) == ("Still to come, by the same commands: 6 of 6 studies.", {})
    studies = every()
    text, plots = protocols_page.section({"studies": studies[:1]})
    assert text.startswith("Still to come, by the same commands: 5 of 6 studies.") and len(plots) == 2
    text, plots = protocols_page.section({"studies": studies})
    assert text.startswith("All of it is measured.")
    assert text.count("| protocol | ε chosen |") == 6  # as the made-up studies all choose ε
    for title in ("### Permuted MNIST, ER\n", "### Split MNIST, domain-incremental, EWC\n"):
        assert title in text
    assert all(plots["protocols.svg"].count(title) == 1 for title in re.findall(r"^### (.*MNIST.*)$", text, re.M))


def test_a_file_that_is_not_there_is_named_with_its_command(tmp_path):
    import page
    import protocols_page

    text = page.pages(tmp_path)["docs/protocols.md"]
    assert f"`{protocols_page.SECTION[1]}` writes `benchmarks/results/protocols.json`" in text


@pytest.mark.slow
def test_the_file_fills_the_page(tmp_path):
    import page

    facts = json.loads((page.RESULTS / "along.json").read_text(encoding="utf-8"))["facts"]
    (tmp_path / "protocols.json").write_text(json.dumps({"facts": facts, "studies": every()}), encoding="utf-8")
    made_up = page.pages(tmp_path)
    assert "Not measured yet" not in made_up["docs/protocols.md"] and "*Measured on " in made_up["docs/protocols.md"]
    assert {"docs/images/protocols.svg", "docs/images/protocols-dark.svg"} <= made_up.keys()


def test_every_protocol_is_in_the_table_with_what_it_sees_and_costs():
    import protocols_page

    lines = protocols_page.every_protocol().splitlines()[2:]
    rows = {re.match(r"\| `([\w-]+)` \|", line)[1]: line.split(" | ") for line in lines}
    assert list(rows) == list(PROTOCOLS)
    assert rows["first-task"][1:4] == [
        "Chooses once, by the held-out examples of the first task of the evaluation stream.",
        "K members of that part",
        "all examples of that part",
    ]
    assert rows["hindsight"][2:4] == ["K members of each task", "test sets of earlier tasks"]
    assert rows["chf"][2] == "2 to 8 members of each task" and rows["published"][2] == "nothing"


def test_a_row_has_the_figures_of_the_study():
    import protocols_page

    one = study("permuted_mnist", "er")
    text, _ = protocols_page.section({"studies": [one]})
    rows = {
        line.split(" | ")[0].removeprefix("| "): line.split(" | ")
        for line in text.splitlines()
        if line.startswith("| ")
    }
    first = next(row for row in one["protocols"] if row["protocol"] == "first-task")
    regret = rows["first task"][3]
    assert regret.startswith(f"{first['regret']:.2f} (") and f"{first['regret_low']:.2f} to " in regret
    assert rows["first task"][1] == "0.5" and rows["first task"][5:7] == ["0.4 ×", "1 MiB"]
    assert rows["first task"][7] == "no, 0 of 1,000 |"
    assert rows["end of training on test"][7] == "yes, 9 of 9 |"
    assert rows["hindsight (bound)"][7] == "yes, 9 of 9 |"
    assert rows["cv tasks"][1:7] == ["–"] * 6


def measured(**scores):
    """A study with these A_T [orders, seeds] of protocols, and no more than the claims need."""
    names = {name.replace("_", "-"): np.array(values, dtype=float) for name, values in scores.items()}
    null = dict.fromkeys(("choice_median", "choice_low", "choice_high", "regret", "kept", "smallest_visible"))
    null |= dict.fromkeys(("regret_low", "regret_high", "A_T_mean", "A_T_std"))
    return {
        "stream": "permuted_mnist",
        "method": "soft_agem",
        "parameter": "epsilon",
        "options": {},
        "protocols": [null | {"protocol": name, "title": name, "relative_steps": 2.0} for name in names],
        "members": {
            name: {
                f"{order} {seed}": {"A_T": None if np.isnan(value) else value}
                for (order, seed), value in np.ndenumerate(table)
            }
            for name, table in names.items()
        },
    }


CHEAP = [[80.0, 81.0], [82.0, 83.0], [84.0, 85.0]]


@pytest.mark.parametrize(
    ("plus", "word", "sentence"),
    [
        ([1.0, 1.2, 1.1], "better", "+1.10 points (0.85 to 1.35), better, against the claim"),
        ([-1.0, -1.2, -1.1], "worse", "−1.10 points (−1.35 to −0.85), worse, as claimed"),
        ([-0.1, 0.1, 0.0], "level", "0.00 points (−0.25 to 0.25), no difference is shown, as claimed"),
        ([-3.0, 2.0, 4.0], "unclear", "+1.00 points (−7.96 to 9.96), cannot tell at this size"),
        ([0.0, 0.0, 0.0], "level", "0, equal in every order, as claimed"),
        ([np.nan] * 3, "none", "not comparable, as members have diverged"),
    ],
)
def test_a_claim_is_read_from_the_interval_over_orders(plus, word, sentence):
    import protocols_page

    other = np.array(CHEAP) + np.array(plus)[:, None]
    one = protocols_page.Study(measured(first_task=CHEAP, end_of_training=other))
    ((name, cheap, difference),) = protocols_page.pairs(one)
    assert (name, cheap) == ("end-of-training", "first-task") and protocols_page.reading(difference)[0] == word
    assert sentence in protocols_page.claims(one)
    counts = protocols_page.counted([one])
    assert counts == "No pair can be compared yet." if word == "none" else counts.startswith("Of 1 pair the dearer")


def test_a_dearer_protocol_is_compared_with_each_cheap_one_or_with_what_stands_for_them():
    import protocols_page

    other, label = np.array(CHEAP) + 1, "No choice of ε on the first task is measured here."
    both = protocols_page.Study(measured(published=CHEAP, first_task=CHEAP, first_2=CHEAP, seen_tasks=other))
    assert [pair[:2] for pair in protocols_page.pairs(both)] == [
        ("seen-tasks", "first-task"),
        ("seen-tasks", "published"),
    ]
    assert label not in protocols_page.claims(both)
    two = protocols_page.Study(measured(first_2=CHEAP, seen_tasks=other, hindsight=other))
    assert [pair[:2] for pair in protocols_page.pairs(two)] == [("seen-tasks", "first-2")]
    assert f"{label} *seen-tasks (2.0 ×) − first-2 (2.0 ×)*: +1.00 points" in protocols_page.claims(two)
    nobody = protocols_page.Study(measured(hindsight=CHEAP, seen_tasks=other))
    assert protocols_page.claims(nobody) == "" and list(protocols_page.pairs(nobody)) == []


def test_pairs_are_counted_by_what_they_say():
    import protocols_page

    better = measured(first_task=CHEAP, end_of_training=np.array(CHEAP) + 1, current_task=np.array(CHEAP) - 1)
    text = protocols_page.counted([protocols_page.Study(better)] * 2)
    assert text.startswith("Of 4 pairs the dearer protocol is better in 2 and worse in 2; in 0 no difference")


def test_one_order_alone_tells_nothing_without_an_interval():
    import protocols_page

    one = Regret(0.4, np.nan, np.nan, np.nan, 1, False, np.nan, (0.4,))
    assert protocols_page.reading(one) == ("unclear", "+0.40 points, cannot tell at this size")


def test_points_of_equal_cost_stand_side_by_side_and_hollow_where_they_peek():
    from charts import Point, Range, scatter

    level = Range(1.0, 0.5, 1.5)
    points = {
        "a first one": Point(0.0, level, False),
        "another": Point(4.0, level, True),
        "third": Point(4.0, level, True),
    }
    svg = scatter({"regret": points}, "cost", 2)
    places = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', svg)]
    assert places[0] < places[1] < places[2] and places[2] - places[1] == 10 and places[2] < 386
    assert re.findall(r'<circle [^>]*fill="([^"]+)"', svg).count("white") == 2
    assert all(
        f">{letter}  {name}<" in svg for letter, name in (("a", "a first one"), ("b", "another"), ("c", "third"))
    )


@pytest.mark.slow
def test_a_study_of_other_options_is_trained_again(tmp_path):
    import protocols

    file, wanted, studies = tmp_path / "protocols.json", list(protocols.studies()), every()
    studies[1]["options"]["orders"] += 1
    file.write_text(json.dumps({"studies": studies}), encoding="utf-8")
    left = {options["name"] for *_, options in wanted} - protocols.stored(file, wanted).keys()
    assert left == {wanted[1][2]["name"]}
    assert protocols.stored(tmp_path / "none.json", wanted) == {}


@pytest.mark.slow
def test_only_missing_studies_are_trained_and_the_others_stay(monkeypatch, tmp_path):
    import members
    import protocols

    file, asked, studies = tmp_path / "protocols.json", [], every()

    def outcomes(makers, arguments):
        asked.extend(maker.keywords["name"] for maker in makers)
        return iter([argparse.Namespace(results=made.protocols(made.protocol("first-2", made.always(0.5))))])

    monkeypatch.setattr(members, "outcomes", outcomes)
    file.write_text(json.dumps({"studies": [studies[0], *studies[2:]]}), encoding="utf-8")
    protocols.train(file, argparse.Namespace(tiny=None))
    assert asked == [studies[1]["options"]["name"]]
    after = json.loads(file.read_text(encoding="utf-8"))["studies"]
    assert [one for number, one in enumerate(after) if number != 1] == [studies[0], *studies[2:]]
    assert after[1]["options"] == studies[1]["options"] and len(after[1]["protocols"]) == 1
