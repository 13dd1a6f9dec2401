"""Joins a Ray cluster that is there, with this user's token; what does not work is one line."""

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
TOKENS = (
    "give the one that `ray get-auth-token` prints on the head, in RAY_AUTH_TOKEN or in a file that "
    "RAY_AUTH_TOKEN_PATH names; `ray get-auth-token --generate` makes one, which every node must have when it starts"
)
# Said by a process of its own: Ray prints to standard error as it fails, and would try again for minutes.
KNOCK = """
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

    runtime_env: of its workers. Raises UsageError where there is no such cluster, or it takes no token of ours, and
    Unavailable where the user's own module cannot be handed to it.
    """
    reach(address)
    pass_the_token_on(address)
    import ray
    from ray.exceptions import RuntimeEnvSetupError

    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, runtime_env=runtime_env)
    except RuntimeEnvSetupError as error:
        raise Unavailable(ray_start.trouble("does not take the module of --dataset", first_line(error))) from error
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UsageError(f"cannot join the Ray cluster at {address!r}: {first_line(error)}") from error


def leave() -> None:
    """Leaves the cluster that this process has joined."""
    import ray

    ray.shutdown()


def reach(address: str) -> None:
    """Raises UsageError where nobody listens at HOST:PORT; where the machine's own cluster is (`auto`), Ray knows.

    Ray waits for minutes for a head that is not there, so its port is tried first.
    """
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UsageError(f"cannot join the Ray cluster at {address!r}: {error}") from error


def pass_the_token_on(address: str) -> None:
    """Has Ray show the cluster the token that this user has, if any, whatever the cluster asks for.

    Ray itself does so only where RAY_AUTH_MODE says it. Raises UsageError where the cluster wants another token.
    """
    setup = ray_start.inner("_private.authentication.authentication_token_setup")
    logging.getLogger("ray").setLevel(logging.ERROR)  # it would say that a token is there
    from ray.exceptions import AuthenticationError

    with_one = setup.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
    try:
        setup.ensure_token_if_auth_enabled(create_token_if_missing=False)
    except AuthenticationError as error:
        raise UsageError(f"cannot join the Ray cluster at {address!r}: RAY_AUTH_MODE is token; {TOKENS}") from error
    knock = [sys.executable, "-c", KNOCK, address]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    refused = False
    with suppress(subprocess.TimeoutExpired):  # Ray itself then has the words for it
        answer = subprocess.run(knock, **quiet, timeout=ray_start.START_SECONDS)  # type: ignore[call-overload]
        refused = answer.returncode == REFUSED
    if refused:
        wrong = "it does not take the token of this user" if with_one else "it wants a token, and this user shows none"
        raise UsageError(f"cannot join the Ray cluster at {address!r}: {wrong}; {TOKENS}")
