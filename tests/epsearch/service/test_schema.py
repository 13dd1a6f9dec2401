"""The service against its own OpenAPI schema: whatever fits it or does not, no answer is an error of the server's."""

from unittest.mock import patch

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from epsearch.service.work.scheduler import Scheduler
from tests.support.ledgers import NAME
from tests.support.limits import HANGS
from tests.support.service import STUDY, client_of, listening, with_a_finished_study

pytestmark = pytest.mark.service

ENDLESS = r"/events$"
EXAMPLES = 25  # of every route
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
MEASURES = r"/plan$"  # seconds of the machine for every study that could be trained


@pytest.fixture(scope="module")  # no longer: the queues of all services of this process stand still
def schema(tmp_path_factory):
    """Of a service that listens: its ledger has a finished, a queued and a cancelled study; nothing is trained."""
    own = with_a_finished_study(tmp_path_factory.mktemp("service") / "runs")
    with client_of(own) as client:
        for name in ("waiting", "cancelled"):
            assert client.post("/api/v1/studies", json=STUDY | {"name": name}).status_code == 201
        client.post("/api/v1/studies/cancelled/cancel")
    with patch.object(Scheduler, "step", lambda queue: None), listening(own, works=True) as (address, _):
        found = schemathesis.openapi.from_url(f"{address}/api/v1/openapi.json")
        yield found.exclude(path_regex=ENDLESS).exclude(path_regex=MEASURES)


def test_every_route_keeps_to_what_it_says(schema):
    tried = []
    for result in schema.get_all_operations():
        operation = result.ok()

        @settings(max_examples=EXAMPLES, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy(), known=st.booleans())
        def answers_as_described(case, known):
            if known and case.path_parameters and case.method == "GET":
                case.path_parameters["name"] = NAME  # most made-up names are of no study
            case.call_and_validate(checks=CHECKS, timeout=HANGS)

        answers_as_described()
        tried.append(operation.label)
    assert len(tried) >= 20, tried
