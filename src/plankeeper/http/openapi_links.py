"""Links in the OpenAPI document: which operations take the id that a response contains."""

from collections.abc import Sequence
from typing import Any, get_args, get_origin

from plankeeper.core.lists import Page
from plankeeper.http.routing import Operation


def operation_id(operation: Operation) -> str:
    return f"{operation.tag}_{operation.handler.__name__.rstrip('_')}"


def build_links(source: Operation, operations: Sequence[Operation]) -> dict[str, Any]:
    """The links of an operation's success: from a list to the reads of an item, from a create to all operations."""
    is_list = any(get_origin(each) is Page for each in (source.response_type, *get_args(source.response_type)))
    if not is_list and not source.creates:
        return {}
    # The id of an item is the parameter that other operations of the resource have.
    own_ids = {name for each in operations if each.tag == source.tag for name in each.path_ids} - set(source.path_ids)
    if len(own_ids) > 1:  # a single id doesn't identify the item
        return {}
    expression = "$response.body#/data/0/id" if is_list else "$response.body#/id"
    return {
        operation_id(target): _link(target, source, name, expression)
        for name in own_ids
        for target in operations
        if name in target.path_ids
        and set(target.path_ids) <= {name, *source.path_ids}
        and (source.creates or target.method == "GET")
    }


def _link(target: Operation, source: Operation, id_name: str, expression: str) -> dict[str, Any]:
    shared = {name: f"$request.path.{name}" for name in target.path_ids if name in source.path_ids}
    item = "first item" if expression.startswith("$response.body#/data") else "new resource"
    return {
        "operationId": operation_id(target),
        "parameters": {**shared, id_name: expression},
        "description": f"The `id` of the {item} is the `{id_name}`.",
    }
