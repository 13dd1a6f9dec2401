"""Programs that answer over HTTP on this machine alone, each on a port that nobody has."""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

from tests.support.limits import HANGS


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def get(url, **body):
    """What a URL answers, as JSON; with a body it is posted."""
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=HANGS) as answer:
        return json.loads(answer.read())


@contextmanager
def server(command, port, folder, **environment):
    """The URL of a program that was started, once it answers; it ends with the block."""
    url, log = f"http://127.0.0.1:{port}", folder / "server.log"
    with log.open("wb") as out:
        program = subprocess.Popen(
            list(map(str, command)), cwd=folder, stdout=out, stderr=out, env=environment or None, start_new_session=True
        )
    try:
        end = time.monotonic() + HANGS
        while True:
            assert program.poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < end, "it never answers"
            try:
                urllib.request.urlopen(url, timeout=HANGS).close()
                break
            except urllib.error.HTTPError:
                break
            except OSError:
                time.sleep(0.1)
        yield url
    finally:
        program.terminate()
        try:
            program.wait(30)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
