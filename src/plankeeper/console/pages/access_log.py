"""The access log: who viewed, listed or exported which participant or invoice, for owners."""

from plankeeper.console.lists.access_log import ACCESS_LOG
from plankeeper.console.lists.page import show_list
from plankeeper.console.lists.selection import download_list
from plankeeper.console.routing import Download, HtmlPage, PageRequest, Pages

pages = Pages()


@pages.get("/settings/access", role="owner")
async def list_(request: PageRequest) -> HtmlPage:
    return await show_list(request, ACCESS_LOG, "access_log.html")


@pages.get("/settings/access.csv", role="owner")
async def download(request: PageRequest) -> Download:
    return await download_list(request, ACCESS_LOG)
