"""A run of statements that is killed: each plan has its statement, its item and its mails once."""

import time
from dataclasses import dataclass, field
from typing import Any

import httpx

from support.client import PREFIX
from support.mail import MailServer
from system.faults.access import Credentials, query

MONTH = "2026-03"
PLAN = {
    "start_date": "2025-07-01", "end_date": "2026-06-30", "is_pace_plan": True,
    "components": [{"name": "Core", "kind": "flexible", "categories": [1], "amount": 1000}],
}  # fmt: skip


class StatementRunOffice:
    """A plan manager with participants that get their statement by mail, every third one also by post."""

    def __init__(self, address: str, access: Credentials, plans: int) -> None:
        self.access, self.emails = access, [f"person{number}@example.com" for number in range(plans)]
        with httpx.Client(base_url=address + PREFIX, headers=access.headers, timeout=60) as http:
            for number, email in enumerate(self.emails):
                body = {
                    "first_name": "Robin", "last_name": str(number), "email": email, "status": "Active",
                    "participant_receives_statements": True, "postal_statement": number % 3 == 0,
                    "address_line_1": "12 Wattle Street", "city": "Ballarat", "postcode": "3350",
                }  # fmt: skip
                created = http.post("/participants", json=body).raise_for_status().json()
                http.post(f"/participants/{created['id']}/plans", json=PLAN).raise_for_status()
            self.run_id = http.post("/statement-runs", json={"month": MONTH}).raise_for_status().json()["id"]

    def read(self, address: str) -> dict[str, Any]:
        """The run, once the server responds."""
        while True:
            try:
                path = f"{address}{PREFIX}/statement-runs/{self.run_id}"
                response = httpx.get(path, headers=self.access.headers, timeout=20)
                if response.is_success:
                    return response.json()
            except httpx.TransportError:
                pass
            time.sleep(0.1)


@dataclass
class RunComparison:
    """Differences, of which there must be none."""

    statements: int
    doubled: list[str]
    missing: list[str]
    without_mail: list[str] = field(default_factory=list[str])
    repeated_mails: int = 0


COUNTS = """
    select participant.email, (
            select count(*) from statements where plan_manager_id = $1 and participant_id = participant.id
        ) as statements, (
            select count(*) from statement_run_items where plan_manager_id = $1 and participant_id = participant.id
        ) as items, (
            select count(*) from statement_run_recipients recipient
            where recipient.plan_manager_id = $1 and recipient.recipient_id = participant.id
        ) as recipients, (
            select count(*) from statement_run_recipients recipient
            join outgoing_mails mail on mail.content ->> 'recipient_id' = recipient.id::text
            where recipient.plan_manager_id = $1 and recipient.recipient_id = participant.id
        ) as queued
    from participants participant
    where plan_manager_id = $1
"""


def compare_run(office: StatementRunOffice, dsn: str, mail: MailServer) -> RunComparison:
    """Compare what was made and sent with the participants. A mail that waits in the queue isn't missing."""
    rows = {each["email"]: each for each in query(dsn, COUNTS, office.access.plan_manager_id)}
    received = [each.recipients[0] for each in mail.received]
    found = RunComparison(sum(each["statements"] for each in rows.values()), [], [])
    for number, email in enumerate(office.emails):
        row, recipients = rows[email], 2 if number % 3 == 0 else 1
        counts = (row["statements"], row["items"], row["recipients"])
        if max(row["statements"], row["items"]) > 1 or row["recipients"] > recipients or row["queued"] > 1:
            found.doubled.append(email)
        elif counts != (1, 1, recipients):
            found.missing.append(email)
        if email not in received and not row["queued"]:
            found.without_mail.append(email)
    found.repeated_mails = len(received) - len(set(received))
    return found
