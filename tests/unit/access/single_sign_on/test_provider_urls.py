"""The addresses that a provider may have, and the secrets of a sign-in."""

import base64
import hashlib

import pytest

from plankeeper.access.single_sign_on import service
from plankeeper.access.single_sign_on.client import is_allowed_endpoint, is_allowed_url


@pytest.mark.parametrize(
    "url, allowed",
    [
        ("https://login.example.com", True),
        ("https://login.example.com:8443/realms/a?x=1", True),
        ("https://10.0.0.7/token", True),  # the operator chooses the provider, which can be an internal one
        ("http://127.0.0.1:8080/token", True),
        ("http://[::1]:8080/token", True),
        ("http://localhost/token", False),
        ("http://login.example.com", False),
        ("ftp://login.example.com", False),
        ("//login.example.com", False),
        ("https://", False),
        ("https://user:password@login.example.com", False),
        ("https://login.example.com/#fragment", False),
        ("https://login.example.com/a b", False),
        ("https://login.example.com\n.evil.example", False),
        ("https://login.example.com:port", False),
        ("https://bücher.example", False),
        ("https://login.example.com/" + "x" * 2000, False),
    ],
)
def test_a_provider_has_https_or_a_loopback_address(url: str, allowed: bool) -> None:
    assert is_allowed_url(url) is allowed


@pytest.mark.parametrize(
    "url, issuer, allowed",
    [
        ("https://login.example.com/token", "https://login.example.com", True),
        ("https://other.example.com/token", "https://login.example.com", True),
        ("http://127.0.0.1:2375/containers/x/stop", "https://login.example.com", False),
        ("HTTP://127.0.0.1:2375/containers/x/stop", "https://login.example.com", False),
        ("http://[::1]:9200/x", "https://127.0.0.1:8080", False),
        ("http://127.0.0.1:8080/token", "http://127.0.0.1:8080", True),
        ("https://login.example.com/token", "http://127.0.0.1:8080", True),
        ("http://login.example.com/token", "http://127.0.0.1:8080", False),
    ],
)
def test_a_discovery_document_has_http_only_if_the_issuer_has(url: str, issuer: str, allowed: bool) -> None:
    assert is_allowed_endpoint(url, issuer) is allowed


def test_the_secrets_of_a_sign_in_differ_and_are_derived() -> None:
    values = {derive("token") for derive in (service.state_of, service.nonce_of, service.code_verifier_of)}
    assert len(values) == 3
    assert service.state_of("token") != service.state_of("other")
    verifier = service.code_verifier_of("token")
    expected = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    assert (service.code_challenge_of("token"), len(verifier)) == (expected, 43)
