"""Verifies ID tokens (OpenID Connect Core 1.0, section 3.1.3.7). Nothing here reads or writes.

IdTokenError
└── UnknownKeyError    the provider may have new keys
"""

import hmac
import warnings
from typing import Any, NamedTuple

import msgspec
from joserfc import errors, jws, jwt
from joserfc.jwk import ECKey, JWKRegistry, KeySet, OKPKey, RSAKey

from plankeeper.access.single_sign_on.schemas import Claims

# Signatures of public keys. With HS256, the client secret would be a key, and a public key could be abused as one.
ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA", "Ed25519")
MIN_RSA_BITS = 2048
MAX_KEYS = 50  # of a provider
MAX_TOKEN_LENGTH = 16 * 1024
MAX_HEADER_LENGTH = 2048
MAX_SUBJECT_LENGTH = 255
CLOCK_SKEW = 60  # seconds that the provider's clock may differ from ours
MAX_AGE = 600  # seconds since a token was issued: it is fetched right after the person signed in


class IdTokenError(Exception):
    """An ID token is invalid. The message is for the log and contains no part of the token."""


class UnknownKeyError(IdTokenError):
    """No known key of the provider has the key id of the token."""


class ExpectedClaims(NamedTuple):
    """The required claims of a token."""

    issuer: str
    client_id: str
    nonce: str


class _Registry(jws.JWSRegistry):
    max_header_length = MAX_HEADER_LENGTH


def parse_keys(entries: list[dict[str, Any]]) -> KeySet:
    """The keys of a JSON Web Key Set that can verify signatures. Others, such as secret keys, are left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.SecurityWarning)  # about weak keys, which are left out
        keys = [_parse_key(entry) for entry in entries[:MAX_KEYS]]
    return KeySet([key for key in keys if key])


def _parse_key(entry: dict[str, Any]) -> RSAKey | ECKey | OKPKey | None:
    if entry.get("use", "sig") != "sig" or "d" in entry:
        return None
    try:
        key = JWKRegistry.import_key(entry)
    except (errors.JoseError, ValueError, TypeError, KeyError):
        return None
    if isinstance(key, RSAKey):
        return key if key.public_key.key_size >= MIN_RSA_BITS else None
    return key if isinstance(key, ECKey | OKPKey) else None


def verify_id_token(token: str, keys: KeySet, expected: ExpectedClaims, now: int) -> Claims:
    """The claims of a token that was signed by the provider, for this client and for this sign-in.

    Raises IdTokenError.
    """
    if len(token) > MAX_TOKEN_LENGTH:
        raise IdTokenError("the token is too long")
    try:
        decoded = _decode(token, keys)
        _claims_registry(expected, now).validate(decoded.claims)
        claims = msgspec.convert(decoded.claims, Claims)
        _verify_audience(decoded.claims, expected.client_id)
        _verify_age(decoded.claims, now)
        _verify_nonce(decoded.claims, expected.nonce)
    except errors.InvalidKeyIdError:
        raise UnknownKeyError("no key of the provider has the key id of the token") from None
    except (errors.JoseError, msgspec.ValidationError, ValueError, TypeError, RecursionError) as error:
        raise IdTokenError(_describe(error)) from None
    if not 0 < len(claims.sub) <= MAX_SUBJECT_LENGTH or not claims.sub.isascii():
        raise IdTokenError("`sub` is not a valid subject")
    return claims


def _decode(token: str, keys: KeySet) -> jwt.Token:
    with warnings.catch_warnings():
        # joserfc warns that the name EdDSA is deprecated, but providers use it.
        warnings.simplefilter("ignore", errors.SecurityWarning)
        return jwt.decode(token, keys, registry=_Registry(algorithms=ALGORITHMS, strict_check_header=False))


def _claims_registry(expected: ExpectedClaims, now: int) -> jwt.JWTClaimsRegistry:
    return jwt.JWTClaimsRegistry(
        now=now,
        leeway=CLOCK_SKEW,
        iss={"essential": True, "value": expected.issuer},
        sub={"essential": True},
        aud={"essential": True, "value": expected.client_id},
        exp={"essential": True},
        iat={"essential": True},
        nonce={"essential": True},
    )


def _verify_audience(claims: dict[str, Any], client_id: str) -> None:
    """A token for several clients must have been issued to this one."""
    audience, authorized_party = claims["aud"], claims.get("azp")
    has_others = isinstance(audience, list) and audience != [client_id]
    if authorized_party != client_id and (has_others or authorized_party is not None):
        raise IdTokenError("the token was issued to another client")


def _verify_age(claims: dict[str, Any], now: int) -> None:
    if claims["iat"] < now - MAX_AGE - CLOCK_SKEW:
        raise IdTokenError("the token was issued too long ago")


def _verify_nonce(claims: dict[str, Any], expected: str) -> None:
    nonce = claims["nonce"]
    if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), expected.encode()):
        raise IdTokenError("`nonce` is not the nonce of this sign-in")


def _describe(error: Exception) -> str:
    """The error without values of the token."""
    claim = getattr(error, "claim", "")
    return f"{type(error).__name__}{f' of `{claim}`' if claim else ''}"
