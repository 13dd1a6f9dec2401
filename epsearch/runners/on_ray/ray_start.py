"""Settings of Ray, and time limits of its start: Ray's own, of 1 to 30 seconds, are too short for a busy machine."""

import logging
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from typing import Any

from epsearch.failures.errors import UsageError

VARIABLE, LONGEST = "EPSEARCH_RAY_SECONDS", 3600


def _parse(text: str) -> int:
    """Returns seconds from 1 to LONGEST, from the environment. Raises UsageError."""
    if not text.isdecimal() or not 1 <= int(text) <= LONGEST:
        raise UsageError(f"{VARIABLE} must be a whole number of seconds from 1 to {LONGEST}, got {text!r}")
    return int(text)


START_SECONDS = _parse(os.environ.get(VARIABLE, "120"))  # for each of the steps of a start

# Read by Ray when it is imported, or by the processes that it starts.
LIMITS = {
    "RAY_gcs_server_port_wait_time_s": str(START_SECONDS),
    "RAY_worker_register_timeout_seconds": str(START_SECONDS),
    "RAY_agent_register_timeout_ms": str(1000 * START_SECONDS),
    "RAY_health_check_timeout_ms": str(1000 * START_SECONDS),  # of slow processes; an ended one is noticed at once
    "TUNE_FUNCTION_THREAD_TIMEOUT_S": str(START_SECONDS),  # a busy machine may take its time to end a trial
}
SETTINGS = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # Tune's own CSV, JSON and TensorBoard files
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # workers use this interpreter instead of another `uv run`
    "RAY_RUNTIME_ENV_IGNORE_GITIGNORE": "1",  # sends all files of a user's module, also ignored ones
    # With Ray's default of 15, a worker beside one busy process has a thirtieth of a core; a study may set more than 0.
    "RAY_worker_niceness": "0",
    **LIMITS,
}
LOOPBACK = "127.0.0.1"
# Of a private Ray alone.
PRIVATE = {
    # Otherwise Ray replaces 127.0.0.1 by the address of the machine, and others could reach its processes.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    # Otherwise the registration of a driver waits for workers, and a raylet lost meanwhile ends the driver.
    "RAY_prestart_worker_first_driver": "0",
}
# Of processes that the raylet starts; it waits 15 seconds for a port that they choose, then aborts.
PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")
NEEDED = ("gcs_server", "raylet")


@contextmanager
def allow_slow_start() -> Iterator[None]:
    """Lets `ray.init` wait START_SECONDS for the node that it starts, as two of Ray's limits have no setting.

    With a Ray whose private parts have other names, these two are Ray's.
    """
    node_class = private_module("_private.node").Node
    original = node_class.start_ray_processes

    def start(node: Any) -> None:
        with suppress(AttributeError):
            choose_ports(node)
        original(node)
        with suppress(AttributeError):
            wait_for(node, START_SECONDS)

    node_class.start_ray_processes = start
    try:
        yield
    finally:
        node_class.start_ray_processes = original


def choose_ports(node: Any) -> None:
    """Chooses missing ports of PORTS before the node's raylet starts, which then need not wait for them.

    Raises AttributeError if Ray's private parts have other names.
    """
    raylet, parameters = private_module("_raylet"), node._ray_params
    # All stay open until the last is chosen: the system would return a port twice.
    with ExitStack() as all_at_once:
        for name in PORTS:
            if not getattr(parameters, name, None):
                free = all_at_once.enter_context(socket.socket())
                free.bind(("127.0.0.1", 0))
                setattr(parameters, name, free.getsockname()[1])
    # The only port that Ray does not pass to its raylet, which reads it from a file.
    raylet.persist_port(
        node.get_session_dir_path(),
        node._node_id,
        raylet.DASHBOARD_AGENT_LISTEN_PORT_NAME,
        parameters.dashboard_agent_listen_port,
    )


def wait_for(
    node: Any,
    seconds: float,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Waits until the node is registered, an essential process has ended, or `seconds` have passed.

    Ray then looks for the node itself, and reports errors. now, sleep: the clock, in seconds; replaced in tests.
    """
    services, until = private_module("_private.services"), now() + seconds
    while now() < until and not any(kind in NEEDED for kind, _ in node.dead_processes()):
        try:
            services.get_node(node.gcs_address, node._node_id)
            return
        except RuntimeError:  # not yet
            sleep(0.1)


def trouble(failure: str, reason: str) -> str:
    """Returns the message about a failure of Ray, with the way to train without it."""
    return f"Ray {failure} ({reason}); try --runner local"


def processes() -> list[subprocess.Popen[bytes]]:
    """Returns the processes of the Ray that this process has started; none of one that it has joined."""
    node = private_module("_private.worker")._global_node
    return [info.process for group in node.all_processes.values() for info in group] if node else []


@contextmanager
def at_loopback() -> Iterator[None]:
    """Lets `ray.init` keep 127.0.0.1 in this process, as PRIVATE does before Ray is imported."""
    constants = private_module("_private.ray_constants")
    name = "ENABLE_RAY_CLUSTER"
    before = getattr(constants, name, None)
    setattr(constants, name, False)
    try:
        yield
    finally:
        setattr(constants, name, before)


def enable_token() -> None:
    """Lets this process send this user's token to a Ray of the same user."""
    setup = private_module("_private.authentication.authentication_token_setup")
    logging.getLogger("ray").setLevel(logging.ERROR)  # without its message about the token
    with suppress(AttributeError):  # older versions have no tokens
        setup.enable_token_auth_by_default()
    setup.ensure_token_if_auth_enabled(create_token_if_missing=True)


def private_module(module: str) -> Any:
    """Imports a private module of Ray."""
    return import_module(f"ray.{module}")
