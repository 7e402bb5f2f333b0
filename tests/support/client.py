"""A client for one plan manager with one key; every response is checked against the committed OpenAPI document."""

import json
import re
import ssl
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import httpx
from email_validator import EmailNotValidError, validate_email
from jsonschema_rs import Draft202012Validator, ValidationError

PREFIX = "/api/public/v1"
ALL_SCOPES = ("read", "write", "claims", "payments")
# The tests speak plain HTTP. Without this every client would read the system's certificates, for 30 ms each.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
# With fewer idle connections than connections, the pool of httpcore closes one that another thread is about to use.
LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=100)
ERROR_FIELDS = {
    "success", "error", "detail", "errors", "errors_total", "resource", "request_id", "documentation_url"
}  # fmt: skip
DOCUMENT: dict[str, Any] = json.loads((Path(__file__).parents[2] / "openapi.json").read_text())
PATHS = [
    (template, re.compile(re.sub(r"\{\w+\}", "[^/]+", template)))
    for template in sorted(DOCUMENT["paths"], key=lambda each: "{" in each)
]


class Client:
    """Sends requests as a client would. `get("/participants")` is relative to the API's prefix."""

    def __init__(self, url: str, key: str, plan_manager_id: UUID | str) -> None:
        self.key = key
        self.plan_manager_id = str(plan_manager_id)
        self.http = httpx.Client(base_url=url, timeout=60, verify=NO_TLS, limits=LIMITS)

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}", "X-Plan-Manager-Id": self.plan_manager_id}

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        headers = self.headers() | more.pop("headers", {})
        return self.send(method, path, headers={k: v for k, v in headers.items() if v is not None}, **more)

    def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        """With no headers but those given."""
        response = self.http.request(method, PREFIX + path, **more)
        check_response(response)
        return response

    def get(self, path: str, **params: Any) -> httpx.Response:
        return self.request("GET", path, params=params or None)

    def post(self, path: str, body: Any = None, **more: Any) -> httpx.Response:
        return self.request("POST", path, json=body, **more)

    def put(self, path: str, body: Any, **more: Any) -> httpx.Response:
        return self.request("PUT", path, json=body, **more)

    def delete(self, path: str) -> httpx.Response:
        return self.request("DELETE", path)

    def create(self, path: str, body: Any) -> dict[str, Any]:
        """The resource in the response of a create."""
        response = self.post(path, body)
        assert response.status_code in (200, 201), response.text
        return response.json()


def check_response(response: httpx.Response) -> None:
    """A response has the status, the body and the headers of the document."""
    request = response.request
    assert response.headers["x-request-id"]
    if response.status_code >= 400:
        body = response.json() if request.method != "HEAD" else {}
        if body:
            assert set(body) <= ERROR_FIELDS, body
            assert body["success"] is False
            assert all(("allowed" in each) is (each["code"] == "not_allowed") for each in body.get("errors", ())), body
            assert urlsplit(body["documentation_url"])[2:] == ("/docs/api/errors", "", body["error"])
            assert body["request_id"] == response.headers["x-request-id"]
    operation = _operation(request.method, request.url.path)
    if operation is None or request.method in ("HEAD", "OPTIONS") or response.status_code == 405:
        return
    if response.status_code >= 400 and response.json()["error"] != "path_not_found":
        assert response.json()["error"] in operation["x-error-codes"], (request.method, request.url.path)
    assert str(response.status_code) in operation["responses"], (request.method, request.url.path, response.status_code)
    if response.status_code == 304:
        assert (response.content, "content-type" in response.headers) == (b"", False)
        return
    content = operation["responses"][str(response.status_code)].get("content", {})  # an error refers to a component
    if content and ("application/json" not in content or response.headers["content-type"] != "application/json"):
        assert response.headers["content-type"] in content
        return
    assert response.headers["content-type"] == "application/json"
    template = _template(request.url.path)
    assert template
    errors = list(_validator(request.method, template, response.status_code).iter_errors(response.json()))
    assert not errors, [f"{request.method} {template}", *map(describe_error, errors)]


def describe_error(error: ValidationError) -> str:
    """The field and what is wrong with it: of several possible schemas, in the one that fits best."""
    branches = getattr(error.kind, "context", None)
    if branches:
        return "; ".join(map(describe_error, min(branches, key=len)))
    return f"{'.'.join(map(str, error.instance_path)) or 'body'}: {error.message[:200]}"


@cache
def _template(path: str) -> str | None:
    return next((template for template, pattern in PATHS if pattern.fullmatch(path)), None)


def _operation(method: str, path: str) -> dict[str, Any] | None:
    template = _template(path)
    return DOCUMENT["paths"][template].get(method.lower()) if template else None


@cache
def _validator(method: str, template: str, status: int) -> Draft202012Validator:
    response = DOCUMENT["paths"][template][method.lower()]["responses"].get(str(status)) or {
        "$ref": "#/components/responses/NotFound"  # of a path with an encoded slash
    }
    if "$ref" in response:
        response = DOCUMENT["components"]["responses"][response["$ref"].rpartition("/")[2]]
    return _schema_validator(json.dumps(response["content"]["application/json"]["schema"]))


@cache
def _schema_validator(schema_json: str) -> Draft202012Validator:
    """The validator of a schema and of the schemas that it refers to: with all of the document, it takes 25 ms."""
    document: dict[str, Any] = json.loads(schema_json)
    schemas = referenced_schemas(schema_json)
    for each in schemas.values():
        # A response has no field that the document does not name.
        if "properties" in each:
            each["additionalProperties"] = False
    document["components"] = {"schemas": schemas}
    return Draft202012Validator(document, validate_formats=True, formats={"email": _is_email})


def referenced_schemas(schema_json: str) -> dict[str, Any]:
    """Copies of the schemas that a schema refers to, directly or not, by name."""
    schemas: dict[str, Any] = {}
    names = _references(schema_json)
    while names:
        text = json.dumps(DOCUMENT["components"]["schemas"][name := names.pop()])
        schemas[name] = json.loads(text)
        names |= _references(text) - schemas.keys()
    return schemas


def _references(schema_json: str) -> set[str]:
    """The names of the schemas that a schema refers to."""
    return set(re.findall(r'"#/components/schemas/([^"/]+)"', schema_json))


def _is_email(text: str) -> bool:
    """Whether a text is an address that Plankeeper accepts: with letters of every script."""
    try:
        validate_email(text, check_deliverability=False, test_environment=True)
    except EmailNotValidError:
        return False
    return True
