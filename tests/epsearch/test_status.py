"""The status of a study: its words, and its way through JSON."""

import json

import pytest

from epsearch.events import Progress, read
from epsearch.status import UNKNOWN, StudyStatus, read_status

PROGRESS = {
    **{"stage": "round 1", "known": 1, "wanted": 4, "headline": "–", "member_steps": 10},
    **{"speed": None, "eta": None, "seconds": 2.0, "eta_low": None, "eta_high": 9.5},
}


@pytest.mark.parametrize(
    ("fields", "status", "detail"),
    [
        ({}, UNKNOWN, ""),
        ({"state": "running"}, "running", ""),
        ({"state": "running", "summary": "1 of 4 members"}, "running: 1 of 4 members", "1 of 4 members"),
        ({"state": "running", "summary": "finished"}, "running: all members are there", "all members are there"),
        ({"state": "queued", "summary": "finished"}, "queued: it was finished before", "it was finished before"),
        ({"state": "failed", "reason": "no luck", "summary": "1 of 4"}, "failed: no luck", "no luck"),
        ({"state": "finished", "summary": "finished"}, "finished", ""),
        ({"state": "finished"}, UNKNOWN, UNKNOWN),
        ({"state": "failed", "reason": "no luck", "unreadable": "damaged: x"}, "damaged: x", "damaged: x"),
    ],
)
def test_status_and_detail_follow_from_state_reason_and_summary(fields, status, detail):
    made = StudyStatus(name="mine", **fields)
    assert (made.status, made.detail) == (status, detail)


@pytest.mark.parametrize("state", ["queued", "running", "cancelling", "cancelled", "failed", "finished", "interrupted"])
def test_a_study_is_active_while_it_is_trained_or_waits(state):
    assert StudyStatus(name="mine", state=state).active == (state in ("queued", "running", "cancelling"))
    assert StudyStatus(name="mine", state=state, waits=True).active


def test_json_is_read_back_as_the_same_status_and_fields_of_other_versions_are_left_out():
    made = StudyStatus(
        name="mine", kind="run", chosen={"epsilon": 0.5}, place=2, ahead=("a", "b"), progress=Progress(**PROGRESS)
    )
    data = json.loads(json.dumps(made.as_json() | {"newer": 1}))
    assert read_status(data) == made and data["status"] == made.status


@pytest.mark.parametrize(
    "wrong", [{"seconds": None}, {"seconds": "2"}, {"known": True}, {"speed": "fast"}, {"stage": 1}, {"headline": None}]
)
def test_progress_of_wrong_types_is_left_out(wrong):
    assert read(Progress.kind, "mine", PROGRESS) == Progress(**PROGRESS)
    assert read(Progress.kind, "mine", PROGRESS | wrong) is None
