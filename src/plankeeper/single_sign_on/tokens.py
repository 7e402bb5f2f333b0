"""The secrets of a sign-in, which are derived from one random token in a cookie: state, nonce and code verifier.

The database stores only the token's hash, so that a copy of it is of no use.
"""

import base64
import hashlib
import hmac


def state_of(token: str) -> str:
    """The value of `state`, which comes back with the browser."""
    return _derive(token, b"state")


def nonce_of(token: str) -> str:
    """The value of `nonce`, which comes back in the ID token."""
    return _derive(token, b"nonce")


def code_verifier_of(token: str) -> str:
    """The secret of PKCE (RFC 7636), which only the token endpoint receives."""
    return _derive(token, b"code verifier")


def code_challenge_of(token: str) -> str:
    """The SHA-256 hash of the code verifier, which the browser takes to the provider."""
    return _encode(hashlib.sha256(code_verifier_of(token).encode()).digest())


def _derive(token: str, purpose: bytes) -> str:
    return _encode(hmac.digest(token.encode("utf-8", "replace"), purpose, "sha256"))


def _encode(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")
