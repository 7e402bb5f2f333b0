"""Readers of the files for the agency's portal and for the bank, which share nothing with their writers."""

import csv
import io
from typing import NamedTuple

# The columns of the bulk payment request, in the order of the agency's template.
CLAIM_COLUMNS = (
    "RegistrationNumber", "NDISNumber", "SupportsDeliveredFrom", "SupportsDeliveredTo", "SupportNumber",
    "ClaimReference", "Quantity", "Hours", "UnitPrice", "GSTCode", "AuthorisedBy", "ParticipantApproved",
    "InKindFundingProgram", "ClaimType", "CancellationReason", "ABN of Support Provider",
)  # fmt: skip
# The first and the last position of each field of a direct entry file, counted from 1, as banks document them.
ABA_FIELDS = {
    "0": {
        "type": (1, 1), "blank_1": (2, 18), "sequence": (19, 20), "bank": (21, 23), "blank_2": (24, 30),
        "user_name": (31, 56), "user_id": (57, 62), "description": (63, 74), "date": (75, 80), "blank_3": (81, 120),
    },
    "1": {
        "type": (1, 1), "bsb": (2, 8), "account": (9, 17), "indicator": (18, 18), "code": (19, 20),
        "amount": (21, 30), "title": (31, 62), "reference": (63, 80), "trace_bsb": (81, 87),
        "trace_account": (88, 96), "remitter": (97, 112), "tax": (113, 120),
    },
    "7": {
        "type": (1, 1), "bsb": (2, 8), "blank_1": (9, 20), "net": (21, 30), "credits": (31, 40), "debits": (41, 50),
        "blank_2": (51, 74), "count": (75, 80), "blank_3": (81, 120),
    },
}  # fmt: skip


def read_claims(content: bytes) -> list[dict[str, str]]:
    """The rows of a file of claims, by column. Each line ends with CRLF, and has each column in its place."""
    header, *rows = csv.reader(io.StringIO(content.decode("ascii"), newline=""))
    assert content.endswith(b"\r\n")
    assert content.count(b"\n") == content.count(b"\r\n") == 1 + len(rows)
    assert tuple(header) == CLAIM_COLUMNS
    return [dict(zip(CLAIM_COLUMNS, each, strict=True)) for each in rows]


def read_aba(content: bytes) -> list[dict[str, str]]:
    """The records of a direct entry file, with their fields as they stand there."""
    text = content.decode("ascii")
    assert text.endswith("\r\n")
    records = text[:-2].split("\r\n")
    assert {len(each) for each in records} == {120}
    return [{name: each[first - 1 : last] for name, (first, last) in ABA_FIELDS[each[0]].items()} for each in records]


class Credit(NamedTuple):
    """A payment of a direct entry file, in cents."""

    bsb: str
    account: str
    title: str
    reference: str
    cents: int


def read_credits(content: bytes) -> list[Credit]:
    """The payments of a file without a balancing record, whose sums are right."""
    first, *middle, last = read_aba(content)
    assert (first["type"], {each["type"] for each in middle}, last["type"]) == ("0", {"1"}, "7")
    assert {each["code"] for each in middle} == {"50"}
    found = [
        Credit(
            each["bsb"], each["account"].strip(), each["title"].strip(), each["reference"].strip(), int(each["amount"])
        )
        for each in middle
    ]
    total = sum(each.cents for each in found)
    assert [int(last[each]) for each in ("net", "credits", "debits", "count")] == [total, total, 0, len(found)]
    return found
