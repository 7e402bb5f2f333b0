"""ID tokens without a server: keys, times, audiences. `tests/console/account/single_sign_on` sends invalid tokens."""

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey

from plankeeper.access.single_sign_on.id_token import (
    MAX_KEYS,
    ExpectedClaims,
    IdTokenError,
    UnknownKeyError,
    parse_keys,
    verify_id_token,
)
from support.openid_provider import KEY, encode_part, sign_token

NOW = 1_800_000_000
EXPECTED = ExpectedClaims("https://login.example.com", "client", "nonce of the test")
CLAIMS = {
    "iss": EXPECTED.issuer, "aud": EXPECTED.client_id, "nonce": EXPECTED.nonce, "sub": "a person", "iat": NOW,
    "exp": NOW + 300,
}  # fmt: skip


def public(key: Any, **changes: Any) -> dict[str, Any]:
    return {**key.as_dict(private=False), **changes}


def is_valid(**changes: Any) -> bool:
    claims = {name: value for name, value in (CLAIMS | changes).items() if value is not None}
    try:
        return verify_id_token(sign_token(claims), KeySet([KEY]), EXPECTED, NOW).sub == "a person"
    except IdTokenError:
        return False


@pytest.mark.parametrize(
    "changes, valid",
    [
        ({}, True),
        ({"exp": NOW - 59}, True),
        ({"exp": NOW - 60}, False),
        ({"iat": NOW + 60}, True),
        ({"iat": NOW + 61}, False),
        ({"iat": NOW - 660}, True),
        ({"iat": NOW - 661}, False),
        ({"exp": float("inf")}, False),
        ({"exp": True}, False),
        ({"aud": ["client"]}, True),
        ({"aud": ["client", "other"]}, False),
        ({"aud": ["client", "other"], "azp": "client"}, True),
        ({"aud": []}, False),
        ({"aud": "client "}, False),
        ({"azp": "client"}, True),
        ({"azp": ""}, False),
        ({"iss": "https://login.example.com/"}, False),
        ({"iss": ["https://login.example.com"]}, False),
        ({"nonce": ["nonce of the test"]}, False),
        ({"email": 7, "email_verified": "x", "name": []}, True),  # checked where they are used
    ],
)
def test_claims_are_checked(changes: dict[str, Any], valid: bool) -> None:
    assert is_valid(**changes) is valid


def sign_bytes(header: bytes, claims: bytes) -> str:
    """A token with JSON that no library would write."""
    signed = f"{encode_part(header)}.{encode_part(claims)}"
    return f"{signed}.{encode_part(KEY.private_key.sign(signed.encode(), PKCS1v15(), SHA256()))}"


@pytest.mark.parametrize("name", ["iss", "aud", "azp", "nonce", "sub"])
def test_a_claim_with_a_surrogate_is_invalid(name: str) -> None:
    header = b'{"alg": "RS256", "kid": "first"}'
    assert verify_id_token(sign_bytes(header, json.dumps(CLAIMS).encode()), KeySet([KEY]), EXPECTED, NOW)
    claims = json.dumps(CLAIMS | {name: "\ud800"}).encode()  # escaped, as JSON allows
    with pytest.raises(IdTokenError):
        verify_id_token(sign_bytes(header, claims), KeySet([KEY]), EXPECTED, NOW)


@pytest.mark.parametrize("header, depth", [(b'{"alg": "RS256", "kid": "first"}', 5000), (b"[" * 1500, 0)])
def test_json_that_is_nested_too_deeply_is_invalid(header: bytes, depth: int) -> None:
    claims = json.dumps(CLAIMS)[:-1].encode() + b', "x": ' + b"[" * depth + b"]" * depth + b"}"
    with pytest.raises(IdTokenError):
        verify_id_token(sign_bytes(header, claims), KeySet([KEY]), EXPECTED, NOW)


def test_only_public_keys_for_signatures_are_used() -> None:
    with pytest.warns(SecurityWarning):
        weak = RSAKey.import_key(_weak_key())
    elliptic = ECKey.generate_key("P-256", {"kid": "second"})
    entries = [
        public(KEY),
        public(elliptic),
        public(KEY, use="enc"),
        public(weak),
        KEY.as_dict(private=True),
        OctKey.generate_key(256).as_dict(private=True),
        {"kty": "unknown"},
        {"kty": "RSA", "n": "x"},
        {},
    ]
    assert [key.kid for key in parse_keys(entries)] == ["first", "second"]
    assert len(parse_keys([public(elliptic, kid=str(number)) for number in range(MAX_KEYS + 10)]).keys) == MAX_KEYS


def _weak_key() -> Any:
    key = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505 - it must be rejected
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def test_a_key_belongs_to_its_algorithm_and_key_id() -> None:
    keys = parse_keys([public(KEY, alg="RS512"), public(ECKey.generate_key("P-256", {"kid": "second"}))])
    for token in (sign_token(CLAIMS), sign_token(CLAIMS, kid="second"), sign_token(CLAIMS, kid="third")):
        with pytest.raises(IdTokenError):
            verify_id_token(token, keys, EXPECTED, NOW)
    with pytest.raises(UnknownKeyError):
        verify_id_token(sign_token(CLAIMS, kid="third"), keys, EXPECTED, NOW)


def test_without_keys_nothing_is_valid() -> None:
    with pytest.raises(IdTokenError):
        verify_id_token(sign_token(CLAIMS), parse_keys([]), EXPECTED, NOW)


def test_an_error_contains_nothing_of_the_token() -> None:
    with pytest.raises(IdTokenError) as caught:
        verify_id_token(sign_token(CLAIMS | {"iss": "https://secret.example"}), KeySet([KEY]), EXPECTED, NOW)
    assert str(caught.value) == "InvalidClaimError of `iss`"
