"""Ray may take as long to start as it is given, by a clock of the test."""

from types import SimpleNamespace

import pytest
from ray._private import services
from ray._private.node import Node
from ray._raylet import DASHBOARD_AGENT_LISTEN_PORT_NAME, wait_for_persisted_port

from epsearch.runners.on_ray import ray_start


class Starting:
    """A node that registers after so many seconds, which pass while somebody sleeps; its raylet may end before."""

    gcs_address, _node_id = "127.0.0.1:1", "7"

    def __init__(self, monkeypatch, registers, ends=float("inf")):
        self.seconds, self.registers, self.ends, self.asked = 0.0, registers, ends, 0
        monkeypatch.setattr(services, "get_node", self.get)

    def get(self, address, number):
        assert (address, number) == ("127.0.0.1:1", "7")
        self.asked += 1
        if self.seconds < self.registers:
            raise RuntimeError("GCS cannot find the node")

    def dead_processes(self):
        return [("log_monitor", None)] + [("raylet", None)] * (self.seconds >= self.ends)

    def sleep(self, seconds):
        self.seconds += seconds

    def wait(self, limit):
        ray_start.wait_for(self, limit, lambda: self.seconds, self.sleep)
        return round(self.seconds)


def test_a_node_that_takes_minutes_is_waited_for(monkeypatch):
    assert Starting(monkeypatch, registers=200).wait(300) == 200


def test_one_that_never_comes_is_left_to_ray(monkeypatch):
    assert Starting(monkeypatch, registers=10_000).wait(300) == 300


def test_one_that_cannot_come_is_not_waited_for(monkeypatch):
    assert Starting(monkeypatch, registers=200, ends=20).wait(300) == 20


def test_the_ports_that_ray_would_wait_for_are_chosen_before(tmp_path):
    """Four different ones that are free; one that is given stays."""
    parameters = SimpleNamespace(metrics_agent_port=0, metrics_export_port=None, runtime_env_agent_port=4711)
    number = "7" * 56
    node = SimpleNamespace(_ray_params=parameters, _node_id=number, get_session_dir_path=lambda: str(tmp_path))
    ray_start.choose_ports(node)
    chosen = [getattr(parameters, name) for name in ray_start.PORTS]
    assert len(set(chosen)) == 4 and all(1024 <= port < 2**16 for port in chosen)
    assert parameters.runtime_env_agent_port == 4711
    told = wait_for_persisted_port(str(tmp_path), number, DASHBOARD_AGENT_LISTEN_PORT_NAME, timeout_ms=0)
    assert told == parameters.dashboard_agent_listen_port


def test_ray_is_changed_while_it_starts_alone(monkeypatch):
    done = []
    monkeypatch.setattr(Node, "start_ray_processes", lambda node: done.append("started"))
    monkeypatch.setattr(ray_start, "choose_ports", done.append)
    monkeypatch.setattr(ray_start, "wait_for", lambda node, seconds: done.append(seconds))
    before = Node.start_ray_processes
    with pytest.raises(ConnectionError), ray_start.allow_slow_start():
        Node.start_ray_processes("node")
        raise ConnectionError
    assert done == ["node", "started", ray_start.START_SECONDS]
    assert Node.start_ray_processes is before


def test_every_limit_of_ray_is_the_one_that_was_given():
    """The tests themselves run with a generous one."""
    assert ray_start.START_SECONDS >= 600
    limits = {name: int(value) / (1000 if name.endswith("_ms") else 1) for name, value in ray_start.LIMITS.items()}
    assert set(limits.values()) == {ray_start.START_SECONDS}
