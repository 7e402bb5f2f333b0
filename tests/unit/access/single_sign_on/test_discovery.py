"""Discovery documents without a provider: their URLs, failures, and JSON that is nested too deeply."""

import asyncio
from typing import Any, cast

import httpcore
import pytest

from plankeeper.access.single_sign_on import client
from plankeeper.access.single_sign_on.client import ProviderDirectory, ProviderError, ProviderHttpClient
from plankeeper.access.single_sign_on.schemas import KeySetDocument, ProviderMetadata

ISSUER = "https://login.example.com"
METADATA = ProviderMetadata(ISSUER, f"{ISSUER}/authorize", f"{ISSUER}/token", f"{ISSUER}/jwks", f"{ISSUER}/userinfo")


class FakeHttp:
    """Returns a document, or fails without one, and counts the requests."""

    def __init__(self, document: ProviderMetadata | None) -> None:
        self.document, self.count = document, 0

    async def get(self, *_: Any) -> ProviderMetadata:
        self.count += 1
        if self.document is None:
            raise ProviderError("failed")
        return self.document


def directory(http: FakeHttp) -> ProviderDirectory:
    return ProviderDirectory(cast("ProviderHttpClient", http))


@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"])
def test_an_issuer_with_https_cannot_name_addresses_of_the_server_itself(name: str) -> None:
    assert asyncio.run(directory(FakeHttp(METADATA)).get_metadata(ISSUER)) == METADATA
    fields = {each: getattr(METADATA, each) for each in METADATA.__struct_fields__}
    changed = ProviderMetadata(**fields | {name: "http://127.0.0.1:2375/containers/x/stop"})
    with pytest.raises(ProviderError):
        asyncio.run(directory(FakeHttp(changed)).get_metadata(ISSUER))


def test_a_failure_is_repeated_for_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, http = [1000.0], FakeHttp(None)
    monkeypatch.setattr(client.time, "monotonic", lambda: clock[0])
    tried = directory(http)

    async def count_at(seconds: float) -> int:
        clock[0] = 1000.0 + seconds
        with pytest.raises(ProviderError):
            await tried.get_metadata(ISSUER)
        return http.count

    async def counts() -> list[int]:
        return [await count_at(seconds) for seconds in (0, 4.9, 5.1, 10, 10.2)]

    assert asyncio.run(counts()) == [1, 1, 2, 2, 3]


class FakePool:
    """Responds to everything with one body."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    async def handle_async_request(self, _request: httpcore.Request) -> httpcore.Response:
        return httpcore.Response(200, content=self.body)


@pytest.mark.parametrize("body", [b'{"keys": [{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]}", b"[" * 200_000])
def test_json_that_is_nested_too_deeply_is_invalid(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    http = ProviderHttpClient()
    monkeypatch.setattr(http, "_pool", FakePool(body))
    with pytest.raises(ProviderError, match="a response of the provider is invalid"):
        asyncio.run(http.get(KeySetDocument, f"{ISSUER}/jwks"))
