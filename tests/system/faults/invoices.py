"""Invoices with documents under faults: a load that creates them, and a comparison of what there is with it."""

import hashlib
import random
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from support.client import PREFIX
from support.server import wait_until
from system.faults.access import query
from system.faults.accounts import list_all
from system.faults.load import Load, Writer

LINES = 3
LINE = {"service_item_number": "01_011_0107_1_1", "quantity": 2, "unit_price": 50, "total_price": 100}
MAX_CONTENT_BYTES = 300_000


class InvoiceWriter(Writer):
    """Creates invoices with lines, uploads documents and replaces them."""

    def __init__(self, load: Load, name: str, chance: random.Random) -> None:
        super().__init__(load, name, chance)
        self.names: dict[str, str] = {}  # the external_id of each invoice by its id
        self.hashes: dict[str, str] = {}  # the SHA-256 of each document by the id of its invoice

    def work(self) -> None:
        while not self.load.stopping.is_set():
            if not self.names or self.random.random() < 0.5:
                self._create_invoice()
            else:
                self._upload()
            time.sleep(self.random.uniform(0, self.load.max_pause))

    def _create_invoice(self) -> None:
        name = self.new_name()
        self.names[self.write("POST", "/invoices", {"external_id": name, "line_items": [LINE] * LINES})["id"]] = name

    def _upload(self) -> None:
        invoice_id = self.random.choice([*self.names])
        content = b"%PDF-1.7" + self.random.randbytes(self.random.randrange(MAX_CONTENT_BYTES))
        self.write("PUT", f"/invoices/{invoice_id}/document", content=content)
        self.hashes[invoice_id] = hashlib.sha256(content).hexdigest()


@dataclass
class InvoiceReconciliation:
    """Differences, all of which must be 0."""

    acknowledged: int
    lost: int  # invoices that were acknowledged, and aren't there or have other lines
    doubled: int
    documents: int
    wrong_documents: int  # other documents than were acknowledged, or without their bytes
    orphans: int  # objects without a document, after the periodic task


def compare_invoices(load: Load, dsn: str, folder: Path) -> InvoiceReconciliation:
    """End the load, and compare everything. `folder` has the objects of documents."""
    load.finish(lambda: query(dsn, "select count(*) from event_queue") == [(0,)])
    writers = [each for each in load.writers if isinstance(each, InvoiceWriter)]
    names = {ident: name for each in writers for ident, name in each.names.items()}
    hashes = {ident: content for each in writers for ident, content in each.hashes.items()}
    with closing(httpx.Client(base_url=load.address() + PREFIX, headers=load.access.headers)) as http:
        stored = [*list_all(http, "/invoices", include="line_items")]
        found = {each["id"]: _read_hash(http, each["id"]) for each in stored if each["document"]}
    complete = {each["id"]: each["external_id"] for each in stored if len(each["line_items"]) == LINES}
    # The periodic task deletes the objects of uploads that were cut off an hour after their beginning.
    query(dsn, "update object_cleanup set due_at = now() returning 1")
    wait_until(lambda: query(dsn, "select count(*) from object_cleanup") == [(0,)])
    keys = {key for (key,) in query(dsn, "select object_key from documents")}
    objects = {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}
    return InvoiceReconciliation(
        acknowledged=load.acknowledged,
        lost=len(names.items() - complete.items()),
        doubled=len(stored) - len(names),
        documents=len(hashes),
        wrong_documents=len(hashes.items() ^ found.items()) + len(keys - objects),
        orphans=len(objects - keys),
    )


def _read_hash(http: httpx.Client, invoice_id: str) -> str | None:
    response: Any = http.get(f"/invoices/{invoice_id}/document")
    return hashlib.sha256(response.content).hexdigest() if response.status_code == 200 else None
