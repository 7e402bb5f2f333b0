"""Support catalogues for tests: invented items, as CSV and as XLSX of both layouts."""

import csv
import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from plankeeper.database.client import Database
from plankeeper.imports.support_catalogue import COLUMNS, NATIONAL_COLUMN, STATE_COLUMNS, read_catalogue
from plankeeper.resources.support_items import service
from plankeeper.resources.support_items.schemas import SupportItem
from support.cluster import as_owner, run_apart

STATE_HEADERS = [each.header for each in COLUMNS if each.header != NATIONAL_COLUMN]
NATIONAL_HEADERS = [each.header for each in COLUMNS if each.header not in STATE_COLUMNS]
PRICES = dict.fromkeys((*STATE_COLUMNS, NATIONAL_COLUMN), "$193.99") | {"Remote": "$271.59", "Very Remote": "$290.99"}
THERAPY = PRICES | {
    "Support Item Number": "15_056_0128_1_3",
    "Support Item Name": "Invented therapy - Physical Sample",
    "Registration Group Number": "0128",
    "Registration Group Name": "Therapeutic Samples",
    "Support Category Number": "15",
    "Support Category Number (PACE)": "15",
    "Support Category Name": "Sample Daily Living",
    "Support Category Name (PACE)": "Sample Daily Living (PACE)",
    "Unit": "H",
    "Quote": "N",
    "Start date": "20260701",
    "End Date": "99991231",
    "Non-Face-to-Face Support Provision": "Y",
    "Provider Travel": "Y",
    "Short Notice Cancellations.": "Y",
    "NDIA Requested Reports": "Y",
    "Irregular SIL Supports": "N",
    "Type": "Price Limited Supports",
}


def to_csv(*rows: Mapping[str, Any], headers: Sequence[str] = STATE_HEADERS) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(headers)
    writer.writerows([each.get(name, "") for name in headers] for each in rows)
    return out.getvalue().encode()


def to_xlsx(
    *rows: Mapping[str, Any],
    headers: Sequence[str] = NATIONAL_HEADERS,
    sheets: Sequence[str] = ("Current Support Items",),
) -> bytes:
    """A workbook whose last sheet has the rows; the others are empty. Numbers are cells of numbers."""
    table = [headers, *([each.get(name, "") for name in headers] for each in rows)]
    data = "".join(f"<row>{''.join(map(_cell, cells))}</row>" for cells in table)
    names = [f"xl/worksheets/sheet{number}.xml" for number in range(1, len(sheets) + 1)]
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    listed = "".join(
        f'<sheet name="{escape(name)}" sheetId="{number}" r:id="r{number}"/>' for number, name in enumerate(sheets, 1)
    )
    linked = "".join(
        f'<Relationship Id="r{number}" Type="{office}/worksheet" Target="{name.removeprefix("xl/")}"/>'
        for number, name in enumerate(names, 1)
    )
    relationships = "http://schemas.openxmlformats.org/package/2006/relationships"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{relationships}"><Relationship Id="r1" Type="{office}/officeDocument"'
            ' Target="xl/workbook.xml"/></Relationships>',
        )
        archive.writestr("xl/workbook.xml", f'<workbook {main} xmlns:r="{office}"><sheets>{listed}</sheets></workbook>')
        archive.writestr(
            "xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{relationships}">{linked}</Relationships>'
        )
        for name in names:
            rows_of_sheet = data if name == names[-1] else ""
            archive.writestr(name, f"<worksheet {main}><sheetData>{rows_of_sheet}</sheetData></worksheet>")
    return out.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, int | float):
        return f"<c><v>{value!r}</v></c>"
    return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'


def read_items(*rows: Mapping[str, Any]) -> list[SupportItem]:
    found = read_catalogue(to_csv(*rows))
    assert not found.errors
    return found.items


def import_catalogue(dsn: str, *rows: Mapping[str, Any]) -> None:
    """Import rows into a database of one's own: the catalogue belongs to all plan managers of a database."""
    items = read_items(*rows)

    async def work() -> None:
        async with Database(as_owner(dsn), pool_size=1).open() as db, db.transaction() as tx:
            await service.import_items(tx, items, items[0].start_date)

    run_apart(work())
