"""Joins an existing Ray cluster, with this user's token; errors are one line."""

import logging
import socket
import subprocess
import sys
from contextlib import suppress
from typing import Any

from epsearch.failures.errors import Unavailable, UsageError
from epsearch.runners.on_ray import ray_start
from trainers.notes import first_line

REACH_SECONDS = 10.0
TOKEN_HELP = (
    "set RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH to a file, to the output of `ray get-auth-token` on the head; "
    "`ray get-auth-token --generate` makes a token, which every node must have when it starts"
)
# Run by a process of its own: Ray prints to standard error as it fails, and would try again for minutes.
PROBE = """
import sys
from ray._private.services import canonicalize_bootstrap_address_or_die
from ray._raylet import GcsClient
from ray.exceptions import AuthenticationError
try:
    GcsClient(address=canonicalize_bootstrap_address_or_die(sys.argv[1]))
except AuthenticationError:
    sys.exit(77)
"""
REFUSED = 77


def join(address: str, runtime_env: dict[str, Any]) -> None:
    """Joins the Ray cluster at an address: `auto` or HOST:PORT.

    runtime_env: of its workers. Raises UsageError if there is no such cluster, or it refuses our token; Unavailable if
    it refuses the user's module.
    """
    check_port(address)
    enable_token(address)
    import ray
    from ray.exceptions import RuntimeEnvSetupError

    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, runtime_env=runtime_env)
    except RuntimeEnvSetupError as error:
        raise Unavailable(ray_start.trouble("does not take the module of --dataset", first_line(error))) from error
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UsageError(f"cannot join the Ray cluster at {address!r}: {first_line(error)}") from error


def leave() -> None:
    """Leaves the cluster."""
    import ray

    ray.shutdown()


def check_port(address: str) -> None:
    """Raises UsageError if nothing listens at HOST:PORT; Ray itself finds the cluster of `auto`.

    Ray would wait for minutes for a missing head.
    """
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UsageError(f"cannot join the Ray cluster at {address!r}: {error}") from error


def enable_token(address: str) -> None:
    """Lets Ray send this user's token, if there is one, also without RAY_AUTH_MODE.

    Raises UsageError if the cluster needs another token.
    """
    setup = ray_start.private_module("_private.authentication.authentication_token_setup")
    logging.getLogger("ray").setLevel(logging.ERROR)  # without its message about the token
    from ray.exceptions import AuthenticationError

    has_token = setup.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
    try:
        setup.ensure_token_if_auth_enabled(create_token_if_missing=False)
    except AuthenticationError as error:
        raise UsageError(f"cannot join the Ray cluster at {address!r}: RAY_AUTH_MODE is token; {TOKEN_HELP}") from error
    probe = [sys.executable, "-c", PROBE, address]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    refused = False
    with suppress(subprocess.TimeoutExpired):  # Ray then reports the error
        answer = subprocess.run(probe, **quiet, timeout=ray_start.START_SECONDS)  # type: ignore[call-overload]
        refused = answer.returncode == REFUSED
    if refused:
        wrong = "it refuses the token of this user" if has_token else "it needs a token, and this user has none"
        raise UsageError(f"cannot join the Ray cluster at {address!r}: {wrong}; {TOKEN_HELP}")
