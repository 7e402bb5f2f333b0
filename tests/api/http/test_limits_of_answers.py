"""The responses to large and to unusual requests are limited."""

from collections.abc import Callable
from typing import Any

from support.client import Client

NIL = "00000000-0000-0000-0000-000000000000"


def test_at_most_a_hundred_errors_are_reported(api: Client) -> None:
    rejected = api.post("/participants", {f"unknown_{number}": 1 for number in range(200)})
    assert rejected.status_code == 400
    assert (len(rejected.json()["errors"]), rejected.json()["errors_total"]) == (100, 200)
    assert rejected.json()["detail"].endswith("; and 197 more.")
    rejected = api.post("/participants", {f"unknown_{number}": 1 for number in range(5000)})
    message = "has 5,000 fields, of which more than 200 are unknown"
    assert rejected.json()["errors"] == [{"field": "body", "message": message, "code": "unknown", "in": "body"}]
    assert rejected.json()["errors_total"] == 1


def test_an_encoded_slash_does_not_separate_path_segments(api: Client) -> None:
    made = api.create("/participants", {"first_name": "Ada"})
    assert api.get(f"/participants/{made['id']}/team-members").status_code == 200
    for slash in ("%2F", "%2f"):
        assert api.get(f"/participants/{made['id']}{slash}team-members").status_code == 404


def test_the_nil_uuid_is_rejected_as_an_id(api: Client, import_rows: Callable[..., Any]) -> None:
    for resource, more in (("participants", {}), ("account-managers", {}), ("exit-reasons", {"name": "x"})):
        report = import_rows(api, resource, [{"id": NIL, **more}])
        assert [(bad.field, bad.message) for bad in report.errors] == [
            ("id", "must be a UUID with hyphens, and not the nil UUID")
        ]
    assert api.get(f"/account-managers/{NIL}").status_code == 404


def test_email_comparison_ignores_case_in_every_script(api: Client) -> None:
    api.create("/participants", {"email": "Ére@example.com"})
    assert api.get("/participants", email="éRE@EXAMPLE.com").json()["pagination"]["total"] == 1
