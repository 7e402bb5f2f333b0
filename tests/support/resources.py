"""Resources as the API returns them."""

from typing import Any


def without_updated_at(resource: dict[str, Any]) -> dict[str, Any]:
    """A resource of the view `full` without the time of its last change, which differs from write to write."""
    assert "updated_at" in resource
    return {name: value for name, value in resource.items() if name != "updated_at"}
