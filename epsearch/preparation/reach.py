"""Whether the place of the checkpoints can be reached, asked before anything is trained."""

from uuid import uuid4

from epsearch.failures.errors import UsageError
from epsearch.study.description import Study
from trainers.persistence.places import place, reason
from trainers.persistence.runs import works

SECONDS = 60.0  # for each answer: so long a busy machine may take, and its user waits

MARK = "epsearch"  # of a file that is there for a moment


def check_checkpoints(study: Study) -> None:
    """Writes, reads and removes a file where the study keeps its checkpoints. Raises UsageError where that fails."""
    if study.checkpoints is None:
        return  # a cache, without which everything works
    name = f"check/{uuid4().hex}"
    there = place(study.checkpoints, SECONDS)
    try:
        there.write(name, MARK, memoryview(b"here"))
        there.contents(name, MARK)
        there.remove([name])
    except OSError as error:
        raise UsageError(
            f"checkpoints {study.checkpoints} cannot be written and read: {reason(error)}; "
            "give a folder or a URL that every worker can reach"
        ) from error
    works(there)
