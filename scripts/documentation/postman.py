"""A Postman collection (2.1) of all operations, from an OpenAPI document. Bruno and Insomnia import it, too.

    python scripts/documentation/postman.py openapi.json > plankeeper.postman_collection.json

The address, the key and the plan manager are variables of the collection. A server with a public URL puts it there as
the address. Optional parameters are in the collection, switched off.
"""

import json
import sys
from pathlib import Path
from typing import Any

from openapi_document import operations, resolve

SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
VARIABLES = {
    "base_url": ("http://127.0.0.1:8000", "The address of the server."),
    "api_key": ("", "An API key, which begins with plk_."),
    "plan_manager_id": ("", "The id of the plan manager. `GET /me` lists those of the key."),
}
# The values of headers that requests send. All other header parameters are switched off.
HEADERS = {"Idempotency-Key": "{{$guid}}"}


def collection(document: dict[str, Any]) -> dict[str, Any]:
    folders: dict[str, list[dict[str, Any]]] = {}
    for path, method, operation in operations(document):
        tag = operation.get("tags", ["Other"])[0]
        folders.setdefault(tag, []).append(_request(document, path, method, operation))
    return {
        "info": {
            "name": document["info"]["title"],
            "description": document["info"].get("description", ""),
            "schema": SCHEMA,
        },
        "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "{{api_key}}", "type": "string"}]},
        "variable": [
            {"key": name, "value": value, "description": description}
            for name, (value, description) in VARIABLES.items()
        ],
        "item": [{"name": tag, "item": requests} for tag, requests in folders.items()],
    }


def _request(document: dict[str, Any], path: str, method: str, operation: dict[str, Any]) -> dict[str, Any]:
    parameters = operation["parameters"]
    headers = [
        _parameter(each, HEADERS.get(each["name"], "")) | {"disabled": each["name"] not in HEADERS}
        for each in parameters
        if each["in"] == "header" and each["name"] != "X-Plan-Manager-Id"
    ]
    if _requires_plan_manager(document, operation):
        headers.insert(0, {"key": "X-Plan-Manager-Id", "value": "{{plan_manager_id}}"})
    request: dict[str, Any] = {
        "method": method.upper(),
        "description": operation.get("description", operation.get("summary", "")),
        "header": headers,
        "url": {
            "raw": "{{base_url}}" + path.replace("{", ":").replace("}", ""),
            "host": ["{{base_url}}"],
            "path": [f":{each[1:-1]}" if each.startswith("{") else each for each in path.strip("/").split("/")],
            "query": [_parameter(each, "") | {"disabled": True} for each in parameters if each["in"] == "query"],
            "variable": [_parameter(each, "") for each in parameters if each["in"] == "path"],
        },
    }
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content:
        headers.append({"key": "Content-Type", "value": "application/json"})
        body = json.dumps(_example(document, content), indent=2, ensure_ascii=False)
        request["body"] = {"mode": "raw", "raw": body, "options": {"raw": {"language": "json"}}}
    return {"name": operation.get("summary", f"{method.upper()} {path}"), "request": request}


def _requires_plan_manager(document: dict[str, Any], operation: dict[str, Any]) -> bool:
    return any("plan_manager" in each for each in operation.get("security", document.get("security", [])))


def _parameter(parameter: dict[str, Any], value: str) -> dict[str, Any]:
    return {"key": parameter["name"], "value": value, "description": parameter.get("description", "")}


def _example(document: dict[str, Any], content: dict[str, Any]) -> Any:
    """The example of a body. Without one, an object with the required fields."""
    if "example" in content:
        return content["example"]
    if "examples" in content:
        return next(iter(content["examples"].values()))["value"]
    return _value(document, content["schema"])


def _value(document: dict[str, Any], schema: dict[str, Any]) -> Any:
    schema = resolve(document, schema)
    if "anyOf" in schema:
        return _value(document, schema["anyOf"][0])
    for name in ("example", "const", "default"):
        if name in schema:
            return schema[name]
    for name in ("examples", "enum"):
        if name in schema:
            return schema[name][0]
    if "properties" in schema:
        fields = schema["properties"].items()
        return {name: _value(document, each) for name, each in fields if name in schema.get("required", [])}
    types = schema.get("type", "object")
    return {"string": "", "integer": 0, "number": 0, "boolean": True, "array": []}.get(
        types if isinstance(types, str) else types[0], {}
    )


if __name__ == "__main__":
    json.dump(collection(json.loads(Path(sys.argv[1]).read_text())), sys.stdout, indent=1, ensure_ascii=False)
