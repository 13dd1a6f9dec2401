"""Trains a study of the queue in a process of its own: `python -m epsearch.service.work.job --out FOLDER -- NAME`.

The ledger's URL comes from the environment if it is not the file in the folder, as arguments must not have a password.
The output goes into a file beside the report.
"""

import argparse
import sys
import traceback
from contextlib import suppress
from functools import partial
from pathlib import Path

from epsearch.failures.stopping import end, listen


def main() -> None:
    """Trains the study; exit statuses are those of the command line."""
    stop = listen()  # first: importing the rest takes a second
    try:
        from epsearch.failures.lines import run_command

        status = run_command(partial(_work_with_traceback, sys.argv[1:]), stop.begin_printing)
    except KeyboardInterrupt:
        end()
    stop.end_printing()
    sys.exit(status)


def _work_with_traceback(arguments: list[str]) -> None:
    """Calls `_work`; the traceback of a bug is printed, too: of the file of a crash clients see nothing."""
    from epsearch.failures.crash_report import option_urls
    from epsearch.failures.lines import OURS, failure
    from results.ledger.url import without_passwords

    try:
        _work(arguments)
    except Exception as error:
        _, status, of_worker = failure(error)
        if status == OURS:
            text = of_worker or "".join(traceback.format_exception(error))
            print(without_passwords(text, option_urls()), file=sys.stderr, flush=True)
        raise


def _work(arguments: list[str]) -> None:
    """Trains the submission of a name; queues it again if it is interrupted."""
    from epsearch.api import run
    from epsearch.failures.errors import Interrupted, TimeSpent, UsageError
    from epsearch.ledger.location import hide_storage, ledger_url
    from epsearch.service.requests import submitted_study
    from epsearch.service.settings import Settings
    from epsearch.service.work.log_listener import log_listener
    from results.ledger.store import Store, StoreError

    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    for name in ("--out", "--data-dir"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--address", default="local")
    parser.add_argument("--checkpoints")
    options = parser.parse_args(arguments)
    url = ledger_url(options.out)
    settings = Settings(url, options.out, options.data_dir, address=options.address, checkpoints=options.checkpoints)
    with hide_storage(), Store.open(url) as store:
        submission = store.queue.submission(options.name)
        if submission is None:
            raise UsageError(f"no study {options.name!r} was submitted")
        study = submitted_study(submission, settings)
        try:
            advances = partial(store.queue.set_tries, options.name, 0)
            run(study, log_listener(advances), extend=bool(submission.given.get("extend")))
        except TimeSpent:
            with suppress(StoreError):
                store.queue.close(options.name)  # or it would go on at once
            raise
        except (Interrupted, KeyboardInterrupt):
            with suppress(StoreError):
                store.queue.put_back(options.name)  # not one that was cancelled
            raise


if __name__ == "__main__":
    main()
