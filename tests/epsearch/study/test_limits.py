"""Numbers that are too large are told at once, with the bound; what lies below the bounds is planned."""

import math

import pytest
import yaml

from epsearch.commands.training import TRAINING
from epsearch.failures.errors import UsageError
from epsearch.loop import search
from epsearch.preparation.build import build, extend_search
from epsearch.preparation.data import prepare
from epsearch.study import limits
from epsearch.study.description import Disjointness
from epsearch.study.kinds import KINDS, Comparison, MemoryStudy, Search
from results.ledger.store import Store
from tests.support.drive import fake, finish, make
from tests.support.events import Recorded
from tests.support.toy_streams import toy
from trainers.cohort import LARGEST_SEED, Learner

# option -> the largest number it takes; options of more than one form follow below
LARGEST = {
    "strategy_seed": limits.STRATEGY_SEED,
    "repeats": limits.ROUNDS,
    "points": limits.VALUES,
    "cv_tasks": limits.TASKS,
    "tasks": limits.TASKS,
    "classes_per_task": limits.CLASSES,
    "image_size": limits.SIDE,
    "memory": limits.COUNT,
    "memory_batch": limits.COUNT,
    "batch_size": limits.COUNT,
    "examples_per_task": limits.COUNT,
    "fisher_every": limits.COUNT,
    "sizes": limits.COUNT,
    "certify": limits.MEMBERS,
    "workers": limits.WORKERS,
    "niceness": limits.NICENESS,
    "task_timeout": limits.SECONDS,
}
OPTIONS = {name: one for kind in KINDS.values() for name, one in kind.options().items()}
PARSERS = {name: option.parse for name, option in OPTIONS.items()}
HUGE = "9" * 5000  # more digits than Python turns into a number
TRAIN = fake(lambda member: 0.5 + 0.1 * member.epsilon)


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as opened:
        yield opened


def refused(parse, value, *parts):
    with pytest.raises(UsageError) as error:
        parse(value)
    line = str(error.value)
    assert "\n" not in line and len(line) < 300
    for part in parts:
        assert part in line, line


@pytest.mark.parametrize("name", LARGEST)
def test_whole_numbers_have_a_bound_that_the_line_names(name):
    largest, parse, shown = LARGEST[name], PARSERS[name], name.replace("_", "-")
    assert parse(str(largest)) in (largest, (largest,))
    refused(parse, str(largest + 1), f"{shown} must be <= {largest}, got {largest + 1}")
    refused(parse, 10**100, f"{shown} must be <= {largest}, got 1000")
    refused(parse, 2**20000, shown)  # YAML has it as 0xffff…
    refused(parse, HUGE, shown, "got '999")


@pytest.mark.parametrize("name", ["lr", "strength", "margin", "epsilon", "interval", "settings"])
@pytest.mark.parametrize("value", [1e31, 10**400, "1e400", HUGE, -(10**400)])
def test_real_numbers_have_one_too(name, value):
    given = {"interval": (0, value), "settings": {"ewc.lr": value}}.get(name, value)
    refused(PARSERS[name], given)


def test_every_number_among_the_options_is_bounded():
    """Whatever option takes a number refuses one of 400 digits; so a new option cannot be forgotten."""
    for option in OPTIONS.values():
        try:
            taken = option.parse(10**400)
        except UsageError:
            continue
        assert not isinstance(taken, (int, float)) or isinstance(taken, bool), option.name


@pytest.mark.parametrize("name", ["seeds", "eval_seeds"])
class TestSeeds:
    def test_the_largest(self, name):
        for value in (f"0,{LARGEST_SEED}", [0, LARGEST_SEED], f"{LARGEST_SEED}..{LARGEST_SEED}"):
            assert PARSERS[name](value)[-1] == LARGEST_SEED
        for value in (f"0,{LARGEST_SEED + 1}", [LARGEST_SEED + 1], f"{LARGEST_SEED + 1}..{LARGEST_SEED + 1}"):
            refused(PARSERS[name], value, f"{name.replace('_', '-')} must be numbers <= {LARGEST_SEED}, got")

    def test_how_many(self, name):
        assert len(PARSERS[name](limits.SEEDS)) == limits.SEEDS
        many = limits.SEEDS + 1
        for value in (many, str(many), f"1..{many}", list(range(many)), 9_999_999_999, 10**30, f"0..{10**30}"):
            refused(PARSERS[name], value, f"{name.replace('_', '-')} must be <= {limits.SEEDS} in number, got")

    def test_what_is_no_seed(self, name):
        for value in (HUGE, f"0..{HUGE}", [HUGE], [0.5], [None], -1, "-3..2", {"a": 1}):
            refused(PARSERS[name], value, "must be a count >= 1, a list")


def test_a_seed_that_no_ledger_holds_is_no_members():
    with pytest.raises(ValueError, match=rf"seed must lie in 0…{LARGEST_SEED}, got {LARGEST_SEED + 1}"):
        Learner.of("van", LARGEST_SEED + 1)


def test_the_largest_seed_is_stored(small_study, store):
    finish(make(small_study(seeds=[LARGEST_SEED, 0], points=3, repeats=1, certify=0), store), TRAIN)
    assert {record.seed for record in store.all_runs()} == {0, LARGEST_SEED}


@pytest.mark.parametrize("number", [hex(2**20_000), hex(-(2**20_000)), hex(10**400)], ids=["huge", "below", "large"])
def test_no_option_of_a_file_ends_in_a_traceback_for_a_huge_number(number, tmp_path):
    for name in Search.options():
        file = tmp_path / "study.yaml"
        file.write_text(f"{name}: {number}\n", encoding="utf-8")
        try:
            build(Search, {}, file)
        except UsageError as error:
            assert "\n" not in str(error), name


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (f"memory=1,{limits.COUNT + 1}", ["memory must be whole, >= 1 and <= 1000000000, got"]),
        (f"batch_size=1..{10**400}", ["batch_size must be whole, >= 1 and <= 1000000000, got"]),
        ("lr=log:0.1..1e31", ["lr must be > 0 and <= 1e+30, got 1e+31"]),
        (
            f"lr={','.join(map(str, range(1, limits.CHOICES + 2)))}",
            ["choices of lr must be <= 1000 in number, got 1001"],
        ),
        ([f"lr={number}" for number in range(1, 5000)], ["hyperparameters once, got 4999 parts"]),
    ],
)
def test_a_search_space_is_bounded(text, parts):
    refused(PARSERS["search"], text, *parts)


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (Search, {"points": 10_000, "repeats": 2}, "points × repeats must be <= 10000 values, got 10000 × 2 = 20000"),
        (
            Search,
            {"points": 1000, "repeats": 1, "seeds": 101},
            "points × repeats × seeds must be <= 100000 members, got 1000 × 1 × 101 = 101000",
        ),
        (Search, {"seeds": 200, "tasks": 1000}, "seeds × tasks must be <= 100000 different tasks, got 200 × 1000"),
        (Search, {"eval_seeds": 200, "tasks": 1000}, "seeds × tasks must be <= 100000 different tasks, got 200 × 1000"),
        (Comparison, {"seeds": 10_000, "tasks": 10, "tune": True}, "rows × seeds must be <= 100000 members, got "),
        (
            MemoryStudy,
            {"sizes": list(range(1, 101)), "seeds": 1000, "methods": "agem,soft_agem"},
            "rows × seeds must be <= 100000 members, got 200 × 1000 = 200000",
        ),
    ],
)
def test_numbers_that_fit_alone_may_be_too_many_together(kind, given, message, tmp_path):
    with pytest.raises(UsageError) as error:
        build(kind, given)
    assert message in str(error.value)
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(given), encoding="utf-8")
    with pytest.raises(UsageError) as error:
        build(kind, {}, file)
    assert message in str(error.value)


def test_a_study_cannot_grow_beyond_them():
    with pytest.raises(UsageError, match="points × repeats must be <= 10000 values"):
        extend_search(build(Search, {}), {"points": 9000})


@pytest.mark.parametrize("command", [*TRAINING, "plan"])
@pytest.mark.parametrize(("flag", "value"), [("--tasks", 100_000), ("--seeds", 10_000_000), ("--memory", 10**12)])
def test_every_command_tells_the_bound_before_anything_is_made(epsearch, tmp_path, command, flag, value):
    if (command, flag) == ("memory", "--memory"):
        flag = "--sizes"
    answer = epsearch(command, flag, value)
    assert answer.status == 2 and answer.out == "" and not (tmp_path / "runs").exists()
    assert answer.err.startswith(f"epsearch: {flag.strip('-')} must be <= ") and answer.err.count("\n") == 1


def test_a_large_study_is_announced_before_it_is_looked_at(monkeypatch):
    events = Recorded()
    told = events.notes
    monkeypatch.setattr("epsearch.preparation.data.decode_for", lambda *what: told.append("the data"))
    monkeypatch.setattr("epsearch.preparation.data.open_evaluation", lambda study: (toy(), Disjointness()))
    many = build(Search, {"points": 100, "repeats": 1, "seeds": 200})
    prepare(many, events)
    line = "a large study, up to 20,000 members and 4,000 different tasks: getting ready takes a while"
    assert told == [line, "the data"]
    prepare(build(Search, {}), events)
    assert told == [line, *["the data"] * 2]
    prepare(build(Comparison, {"tasks": 1000, "seeds": 20}), events)
    assert "20,000 different tasks" in told[-2]


def test_images_are_prepared_within_the_bound(epsearch):
    answer = epsearch("datasets", "prepare", "folder:nowhere", "--image-size", limits.SIDE + 1)
    assert answer.status == 2 and str(limits.SIDE) in answer.err and answer.err.count("\n") == 1


@pytest.mark.slow
def test_members_are_described_once_however_often_they_are_looked_at(small_study, store, monkeypatch):
    """A round of thousands of members is looked at for every cohort that comes back."""
    made = []
    original = search.Run
    monkeypatch.setattr(search, "Run", lambda *what: made.append(what) or original(*what))
    loop = make(small_study(points=20, repeats=3, seeds=4, certify=0), store)
    finish(loop, TRAIN)
    assert len(made) == len(set(made)) == len(loop.records) > 100


def test_no_more_certificates_are_announced_than_there_are_members(small_study, store):
    assert make(small_study(points=3, repeats=1, seeds=2, certify=50_000), store).counts().certified == 6


def test_minus_zero_is_zero():
    found = [PARSERS["epsilon"]("-0"), PARSERS["margin"](-0.0), *PARSERS["interval"]("-0 0.5")]
    assert [math.copysign(1, one) for one in found] == [1, 1, 1, 1]
