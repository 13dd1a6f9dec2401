"""Generates a client of a service from its description, and drives a study with it: in an environment of its own.

    python generated_client.py URL SECRET FOLDER

Prints the rows of the study's table as JSON.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen


def main(url: str, secret: str, folder: Path) -> None:
    asked = Request(f"{url}/api/v1/openapi.json", headers={"Authorization": f"Bearer {secret}"})
    with urlopen(asked) as answer:
        (folder / "openapi.json").write_bytes(answer.read())
    command = [sys.executable, "-m", "openapi_python_client", "generate"]
    options = ["--path", "openapi.json", "--output-path", "made", "--fail-on-warning"]
    subprocess.run([*command, *options], cwd=folder, check=True, stdout=sys.stderr)
    sys.path.insert(0, str(folder / "made"))
    from epsearch_client import AuthenticatedClient
    from epsearch_client.api.results import get_runs
    from epsearch_client.api.studies import cancel_study, get_status, list_studies, submit_study
    from epsearch_client.models import Refusal, SearchOptions, SearchOptionsChoose, SearchOptionsRunner

    client = AuthenticatedClient(url, secret)
    options = SearchOptions(
        name="made", points=3, repeats=1, seeds=2, tasks=4, cv_tasks=2, examples_per_task=60, memory=3, memory_batch=8
    )
    options.choose, options.runner, options.workers = SearchOptionsChoose.TRIED, SearchOptionsRunner.LOCAL, 1
    begun = submit_study.sync_detailed(client=client, body=options)
    assert begun.status_code == 201 and begun.headers["Location"] == "/api/v1/studies/made", begun
    refusal = submit_study.sync(client=client, body=SearchOptions(name="other", points=1))
    assert isinstance(refusal, Refusal) and refusal.type_ == "urn:epsearch:problem:bad-input", refusal
    while get_status.sync("made", client=client).state not in ("finished", "failed", "interrupted"):
        time.sleep(0.2)
    assert get_status.sync("made", client=client).state == "finished"
    assert [one.name for one in list_studies.sync(client=client, sort="name").studies] == ["made"]
    assert cancel_study.sync("made", client=client).type_ == "urn:epsearch:problem:busy"
    print(json.dumps([row.additional_properties for row in get_runs.sync("made", client=client)]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
