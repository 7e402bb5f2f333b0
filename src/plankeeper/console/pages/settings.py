"""The overview of the settings."""

from plankeeper.console.routing import HtmlPage, PageRequest, Pages

pages = Pages()


@pages.get("/settings", role="viewer")
async def list_(request: PageRequest) -> HtmlPage:
    return HtmlPage("settings.html", {"role": request.role})
