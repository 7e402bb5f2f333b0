"""Several providers at once: download them."""

from plankeeper.console.lists.providers import PROVIDERS
from plankeeper.console.lists.selection import download_selected
from plankeeper.console.routing import Download, PageRequest, Pages

pages = Pages()


@pages.get("/providers/selected.csv", role="viewer")
async def download(request: PageRequest) -> Download:
    return await download_selected(request, PROVIDERS)
