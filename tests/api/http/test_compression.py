"""Compressed responses: for clients that accept gzip, with their own entity tag, and never with a secret."""

import gzip
import json
from typing import Any

import httpx
import pytest

from plankeeper.http.browsers import MIN_BYTES, accepts_gzip
from support.client import PREFIX, Client


def get(api: Client, path: str, accept_encoding: str, **headers: str) -> httpx.Response:
    return api.request("GET", path, headers={"Accept-Encoding": accept_encoding} | headers)


@pytest.fixture
def large(api: Client) -> str:
    """The path of a resource whose full view has more than MIN_BYTES."""
    return f"/participants/{api.create('/participants', {'reason_for_leaving': 'x' * 2 * MIN_BYTES})['id']}"


@pytest.mark.parametrize(
    "accept_encoding", ["gzip", "gzip, deflate, br", "br;q=1.0, GZIP;q=0.5", "*", "identity, *;q=0.1"]
)
def test_a_large_body_is_compressed_for_clients_that_accept_it(api: Client, large: str, accept_encoding: str) -> None:
    plain = get(api, large, "identity")
    with api.http.stream(
        "GET", PREFIX + large, headers=api.headers() | {"Accept-Encoding": accept_encoding}
    ) as compressed:
        raw = b"".join(compressed.iter_raw())
    assert compressed.headers["content-encoding"] == "gzip"
    assert int(compressed.headers["content-length"]) == len(raw) < len(plain.content) / 5
    assert gzip.decompress(raw) == plain.content
    assert plain.headers["vary"] == compressed.headers["vary"] == "accept-encoding"


@pytest.mark.parametrize("accept_encoding", ["", "identity", "br, zstd", "gzip;q=0", "gzip;q=0.000, *", "*;q=0"])
def test_it_is_not_compressed_for_others(api: Client, large: str, accept_encoding: str) -> None:
    response = get(api, large, accept_encoding)
    assert "content-encoding" not in response.headers
    assert response.headers["vary"] == "accept-encoding"


def test_a_small_body_stays_as_it_is(api: Client) -> None:
    path = f"/participants/{api.create('/participants', {})['id']}"
    response = get(api, path, "gzip")
    assert len(response.content) < MIN_BYTES
    assert not {"content-encoding", "vary"} & set(response.headers)
    assert "-gzip" not in response.headers["etag"]


def test_each_coding_has_its_own_tag_and_either_is_accepted(api: Client, large: str) -> None:
    plain, compressed = (get(api, large, each).headers["etag"] for each in ("identity", "gzip"))
    assert compressed == plain[:-1] + '-gzip"'
    for accept_encoding, own in (("identity", plain), ("gzip", compressed)):
        for sent in (plain, compressed):
            unchanged = get(api, large, accept_encoding, **{"If-None-Match": sent})
            assert (unchanged.status_code, unchanged.content, unchanged.headers["etag"]) == (304, b"", own)
            assert unchanged.headers["vary"] == "accept-encoding"
            assert "content-encoding" not in unchanged.headers
            assert get(api, large, accept_encoding, **{"If-Match": sent}).status_code == 200
    updated = api.request(
        "PUT", large, json={"last_name": "Ng"}, headers={"If-Match": compressed, "Accept-Encoding": "gzip"}
    )
    assert updated.status_code == 200
    assert updated.headers["content-encoding"] == "gzip"
    assert updated.headers["etag"] == get(api, large, "gzip").headers["etag"]
    assert api.put(large, {}, headers={"If-Match": compressed}).status_code == 412


def test_head_has_the_length_of_get(api: Client, large: str) -> None:
    head = api.request("HEAD", large, headers={"Accept-Encoding": "gzip"})
    assert head.headers["content-length"] == get(api, large, "gzip").headers["content-length"]


def test_a_page_that_is_compressed_beside_the_event_loop(api: Client) -> None:
    for _ in range(80):
        api.create("/participants", {"reason_for_leaving": "y" * 1000})
    pages = [get(api, "/participants?limit=1000", each) for each in ("identity", "gzip")]
    assert pages[0].content == pages[1].content
    assert len(pages[0].content) > 64 * 1024
    assert pages[1].headers["content-encoding"] == "gzip"


def test_an_error_is_compressed_too(api: Client) -> None:
    many = {f"unknown_{number}": 1 for number in range(50)}
    response = api.request("POST", "/participants", json=many, headers={"Accept-Encoding": "gzip"})
    assert (response.status_code, response.headers["content-encoding"]) == (400, "gzip")


def test_nothing_is_compressed_beside_a_secret(api: Client) -> None:
    body: dict[str, Any] = {"url": "https://example.com/hooks", "description": "z" * 2 * MIN_BYTES}
    headers = {"Accept-Encoding": "gzip"}
    created = api.request("POST", "/webhook-endpoints", json=body, headers=headers)
    rotated = api.request("POST", f"/webhook-endpoints/{created.json()['id']}/rotate-secret", headers=headers)
    for response in (created, rotated):
        assert "secret" in response.json()
        assert "content-encoding" not in response.headers


@pytest.mark.parametrize("path", ["/openapi.json", "/docs", "/docs/api", "/docs/swagger-ui-bundle.js"])
def test_documentation_is_compressed_and_can_be_kept(api: Client, path: str) -> None:
    plain, compressed = (api.http.get(path, headers={"Accept-Encoding": each}) for each in ("identity", "gzip"))
    assert plain.content == compressed.content
    if len(plain.content) >= MIN_BYTES:
        assert int(compressed.headers["content-length"]) < len(plain.content) / 2
        assert compressed.headers["etag"] == plain.headers["etag"][:-1] + '-gzip"'
    for response in (plain, compressed):
        assert response.headers["cache-control"] == "no-cache"
        assert response.headers["vary"] == "accept-encoding"
        again = api.http.get(path, headers={"If-None-Match": response.headers["etag"], "Accept-Encoding": "gzip"})
        assert (again.status_code, again.content) == (304, b"")


def test_the_document_is_the_same_in_each_coding(api: Client) -> None:
    assert json.loads(api.http.get("/openapi.json").content)["openapi"] == "3.1.0"


def test_accept_encoding_of_every_form() -> None:
    for text in (b"x-gzip", b"gzip;q=1", b"gzip ; q=0.001", b"deflate,gzip"):
        assert accepts_gzip(text)
    for text in (None, b"", b"gzipped", b"gzip;q=0.0", b"identity;q=1, *;q=0"):
        assert not accepts_gzip(text)
