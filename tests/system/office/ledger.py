"""What the office's money must be, computed from what happened and from nothing that the program says. In cents."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MOVEMENTS = ("received", "paid_out", "returned", "refunded", "repaid", "fees")


def cents(amount: Any) -> int:
    """Of dollars in JSON, which have no more than two decimals."""
    assert amount is not None
    found = round(amount * 100)
    assert found / 100 == amount
    return found


@dataclass
class LineMoney:
    """The money of a line. `results` is what the agency says that it pays, `received` what has arrived."""

    results: int = 0
    reversed: int = 0
    received: int = 0
    paid_out: int = 0
    returned: int = 0
    refunded: int = 0
    repaid: int = 0
    fees: int = 0

    @property
    def paid(self) -> int:
        """The line's `paid_amount`."""
        return self.results - self.reversed

    @property
    def held(self) -> int:
        return self.received - self.paid_out + self.returned + self.refunded - self.repaid - self.fees


@dataclass
class Ledger:
    """The lines by id. With `needs_receipts`, money is received with receipts, and otherwise with results."""

    needs_receipts: bool
    lines: dict[str, LineMoney] = field(default_factory=lambda: defaultdict(LineMoney))
    _unreceived: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def result(self, line_id: str, amount: int) -> None:
        self.lines[line_id].results += amount
        self._unreceived[line_id] += amount
        if not self.needs_receipts:
            self.receive()

    def receive(self) -> int:
        """All money of results arrives. Returns how much."""
        arrived = sum(self._unreceived.values())
        for line_id, amount in self._unreceived.items():
            self.lines[line_id].received += amount
        self._unreceived.clear()
        return arrived

    def pay(self, amounts: Mapping[str, int]) -> None:
        for line_id, amount in amounts.items():
            self.lines[line_id].paid_out += amount

    def take(self, amounts: Mapping[str, int]) -> None:
        """The office takes its own fees."""
        for line_id, amount in amounts.items():
            self.lines[line_id].fees += amount

    def send_back(self, amounts: Mapping[str, int]) -> None:
        for line_id, amount in amounts.items():
            self.lines[line_id].returned += amount

    def figures(self) -> dict[str, int]:
        """The reconciliation of a time that contains everything."""
        sums = {name: sum(getattr(each, name) for each in self.lines.values()) for name in MOVEMENTS}
        return {"opening": 0, **sums, "closing": sum(self.held().values())}

    def held(self) -> dict[str, int]:
        return {line_id: each.held for line_id, each in self.lines.items() if each.held}

    @property
    def paid(self) -> int:
        return sum(each.paid for each in self.lines.values())
