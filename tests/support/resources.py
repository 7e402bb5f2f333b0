"""Resources as the API returns them."""

from typing import Any

TIMES = ("created_at", "updated_at")


def without_updated_at(resource: dict[str, Any]) -> dict[str, Any]:
    """A resource without the time of its last change, which differs from write to write."""
    assert "updated_at" in resource
    return {name: value for name, value in resource.items() if name != "updated_at"}


def times_of(resource: dict[str, Any]) -> dict[str, Any]:
    """The times of a resource, which the server has set."""
    return {name: resource[name] for name in TIMES if name in resource}


def assert_changed(before: dict[str, Any], change: dict[str, Any], after: dict[str, Any]) -> None:
    """Only the fields of a change, and the time of the last change, differ."""
    assert after == before | change | {"updated_at": after["updated_at"]}
    assert after["updated_at"] > before["updated_at"]
