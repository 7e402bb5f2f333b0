"""The routes of a list: its page, its files, and the files of the rows that are selected in it."""

from typing import get_args

from plankeeper.access.policy import Permission
from plankeeper.console.components.downloads import FileFormat
from plankeeper.console.lists.definition import ListDefinition
from plankeeper.console.lists.page import show_list
from plankeeper.console.lists.selection import download_list, download_selected
from plankeeper.console.shell.routing import PREFIX, HtmlPage, PageRequest, Pages
from plankeeper.core.files import Download


def add_list(
    pages: Pages,
    definition: ListDefinition,
    template: str = "lists/list.html",
    permission: Permission | None = None,
    *,
    is_limited: bool = False,
) -> None:
    """Register the page of a list, and its files. `template` is as in `show_list`."""

    @pages.get(_path(definition), role=definition.role, permission=permission, is_limited=is_limited)
    async def list_(request: PageRequest) -> HtmlPage:  # pyright: ignore[reportUnusedFunction] - it is registered
        return await show_list(request, definition, template)

    add_files(pages, definition, permission, is_limited=is_limited)


def add_files(
    pages: Pages, definition: ListDefinition, permission: Permission | None = None, *, is_limited: bool = False
) -> None:
    """Register the files of a list with a page of its own."""
    for each in get_args(FileFormat):
        _add_file(pages, definition, each, permission, is_limited=is_limited)


def _add_file(
    pages: Pages,
    definition: ListDefinition,
    file_format: FileFormat,
    permission: Permission | None,
    *,
    is_limited: bool,
) -> None:
    path, role = _path(definition), definition.download_role

    @pages.get(f"{path}.{file_format}", role=role, permission=permission, is_limited=is_limited)
    async def download(request: PageRequest) -> Download:  # pyright: ignore[reportUnusedFunction] - it is registered
        return await download_list(request, definition, file_format=file_format)

    if not any(each.path.endswith(f"/selected.{file_format}") for each in definition.actions):
        return

    @pages.get(f"{path}/selected.{file_format}", role=role, permission=permission, is_limited=is_limited)
    async def download_rows(request: PageRequest) -> Download:  # pyright: ignore[reportUnusedFunction] - the same
        return await download_selected(request, definition, file_format)


def _path(definition: ListDefinition) -> str:
    return definition.path.removeprefix(PREFIX)
