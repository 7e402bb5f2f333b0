"""An OpenID Connect provider on a real socket, whose tokens a test can change in every way."""

import base64
import hashlib
import json
import threading
import time
import warnings
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

from joserfc import jwt
from joserfc.errors import SecurityWarning
from joserfc.jwk import RSAKey
from uuid_utils.compat import uuid7

CLIENT_ID, CLIENT_SECRET = "plankeeper console", "secret: with/signs+and spaces"
KEY = RSAKey.generate_key(2048, {"kid": "first", "use": "sig", "alg": "RS256"})  # takes a moment

Claims = dict[str, Any]


def sign_token(claims: Claims, key: Any = KEY, alg: str = "RS256", **header: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)  # the name EdDSA is deprecated
        return jwt.encode({"alg": alg, "kid": key.kid, **header}, claims, key, algorithms=[alg])


def encode_part(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def join_token(header: Claims, claims: Claims, signature: bytes = b"") -> str:
    """A token that no library would make."""
    return ".".join([*(encode_part(json.dumps(part).encode()) for part in (header, claims)), encode_part(signature)])


class OpenIdProvider:
    """`with OpenIdProvider() as provider`: `authorize` stands for the person who signs in there."""

    def __init__(self) -> None:
        self.keys: list[Any] = [KEY]
        self.build_token: Callable[[Claims], str] = sign_token
        self.change_metadata: Callable[[Claims], Claims] = dict
        self.userinfo: Claims | None = None
        self.requests: list[str] = []
        self.person = ""  # the email of the person whom a browser meets
        self.failing = ""  # the path that fails
        self._codes: dict[str, tuple[Claims, Claims]] = {}
        handler = type("Handler", (_Handler,), {"provider": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(20)

    def authorize(self, url: str, email: str | None, **changes: Any) -> str:
        """The address that the browser comes back to. `changes` are claims; None removes one."""
        assert url.startswith(f"{self.issuer}/authorize?"), url
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        now = int(time.time())
        claims = {
            "iss": self.issuer, "aud": CLIENT_ID, "sub": f"person-{email}", "iat": now, "exp": now + 300,
            "nonce": query["nonce"], "email": email, "email_verified": True, "name": "Robin Hale",
        } | changes  # fmt: skip
        code = uuid7().hex
        self._codes[code] = query, {name: value for name, value in claims.items() if value is not None}
        response = {"code": code, "state": query["state"], "iss": self.issuer}
        return f"{query['redirect_uri']}?{urlencode(response)}"

    def metadata(self) -> Claims:
        return self.change_metadata({
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "authorization_response_iss_parameter_supported": True,
        })  # fmt: skip

    def redeem(self, form: dict[str, str], authorization: str) -> Claims | None:
        """The tokens for a code, to the right client, once."""
        query, claims = self._codes.pop(form.get("code", ""), ({}, {}))
        expected = f"{CLIENT_ID}:{CLIENT_SECRET}"
        given = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        client = ":".join(unquote_plus(part) for part in given.split(":"))
        if not authorization:
            client = f"{form.get('client_id')}:{form.get('client_secret')}"
        challenge = encode_part(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        is_valid = (
            client == expected
            and query.get("code_challenge") == challenge
            and query.get("code_challenge_method") == "S256"
            and query.get("redirect_uri") == form.get("redirect_uri")
        )
        if not is_valid:
            return None
        return {"id_token": self.build_token(claims), "access_token": "token of the test", "token_type": "Bearer"}


class _Handler(BaseHTTPRequestHandler):
    provider: OpenIdProvider

    def do_GET(self) -> None:
        if self.path.startswith("/authorize?"):
            self.send_response(303)
            url = self.provider.issuer + self.path
            self.send_header("location", self.provider.authorize(url, self.provider.person))
            self.send_header("content-length", "0")
            self.end_headers()
            return
        documents: dict[str, Callable[[], Any]] = {
            "/.well-known/openid-configuration": self.provider.metadata,
            "/jwks": lambda: {"keys": [key.as_dict(private=False) for key in self.provider.keys]},
            "/userinfo": self._userinfo,
        }
        self._respond(documents.get(self.path, lambda: None)())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        self._respond(self.provider.redeem(form, self.headers.get("authorization", "")))

    def _userinfo(self) -> Claims | None:
        is_authorized = self.headers.get("authorization") == "Bearer token of the test"
        return self.provider.userinfo if is_authorized else None

    def _respond(self, document: Any) -> None:
        self.provider.requests.append(self.path)
        failed = document is None or self.provider.failing == self.path
        content = json.dumps(document).encode()
        self.send_response(400 if failed else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Nothing: the tests' output is for failures."""
