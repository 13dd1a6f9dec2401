"""An S3 of the tests' own: moto's server on the loopback."""

import logging
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from moto.server import ThreadedMotoServer
from s3fs import S3FileSystem

BUCKET, SECRET = "bucket", "a-very-secret-key"


@contextmanager
def server() -> Iterator[dict[str, str]]:
    """What an environment needs for its bucket, which is empty; within it the bucket is there."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # which would print every request
    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    try:
        host, port = running.get_host_and_port()
        url = f"http://{host}:{port}"
        urllib.request.urlopen(
            f"{url}/moto-api/reset", data=b""
        ).close()  # of what an earlier server of this process had
        files(url).mkdir(BUCKET)
        yield {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "tests",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    finally:
        running.stop()
        S3FileSystem.clear_instance_cache()  # the next server is another one


def files(url: str) -> S3FileSystem:
    """What looks into the bucket from outside."""
    return S3FileSystem(key="tests", secret=SECRET, endpoint_url=url, use_listings_cache=False)
