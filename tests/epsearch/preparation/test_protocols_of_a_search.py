"""What a search may not be by a protocol, and how options, files, Python and requests name one."""

import pytest

from epsearch import ProtocolStudy as OfPython
from epsearch import Search as SearchOfPython
from epsearch.failures.errors import UsageError
from epsearch.preparation.build import build, extend_search
from epsearch.preparation.data import open_evaluation
from epsearch.protocols.registry import PROTOCOLS, chooses_by_scores
from epsearch.service.requests import build_study
from epsearch.study.kinds import ProtocolStudy, Search
from tests.support.service import settings

SMALL = {"seeds": 2, "points": 4, "cv_tasks": 2, "tasks": 5, "examples_per_task": 60, "memory": 3, "memory_batch": 8}
MNIST = {"dataset": "permuted_mnist"}  # which has a published ε

REFUSED = {
    "misspelt": ({"protocol": "frist-task"}, "did you mean 'first-task'?"),
    "a task too few": (
        {"protocol": "first-task"},
        "protocol first-task sees 1 task, but epsilon of soft_agem needs 2 to act; choose another",
    ),
    "more tasks than there are": ({"protocol": "first-9"}, "protocol first-9 needs 9 tasks, of 3 in the evaluation"),
    "nothing held out": (
        {"protocol": "first-k", "validation": 0},
        "validation must be > 0 for protocol first-k, which sees held-out examples, got 0",
    ),
    "nothing held out at the end": (
        {"protocol": "end-of-training", "validation": 0},
        "validation must be > 0 for protocol end-of-training, which sees held-out examples, got 0",
    ),
    "rows of all tasks": (
        {"protocol": "first-k", "reference_rows": "joint"},
        "protocol first-k needs no reference-rows, which learn all tasks, got joint",
    ),
    "tasks together": (
        {"protocol": "first-k", "method": "joint", "search": {"lr": "log:0.01..0.1"}},
        "protocol first-k needs tasks one after another; joint shows them together",
    ),
    "min-ACC of one task": (
        {"protocol": "first-task", "method": "er", "search": {"lr": "log:0.01..0.1"}, "objective": "min-ACC"},
        "objective min-ACC needs two tasks in the search, got 1 by protocol first-task",
    ),
    "tests that it does not have": (
        {"protocol": "first-task", "on": "memory"},
        "on memory does not go with protocol first-task; what goes: end-of-training on test and seen-tasks on memory, "
        "or either on validation",
    ),
    "unknown tests": ({"on": "train"}, "no on 'train'; known: validation, test, memory"),
    "an option of a search": (
        {"protocol": "seen-tasks", "strategy": "gp"},
        "strategy is not for protocol seen-tasks, which searches otherwise; leave it out",
    ),
    "the stream of the search": (
        {"protocol": "extrapolated", "score_on": "eval"},
        "protocol extrapolated needs score-on cv, got eval",
    ),
}


def written(value):
    """A value as on the command line."""
    return " ".join(f"{name}={one}" for name, one in value.items()) if isinstance(value, dict) else value


@pytest.mark.parametrize("given, line", REFUSED.values(), ids=REFUSED)
def test_what_cannot_choose_is_refused_in_a_line(given, line, epsearch):
    with pytest.raises(UsageError) as error:
        build(Search, SMALL | given)
    assert str(error.value).endswith(line) and len(str(error.value).split()) < 25
    flat = {name: written(one) for name, one in given.items()}
    flags = [part for name, one in (SMALL | flat).items() for part in (f"--{name.replace('_', '-')}", one)]
    answer = epsearch("run", *flags)
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1) and answer.err.endswith(f"{line}\n")


def test_a_share_of_the_steps_is_refused_once_the_stream_is_open(tmp_path):
    study = build(Search, SMALL | {"protocol": "5-percent", "out": tmp_path})
    with pytest.raises(UsageError, match=r"^protocol 5-percent sees 1 task, but epsilon of soft_agem needs 2 to act"):
        open_evaluation(study)
    open_evaluation(build(Search, SMALL | {"protocol": "70-percent", "out": tmp_path}))


def test_a_memory_that_keeps_all_that_is_seen_is_refused(tmp_path):
    """The places of a reservoir are those of the whole stream: 120 of 108 examples, or of 162."""
    given = SMALL | {"out": tmp_path, "method": "er", "search": {"memory": "4,5"}, "strategy": "grid"}
    with pytest.raises(UsageError, match=r"^search must try a memory <= 3, got at least 4: more keep all 108 examples"):
        open_evaluation(build(Search, given | {"protocol": "first-2"}))
    open_evaluation(build(Search, given | {"protocol": "end-of-training"}))


@pytest.mark.parametrize("name", [*PROTOCOLS, "first-3", "25-percent"])
def test_a_file_and_a_request_name_every_protocol(name, tmp_path):
    given = (MNIST if name == "published" else SMALL | {"tasks": 6}) | {"out": tmp_path, "protocol": name}
    given |= {"cv_tasks": 3, "tasks": 7} if name == "extrapolated" else {}
    given |= {"method": "er", "search": {"lr": "log:0.01..0.1"}} if name == "first-task" else {}
    study = build(Search, given)
    assert study.kind == ("run" if chooses_by_scores(name) else "protocols")
    file = tmp_path / "study.yaml"
    file.write_text(study.to_yaml(), encoding="utf-8")
    assert build(type(study), {}, file) == study
    plain = {option: value for option, value in given.items() if option != "out"}
    service = build_study(plain, settings(tmp_path / "runs"))
    assert (service.kind, service.identity()) == (study.kind, study.identity())


def test_on_names_the_variant_and_stands_nowhere_else(tmp_path):
    short, whole = (
        build(kind, SMALL | given)
        for kind, given in (
            (Search, {"protocol": "seen-tasks", "on": "memory"}),
            (ProtocolStudy, {"protocols": "seen-tasks-on-memory"}),
        )
    )
    assert short == whole
    short, whole = (
        build(Search, SMALL | given)
        for given in ({"protocol": "end-of-training", "on": "test"}, {"protocol": "end-of-training-on-test"})
    )
    assert short == whole and "on" not in short.to_dict() and "on" not in short.identity()


def test_the_command_line_wins_over_the_file(tmp_path):
    file = tmp_path / "study.yaml"
    file.write_text(build(Search, SMALL | {"score_on": "eval"}).to_yaml(), encoding="utf-8")
    named, scored = (build(Search, given, file) for given in ({"protocol": "cv-tasks"}, {"score_on": "cv"}))
    assert {(one.protocol, one.score_on, one.scored_on) for one in (named, scored)} == {("cv-tasks", "cv", "cv")}
    # As older versions wrote it.
    file.write_text(file.read_text(encoding="utf-8").replace("end-of-training-on-test", "cv-tasks"), encoding="utf-8")
    assert build(Search, {}, file) == build(Search, SMALL | {"score_on": "eval"})


def test_an_extension_keeps_its_protocol():
    for given in ({"score_on": "eval", "validation": 0.2}, {"score_on": "eval"}, {"protocol": "first-k"}):
        stored = build(Search, SMALL | given)
        more = extend_search(stored, {"seeds": 3})
        assert (more.protocol, more.scored_on, more.validation) == (
            stored.protocol,
            stored.scored_on,
            stored.validation,
        )


def test_python_has_a_class_for_either():
    with pytest.raises(UsageError, match=r"^protocol chf makes no Search; use ProtocolStudy\(protocols='chf'\)"):
        SearchOfPython(protocol="chf", **SMALL)
    assert SearchOfPython(protocol="first-3", **SMALL).first_tasks is None  # of three
    assert OfPython(protocols="chf", **SMALL).protocols == ("chf",)


def test_a_plan_says_what_is_seen(epsearch):
    flags = [part for name, one in SMALL.items() for part in (f"--{name.replace('_', '-')}", one)]
    plan = ("plan", *flags, "--repeats", 1, "--verbose", "--protocol")
    text = " ".join(epsearch(*plan, "first-k").out.split())
    assert "first-k chooses once, by the held-out examples of the first 2 tasks of the evaluation stream" in text
    assert "10 % of each task's examples held out" in text
