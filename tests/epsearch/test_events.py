"""Events: stored as data, read back by their kind, printed as lines."""

from dataclasses import dataclass

import pytest

from epsearch import events
from epsearch.events import Began, Decoded, Entered, Event, Note, Progress, Stored, Tick, Warned, read
from epsearch.service.work.log_listener import log_listener
from epsearch.terminal.consoles import PlainConsole
from epsearch.terminal.listener import Terminal

STORED = (
    Note("a line"),
    Warned("damage"),
    Entered("mine", "failed", "no memory"),
    Progress("repeat 1", 2, 5, "A_T = 80 %", 100, 10.0, 9.5, 3.0, None, 12.0),
    Progress("repeat 1", 2, 5, "A_T = 80 %", 100, None, None, 3.0, None, None, 7, 20),
)


@dataclass(frozen=True)
class Slowed(Event):
    """An event that the tests add."""

    kind = "slowed"
    speed: float

    def __str__(self):
        return f"slower: {self.speed:g} steps a second"


@pytest.mark.parametrize("event", [*STORED, Slowed(3.5)])
def test_a_stored_event_is_read_back(event):
    assert read(event.kind, "mine", event.as_json()) == event


def test_the_start_is_read_back_without_the_description():
    event = Began("mine", "a heading", "cpu", "local")
    assert read("begin", "mine", event.as_json()) == event


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("records", {"stored": 3}),
        ("unheard", {}),
        ("", {}),
        ("note", {}),
        ("note", {"line": "a line", "more": 1}),
        ("plan", {"lines": []}),
        ("progress", STORED[-1].as_json() | {"known": "two"}),
    ],
)
def test_events_of_other_versions_are_left_out(kind, data):
    assert read(kind, "mine", data) is None


def test_a_new_event_is_printed_and_logged_without_another_line_of_code(capsys):
    log_listener(lambda: None)(Slowed(3.5))
    with Terminal(PlainConsole(stderr=True)) as listen:
        listen(Slowed(3.5))
    logged, printed = capsys.readouterr().err.splitlines()
    assert logged.endswith(" slower: 3.5 steps a second") and printed == "slower: 3.5 steps a second"
    assert events.kinds()["slowed"] is Slowed


@pytest.mark.parametrize("event", [Decoded(1, 2), STORED[-1], Stored(()), Tick()])
def test_events_with_a_view_of_their_own_are_no_lines(event):
    assert not event.logged
