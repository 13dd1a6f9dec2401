"""epsearch with a method, a stream, a strategy and a metric in its registries; command lines come as JSON."""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import numpy as np

from epsearch.failures.lines import run_command
from results.metrics import METRICS
from search_spaces.published import definition
from search_spaces.strategies import STRATEGIES
from tests.support.others import ENDS, PULLED, worst
from trainers.methods import METHODS
from trainers.streams import PIXELS, PermutedStream, StreamSource
from trainers.streams.base import Images
from trainers.streams.pixels import digits

DEFINITION = (Path(definition.__file__).parent / "definitions" / "permuted_digits.yaml").read_text(encoding="utf-8")
OF_METHOD = "  pulled: {learning_rate: 0.02, pull: 0.25}\n"


def upside_down(data_dir):
    """The digits with their pixels in the opposite order."""
    known = digits.load()
    train, test = (
        part._replace(inputs=np.ascontiguousarray(part.inputs[:, ::-1])) for part in (known.train, known.test)
    )
    return Images(train, test, known.classes, known.largest)


def register():
    """The lines of the registries."""
    METHODS["pulled"] = PULLED
    PIXELS["upside_down"] = StreamSource(PermutedStream, upside_down, digits.present)
    STRATEGIES["from-the-ends"] = ENDS
    METRICS["worst"] = worst
    own = DEFINITION.replace("title: Permuted Digits", "title: Digits upside down").replace(
        "[perm_digits, digits]", "[]"
    )
    known = definition._all()
    known["permuted_digits"] = definition.parse_definition("permuted_digits", DEFINITION + OF_METHOD)
    known["upside_down"] = definition.parse_definition("upside_down", own + OF_METHOD)


def answers(commands):
    """What each command line printed on both streams, and its exit status."""
    from epsearch import cli  # whose commands have the options of what is registered by now

    for arguments in commands:
        out, err = io.StringIO(), io.StringIO()
        with patch("sys.argv", ["epsearch", *arguments]), redirect_stdout(out), redirect_stderr(err):
            status = run_command(cli.run)
        yield status, out.getvalue(), err.getvalue()


if __name__ == "__main__":
    register()
    json.dump(list(answers(json.load(sys.stdin))), sys.stdout)
