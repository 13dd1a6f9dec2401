"""What comes over the pipe is a message, or is said to be none before anything is made of it."""

import json

import numpy as np
import pytest

from trainers.foreign import messages
from trainers.foreign.messages import MOST_BODY, MOST_HEADER, PREFIX, Malformed, Message, pack, take_message


def taken(content, step=10**6):
    received = bytearray()
    for at in range(0, len(content), step):
        assert take_message(received) is None
        received += content[at : at + step]
    return take_message(received)


ARRAYS = [np.arange(6, dtype=np.uint8).reshape(2, 3), np.zeros((0, 4)), np.array([-1, 2**40]), np.float32([[0.5]])]


@pytest.mark.parametrize("step", [1, 7, 10**6])
def test_arrays_come_as_they_went_however_the_bytes_come(step):
    made = taken(pack({"kind": "a", "more": [1.5, None, "ε"]}, *ARRAYS), step)
    assert made.kind == "a" and made.header == {"kind": "a", "more": [1.5, None, "ε"]}
    for one, other in zip(made.arrays, ARRAYS, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape and np.array_equal(one, other)


def test_the_other_order_of_bytes_is_turned():
    assert taken(pack({}, np.array([1, 2], ">i8"))).arrays[0].tolist() == [1, 2]


def test_messages_come_one_after_another():
    received = bytearray(pack({"kind": "a"}) + pack({"kind": "b"})[:-1])
    assert take_message(received).kind == "a" and take_message(received) is None


def described(header, body=b""):
    text = json.dumps(header).encode() if not isinstance(header, bytes) else header
    return PREFIX.pack(len(text), len(body)) + text + body


BAD = {
    "a long header": PREFIX.pack(MOST_HEADER + 1, 0),
    "a long body": PREFIX.pack(2, MOST_BODY + 1),
    "no JSON": described(b"{"),
    "deep JSON": described(b"[" * 10**5),
    "no text": described(b"\xff\xff"),
    "a list": described([]),
    "no arrays": described({}),
    "arrays of nothing": described({"arrays": 3}),
    "a negative shape": described({"arrays": [["uint8", [-1]]]}),
    "two negative shapes": described({"arrays": [["uint8", [-1, -1]]]}, b"x"),
    "objects": described({"arrays": [["object", [1]]]}, b"x" * 8),
    "a type that is none": described({"arrays": [["uint9", [1]]]}, b"x"),
    "a structure": described({"arrays": [["i8,i8", [1]]]}, b"x" * 16),
    "too large an array": described({"arrays": [["uint8", [2**62, 2**62]]]}, b"x"),
    "too short": described({"arrays": [["int64", [2]]]}, b"x" * 15),
    "too long": described({"arrays": [["int64", [1]]]}, b"x" * 9),
    "an endless shape": described(b'{"arrays": [["uint8", [Infinity]]]}'),
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_anything_else_is_refused(content):
    with pytest.raises(Malformed):
        taken(content)


def test_random_bytes_are_refused_or_waited_for():
    rng = np.random.default_rng(0)
    good = pack({"kind": "labels", "task": 1}, np.arange(5))
    for _ in range(2000):
        content = bytearray(good)
        for place in rng.integers(0, len(content), rng.integers(1, 4)):
            content[place] = rng.integers(256)
        try:
            made = taken(bytes(content))
        except Malformed:
            continue
        assert made is None or isinstance(made.header, dict)


def test_fields_are_what_they_must_be():
    made = Message({"kind": "a", "task": 1, "flag": True, "line": 3}, [np.zeros((2, 2))])
    assert made.whole("task") == 1
    for wrong in (lambda: made.whole("flag"), lambda: made.whole("none"), lambda: made.text("line")):
        with pytest.raises(Malformed):
            wrong()
    with pytest.raises(Malformed):
        made.array("float64")
    assert Message({}, [np.zeros(2)]).array("float64").shape == (2,)


def test_a_text_from_outside_is_a_part_of_a_line():
    assert messages.plain("a\x1b[2J\u202e\n\x00é") == "a\\x1b[2J\\u202e\\n\\x00é"
    assert messages.plain("x" * 2000) == "…" + "x" * 1000


@pytest.mark.parametrize("shape", [[0, 2**70], [2**70, 0], [1] * 200, [0] * 70, [-(2**70)], ["a"], [None], [[1]], 3])
def test_shapes_that_no_array_has_are_refused(shape):
    try:
        made = taken(described({"arrays": [["uint8", shape]]}, b"\x00" * 2))
    except Malformed:
        return
    pytest.fail(f"taken as {made}")


@pytest.mark.parametrize("kind", [None, [], {}, [["train"]], 1, 1e400, True, "", "trains"])
def test_a_kind_of_any_type_is_none_that_there_is(kind):
    made = taken(described({"kind": kind, "arrays": []}))
    assert isinstance(made.kind, str)
    assert made.kind not in ("train", "done")
