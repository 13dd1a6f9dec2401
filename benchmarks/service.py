"""How a service answers many clients while it trains, and what that takes from the training.

    uv run python benchmarks/service.py [--clients 200] [--streams 100] [--queued 500] [--seconds 60] [--storage URL]

Clients ask for the list of studies every 5 s, and streams are open, while two studies are trained and many wait;
somebody looks at the page of one that waits, and submits another one, every second. Writes results/service.json:
milliseconds until an answer was there (median, 99 %, longest), errors, the service's own seconds of processor time
beside those of the studies, and events that the streams have heard.
"""

import argparse
import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import httpx
import numpy as np
import psutil
from machine import save

EVERY = 5.0  # seconds between two requests of a client
STUDY = {"kind": "run", "dataset": "permuted_digits", "runner": "local", "workers": 1, "device": "cpu", "seeds": 5}
POLLED = "/api/v1/studies"


def started(out: Path, storage: str | None) -> tuple[subprocess.Popen[bytes], str]:
    """The service, with what it prints in the file `err` of its folder; and its URL."""
    out.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"EPSEARCH_CACHE": str(out / "cache"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "epsearch", "serve", "--port", "0", "--parallel", "2", "--out", str(out)]
    command += ["--storage", storage] if storage else []
    with (out / "err").open("wb") as err:
        process = subprocess.Popen(command, stderr=err, env=environment)
    while not (address := re.search(r"http://\S+(?=/)", (out / "err").read_text(encoding="utf-8"))):
        if process.poll() is not None:
            raise RuntimeError((out / "err").read_text(encoding="utf-8"))
        time.sleep(0.05)
    return process, address[0]


def study(name: str, number: int) -> dict[str, Any]:
    """One that shares nothing with others and takes longer than the measurement."""
    return STUDY | {"name": name, "lr": 0.05 + 0.0001 * number, "repeats": 50}


def submit(url: str, queued: int) -> None:
    """Two studies that are trained, and others that wait for them."""
    for number in range(2 + queued):
        body = json.dumps(study(f"study-{number}", number)).encode()
        urlopen(Request(f"{url}{POLLED}", body, {"Content-Type": "application/json"})).close()
    while True:
        with urlopen(f"{url}{POLLED}?state=running") as answer:
            if json.load(answer)["total"] == 2:
                return
        time.sleep(0.2)


def spent(process: psutil.Process) -> float:
    """Its seconds of processor time."""
    times = process.cpu_times()
    return times.user + times.system


def of_studies(service: psutil.Process) -> float:
    """Seconds of processor time of its studies, also of those that have ended."""
    times, running = service.cpu_times(), 0.0
    for child in service.children():
        with suppress(psutil.NoSuchProcess):
            running += spent(child)
    return float(times.children_user + times.children_system + running)


async def polls(
    client: httpx.AsyncClient, number: int, clients: int, end: float, times: dict[str, list[float]]
) -> None:
    """One client, which begins at its own moment of EVERY."""
    await asyncio.sleep(EVERY * number / clients)
    while time.monotonic() < end:
        begun = time.monotonic()
        try:
            answer = await client.get(POLLED)
            times["answers" if answer.status_code == 200 else "errors"].append(time.monotonic() - begun)
        except httpx.HTTPError:
            times["errors"].append(time.monotonic() - begun)
        await asyncio.sleep(max(0.0, EVERY - (time.monotonic() - begun)))


async def listens(client: httpx.AsyncClient, end: float, heard: list[int]) -> None:
    """One stream, until the end."""
    async with client.stream("GET", "/api/v1/events?after=0") as answer:
        async for line in answer.aiter_lines():
            heard[0] += line.startswith("id:")
            if time.monotonic() > end:
                return


async def uses(client: httpx.AsyncClient, end: float, times: dict[str, list[float]]) -> None:
    """Somebody who submits a study, and looks at its page while it waits."""
    for number in itertools.count():
        for what, request in (
            ("submission", client.build_request("POST", POLLED, json=study(f"more-{number}", 1000 + number))),
            ("page", client.build_request("GET", f"/studies/more-{number}", headers={"Accept": "text/html"})),
        ):
            begun = time.monotonic()
            answer = await client.send(request)
            times[what if answer.status_code in (200, 201) else "errors"].append(time.monotonic() - begun)
        await asyncio.sleep(1.0)
        if time.monotonic() > end:
            return


async def load(url: str, clients: int, streams: int, seconds: float) -> tuple[dict[str, list[float]], int]:
    """(seconds of every answer and error, events that were heard)."""
    end, heard = time.monotonic() + seconds, [0]
    times: dict[str, list[float]] = {name: [] for name in ("answers", "errors", "page", "submission")}
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as client:
        listening = [asyncio.create_task(listens(client, end, heard)) for _ in range(streams)]
        asking = [polls(client, number, clients, end, times) for number in range(clients)]
        await asyncio.gather(uses(client, end, times), *asking)
        for one in listening:
            one.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
    return times, heard[0]


def measured(
    clients: int, streams: int, queued: int, seconds: float, out: Path, storage: str | None = None
) -> dict[str, float]:
    """The figures of one run of the service in a folder."""
    process, url = started(out, storage)
    try:
        submit(url, queued)
        service = psutil.Process(process.pid)
        before = spent(service), of_studies(service)
        begun = time.monotonic()
        times, heard = asyncio.run(load(url, clients, streams, seconds))
        took = time.monotonic() - begun
        own, theirs = spent(service) - before[0], of_studies(service) - before[1]
    finally:
        process.terminate()
        process.wait()
    answers = 1000 * np.array(times["answers"])
    p50, p99 = (float(value) for value in np.percentile(answers, [50, 99]))
    return {
        **{"clients": clients, "streams": streams, "queued": queued, "seconds": took, "answers": len(answers)},
        **{f"{what}_p50_ms": 1000 * float(np.median(times[what])) for what in ("page", "submission")},
        **{"errors": len(times["errors"]), "p50_ms": p50, "p99_ms": p99, "longest_ms": float(answers.max())},
        **{"service_cpu_s": own, "studies_cpu_s": theirs, "share": own / theirs, "events": heard},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--queued", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--storage", help="URL of a PostgreSQL database, measured behind SQLite")
    parser.add_argument("--result", type=Path, help="file, in place of results/service.json")
    arguments = parser.parse_args()
    rows, databases = [], {"SQLite": None, **({"PostgreSQL": arguments.storage} if arguments.storage else {})}
    for (database, storage), queued in itertools.product(databases.items(), sorted({0, arguments.queued})):
        with tempfile.TemporaryDirectory() as folder:
            row = measured(
                arguments.clients, arguments.streams, queued, arguments.seconds, Path(folder, "runs"), storage
            )
        rows.append({"database": database, **row})
    save("service", {"rows": rows}, arguments.result)
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
