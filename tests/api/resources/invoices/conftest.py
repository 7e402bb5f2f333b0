"""The participant and the provider of the invoices of several modules."""

import pytest

from support.client import Client


@pytest.fixture
def record_ids(api: Client) -> dict[str, str]:
    dates = {"plan_start_date": "2026-01-01", "plan_end_date": "2026-12-31"}
    return {
        "participant": api.create("/participants", {"first_name": "Ann", "status": "Active"} | dates)["id"],
        "provider": api.create("/providers", {"entity_name": "Care", "abn": "51824753556"})["id"],
    }
