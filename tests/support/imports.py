"""Files for the console's import, and what its pages say."""

import re
from html import unescape

import httpx

from support.console import Browser

# As an office's spreadsheet saves it: own names of columns, dates with the day first, names instead of ids.
OFFICE_FILE = """\
First Name,Surname,DOB,NDIS Number,Mobile,Suburb,State,Post code,Plan start,Plan end,Status,Account manager
Róisín,Kavanagh,22/6/1975,430 205 409,0491 570 006,Bondi,New South Wales,2026,1/7/2026,30/6/2027,active,Ama Owusu
Bee,Thompson,1 Feb 1990,430205410,0491 570 156,Fitzroy,vic,3065,01/08/2026,31/07/2027,ACTIVE,
Ada,Lindqvist,31/02/1980,430205411,,Perth,WA,6000,1/7/2026,30/6/2027,Active,
Ben,Okafor,5/5/1985,430205409,,Perth,WA,6000,1/7/2026,30/6/2027,Active,
Cy,Nguyễn,5/5/1985,430205412,,Perth,WA,6000,1/7/2026,30/6/2026,Active,
Di,Evans,5/5/1985,430205413,,Perth,WA,6000,1/7/2026,30/6/2027,Active,Nobody Known
"""


def upload(browser: Browser, content: bytes, resource: str = "", name: str = "people.csv") -> httpx.Response:
    """The page after an upload: the check, or the columns."""
    response = browser.http.post(
        "/console/imports", data={"csrf": browser.csrf(), "resource": resource}, files={"file": (name, content)},
        headers={"Origin": browser.url},
    )  # fmt: skip
    return browser.get(response.headers["location"]) if response.status_code == 303 else response


def import_path(response: httpx.Response) -> str:
    """The path of the import that a page is about."""
    assert response.status_code == 200, response.text
    match = re.search(r"/console/imports/[0-9a-f-]{36}", response.text)
    assert match, response.text
    return match[0]


def confirm(browser: Browser, path: str, form: dict[str, str] | None = None) -> httpx.Response:
    """The page after an import was confirmed."""
    response = browser.submit(path, form)
    return browser.get(response.headers["location"]) if response.status_code == 303 else response


def counts(response: httpx.Response) -> dict[str, int]:
    """The numbers of rows by result."""
    pairs = re.findall(r"<strong>([\d,]+)</strong> ([A-Z][a-z ]+)</a>", response.text)
    return {"Rows" if label == "Row" else label: int(number.replace(",", "")) for number, label in pairs}


def rows(response: httpx.Response) -> list[str]:
    """The rows as they are read."""
    _, _, table = response.text.partition('<table class="import-rows">')
    body = re.sub(
        r"<summary>.*?</summary>", "", table.partition("<tbody>")[2].partition("</tbody>")[0], flags=re.DOTALL
    )
    items = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
    return [" ".join(unescape(re.sub(r"<[^>]+>", " ", each)).split()) for each in items]
