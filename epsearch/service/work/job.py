"""One study of the queue, trained by a process of its own: `python -m epsearch.service.work.job --out FOLDER -- NAME`.

The ledger's URL comes from the environment where it is not the file in the folder, as a password must not stand among
arguments. What is printed goes into a file beside the report.
"""

import argparse
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

from epsearch.failures.stopping import end, listen


def main() -> None:
    """Trains the study; exit statuses are those of the command line."""
    stop = listen()  # first: importing the rest takes a second
    try:
        from epsearch.failures.lines import run_command

        status = run_command(partial(_work, sys.argv[1:]), stop.printing)
    except KeyboardInterrupt:
        end()
    stop.printed()
    sys.exit(status)


def _work(arguments: list[str]) -> None:
    """Trains what was submitted under a name, and queues it again where it is interrupted."""
    from epsearch.api import run
    from epsearch.failures.errors import Interrupted, TimeSpent, UsageError
    from epsearch.ledger.location import hide_storage, ledger_url
    from epsearch.service.requests import of_submission
    from epsearch.service.settings import Settings
    from epsearch.service.work.log_listener import LogListener
    from results.ledger.store import Store, StoreError

    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    for name in ("--out", "--data-dir"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--address", default="local")
    parser.add_argument("--checkpoints")
    given = parser.parse_args(arguments)
    url = ledger_url(given.out)
    own = Settings(url, given.out, given.data_dir, address=given.address, checkpoints=given.checkpoints)
    with hide_storage(), Store.open(url) as store:
        submission = store.queue.submissions().get(given.name)
        if submission is None:
            raise UsageError(f"no study {given.name!r} was submitted")
        study = of_submission(submission, own)
        try:
            begun = partial(store.queue.set_tries, given.name, 0)
            run(study, LogListener(begun), extend=bool(submission.given.get("extend")))
        except TimeSpent:
            with suppress(StoreError):
                store.queue.close(given.name)  # or it would go on at once
            raise
        except (Interrupted, KeyboardInterrupt):
            with suppress(StoreError):
                store.queue.put_back(given.name)  # not one that was cancelled
            raise


if __name__ == "__main__":
    main()
