"""The service answers as its own description says, whatever it is asked."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

pytestmark = pytest.mark.real
ENDLESS = {"/api/v1/events", "/ws/v1/events/stream"}
JUDGES = {"/ws/v1/validate-conf"}
"""Its answer to a bad body is 200 with what is wrong, as YuniKorn's."""
EXAMPLES = min(12, settings.default.max_examples // 20)
"""Of each operation: 5 by default, 12 with the profile `long`."""
# What a schema cannot say (a queue that exists, a text that is a queue file) may be refused: `positive_data_acceptance`
# is left out, all other checks are made.


@pytest.fixture
def schema(served: Any) -> Any:
    # Nothing of what is made up is to be executed.
    node = served.place.local.node
    assert served.call("POST", f"/api/v1/nodes/{node}/drain", {}).status == 200
    found = schemathesis.openapi.from_url(f"{served.listening.url}/api/v1/openapi.json")
    yield found
    config = served.place.runtime.read(lambda s: s.cluster.text).result(10)
    assert "root" in config
    assert served.call("POST", f"/api/v1/nodes/{node}/undrain", {}).status == 200


def operations(schema: Any) -> list[Any]:
    found = [result.ok() for result in schema.get_all_operations()]
    return [operation for operation in found if operation.path not in ENDLESS]


@pytest.mark.thorough
@pytest.mark.filterwarnings("default")
@pytest.mark.timeout(180)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["good", "bad"])
def test_every_answer_is_one_that_the_description_has(served: Any, schema: Any, mode: GenerationMode) -> None:
    """Status, type and shape; no request leads to a fault in the service."""
    token = served.tokens["carol"]
    checked = 0
    for operation in operations(schema):

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        def probe(case: Any) -> None:
            if isinstance(case.query, dict):
                case.query.pop("follow", None)
            response = case.call(headers={"Authorization": f"Bearer {token}"})
            assert response.status_code < 500, (case.method, case.formatted_path, response.text)
            nonlocal checked
            checked += 1
            excluded = [positive_data_acceptance]
            # A list of one and its only value are the same text in a query: what was made wrong may arrive as right.
            # Wrong queries have tests of their own.
            if case.path in JUDGES or case.query:
                excluded.append(negative_data_rejection)
            case.validate_response(response, excluded_checks=excluded)

        if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query or operation.path_parameters):
            continue
        probe()
    assert checked > 100
