"""Several providers at once: download them."""

from plankeeper.console.lists.download import download_selection
from plankeeper.console.lists.providers import PROVIDERS
from plankeeper.console.lists.selection import read_selection
from plankeeper.console.routing import Download, PageRequest, Pages

pages = Pages()


@pages.get("/providers/selected.csv", role="viewer")
async def download(request: PageRequest) -> Download:
    return await download_selection(request, await read_selection(request, PROVIDERS, request.query, "exported"))
