"""Options that several kinds of study have."""

from typing import Any

from epsearch.study import values
from epsearch.study.option import REQUEST, SEEDS, STREAM, option


def claim_option() -> Any:
    """Returns the option of a claim about the evaluation."""
    return option(
        values.CLAIM,
        'A claim about A_T on the evaluation, like "soft_agem > agem + 1", in percentage points: stored before it, '
        "answered in the report.",
        SEEDS,
        usual="none",
        later=True,
    )


def allow_shared_option() -> Any:
    """Returns the option that permits images of the training in tests."""
    return option(
        values.FLAG,
        "Search although more than 1 % of the test images are in training, too, or of the evaluation in the search.",
        STREAM,
        False,
        scope=REQUEST,
        after="skip_corrupt",
    )
