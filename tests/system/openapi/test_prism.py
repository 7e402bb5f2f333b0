"""Responses match openapi.json for Prism, a proxy that validates them with other libraries than our tests do."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from contract.operations import ALL_OPERATIONS
from plankeeper.http.routing import PREFIX
from support.client import Client
from support.factories import filled
from support.ports import free_port
from support.server import RunningServer, wait_until
from system.openapi.requests import Request, all_requests, is_file
from system.openapi.tools import DOCUMENT, ENVIRONMENT, command


@pytest.fixture
def proxy(server: RunningServer, tmp_path: Path) -> Iterator[str]:
    """The address of Prism before the server. It forwards any request whose body is JSON, and adds the violations of a
    response to its headers.
    """
    port = free_port()
    arguments = ["--validate-request=false", "--host", "127.0.0.1", "--port", str(port)]
    with (tmp_path / "log").open("w+") as log:
        process = subprocess.Popen(
            command("prism", "proxy", str(DOCUMENT), server.url, *arguments),
            env=ENVIRONMENT, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            wait_until(lambda: "Prism is listening" in (tmp_path / "log").read_text(), 60)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(20)


def test_prism_finds_no_violation_in_the_responses_of_any_operation(
    server: RunningServer, api: Client, new_key: Callable[..., str], proxy: str
) -> None:
    plan_manager_id = UUID(api.plan_manager_id)
    keys = [new_key(plan_manager_id, scopes=(scope,)) for scope in ("read", "write")]
    requests = list(all_requests(filled(server, api), *keys))
    assert len(requests) >= 250
    with httpx.Client(base_url=proxy + PREFIX, timeout=60) as client:
        wrong = [problem for request in requests if (problem := _problem(client, api, request))]
    assert not wrong, "\n".join(wrong)
    succeeded = {(each.method, each.path) for each in requests if each.status < 300}
    assert len(succeeded) == len([each for each in ALL_OPERATIONS.values() if not is_file(each)])


def _problem(client: httpx.Client, api: Client, request: Request) -> str:
    """How the response differs from the expected one, with the violations that Prism found in it."""
    headers = api.headers() | request.headers
    response = client.request(request.method, request.path, params=request.params, headers=headers, json=request.json)
    violations = json.loads(response.headers.get("sl-violations", "[]"))
    wrong = [each for each in violations if each["location"][0] == "response"]
    if response.status_code == request.status and not wrong:
        return ""
    return f"{str(request)[:500]}\n{wrong}\n{response}\n{response.text[:1000]}\n"
