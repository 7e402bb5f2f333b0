"""Result files of the agency's portal for claim batches."""

import csv
import io
from collections.abc import Iterable
from typing import Any

import httpx

from support.claims import Office

HEADER = ["NDISNumber", "ClaimReference", "Paid Total Amount", "Payment Request Number", "Payment Request Status",
          "Error Message"]  # fmt: skip


def results_csv(rows: Iterable[dict[str, Any]], header: list[str] = HEADER) -> bytes:
    """A file with rows of `paid_row` and `rejected_row`."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(header)
    writer.writerows([row.get(name, "") for name in HEADER] for row in rows)
    return buffer.getvalue().encode()


class SubmittedBatch:
    """A submitted batch of invoices, and the rows of its results."""

    def __init__(self, office: Office, *invoices: dict[str, Any]) -> None:
        self.office, self.client = office, office.client
        self.invoices = invoices
        batch = office.batch(*invoices)
        self.id, self.number = batch["id"], batch["number"]
        self.claims = self.read_claims()
        self.client.create(f"/claim-batches/{self.id}/submit", None)

    def read_claims(self) -> list[dict[str, Any]]:
        return self.client.get(f"/claim-batches/{self.id}/lines", limit=100).json()["data"]

    def row(self, index: int, status: str, amount: Any, **values: Any) -> dict[str, Any]:
        claim = self.claims[index]
        return {
            "NDISNumber": "430000001", "ClaimReference": claim["reference"], "Paid Total Amount": amount,
            "Payment Request Number": f"90000{index}", "Payment Request Status": status,
        } | values  # fmt: skip

    def paid(self, index: int, amount: Any = None) -> dict[str, Any]:
        return self.row(index, "SUCCESSFUL", self.claims[index]["amount"] if amount is None else amount)

    def rejected(self, index: int, reason: str = "C11: not in the plan") -> dict[str, Any]:
        return self.row(index, "ERROR", "", **{"Error Message": reason})

    def send(self, *rows: dict[str, Any], content: bytes | None = None, **params: Any) -> httpx.Response:
        body = results_csv(rows) if content is None else content
        path = f"/claim-batches/{self.id}/results"
        headers = {"Content-Type": "text/csv"}
        return self.client.request("POST", path, content=body, headers=headers, params=params or None)

    def apply(self, *rows: dict[str, Any], **params: Any) -> dict[str, Any]:
        response = self.send(*rows, **params)
        assert response.status_code == 200, response.text
        return response.json()

    def state(self) -> str:
        return self.client.get(f"/claim-batches/{self.id}").json()["state"]

    def line(self, index: int) -> dict[str, Any]:
        """The line of a claim as its invoice shows it."""
        claim = self.claims[index]
        lines = self.client.get(f"/invoices/{claim['invoice_id']}").json()["line_items"]
        return next(each for each in lines if each["id"] == claim["line_id"])
