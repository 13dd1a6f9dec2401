"""How long Ray may take to start and to end: its own limits, of 1 to 30 seconds, are too short for a busy machine."""

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


def _given(text: str) -> int:
    """Seconds from 1 to LONGEST, from the environment. Raises UsageError."""
    if not text.isdecimal() or not 1 <= int(text) <= LONGEST:
        raise UsageError(f"{VARIABLE} must be a whole number of seconds from 1 to {LONGEST}, got {text!r}")
    return int(text)


START_SECONDS = _given(os.environ.get(VARIABLE, "120"))  # for each of the steps of a start

# All of these are read by Ray when it is imported, or by the processes that it starts.
LIMITS = {
    "RAY_gcs_server_port_wait_time_s": str(START_SECONDS),
    "RAY_worker_register_timeout_seconds": str(START_SECONDS),
    "RAY_agent_register_timeout_ms": str(1000 * START_SECONDS),
    "RAY_health_check_timeout_ms": str(1000 * START_SECONDS),  # slow is not dead: a process that ended is seen at once
    "TUNE_FUNCTION_THREAD_TIMEOUT_S": str(START_SECONDS),  # a busy machine may take its time to end a trial
}
SETTINGS = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # nobody reads Tune's own CSV, JSON and TensorBoard files
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # workers take this interpreter, they do not set up `uv run` once more
    "RAY_RUNTIME_ENV_IGNORE_GITIGNORE": "1",  # what a module of the user's needs travels, whatever git is told
    # Ray gives 15, with which a worker beside one busy process has a thirtieth of a core; a study may want more than 0.
    "RAY_worker_niceness": "0",
    **LIMITS,
}
LOOPBACK = "127.0.0.1"
# Of a private Ray alone.
PRIVATE = {
    # Ray else takes the address of the machine for 127.0.0.1, so that others could reach its processes.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    # Else a driver is registered only when workers have started; while it is, a lost raylet ends it.
    "RAY_prestart_worker_first_driver": "0",
}
# Of processes that the raylet starts. Where they have to tell it the port it waits for 15 seconds, then aborts.
PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")
NEEDED = ("gcs_server", "raylet")


@contextmanager
def starting() -> Iterator[None]:
    """Within it, `ray.init` waits START_SECONDS for the node that it starts; two limits of Ray's cannot be set.

    With a Ray whose inner parts have other names these two are as Ray has them.
    """
    node_class = inner("_private.node").Node
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
    """Gives the processes of PORTS free ports, where no port is given, before the node's raylet starts.

    They then need not tell the raylet theirs, for which it waits 15 seconds. Raises AttributeError where Ray has other
    names for its inner parts.
    """
    raylet, parameters = inner("_raylet"), node._ray_params
    # None is closed before the last is found: the system would give the same port twice.
    with ExitStack() as all_at_once:
        for name in PORTS:
            if not getattr(parameters, name, None):
                free = all_at_once.enter_context(socket.socket())
                free.bind(("127.0.0.1", 0))
                setattr(parameters, name, free.getsockname()[1])
    # The only one that Ray does not hand on to its raylet, which looks for it in a file.
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
    """Returns once the node is known, or so many seconds have passed, or what it needs has ended.

    Ray then asks for the node itself, and has the words for what went wrong.

    now, sleep: the clock, in seconds; replaced in tests.
    """
    services, until = inner("_private.services"), now() + seconds
    while now() < until and not any(kind in NEEDED for kind, _ in node.dead_processes()):
        try:
            services.get_node(node.gcs_address, node._node_id)
            return
        except RuntimeError:  # not yet
            sleep(0.1)


def trouble(what: str, why: str) -> str:
    """What Ray failed at and why, with the way to do without it, in one line."""
    return f"Ray {what} ({why}); try --runner local"


def started() -> list[subprocess.Popen[bytes]]:
    """The processes of the Ray that this process has started; none where it has joined one, or none is running."""
    node = inner("_private.worker")._global_node
    return [one.process for group in node.all_processes.values() for one in group] if node else []


@contextmanager
def at_loopback() -> Iterator[None]:
    """Lets `ray.init` take 127.0.0.1 as it stands, in this process; PRIVATE does it where Ray is imported later."""
    constants = inner("_private.ray_constants")
    name = "ENABLE_RAY_CLUSTER"
    before = getattr(constants, name, None)
    setattr(constants, name, False)
    try:
        yield
    finally:
        setattr(constants, name, before)


def show_the_token() -> None:
    """Shows this user's token to a Ray of this user, as a Ray that is started in this process would ask for it."""
    setup = inner("_private.authentication.authentication_token_setup")
    logging.getLogger("ray").setLevel(logging.ERROR)  # it would say that a token is there
    with suppress(AttributeError):  # older ones ask for none
        setup.enable_token_auth_by_default()
    setup.ensure_token_if_auth_enabled(create_token_if_missing=True)


def inner(module: str) -> Any:
    """A module of Ray that it shows nobody."""
    return import_module(f"ray.{module}")
