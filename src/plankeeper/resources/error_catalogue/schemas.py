"""Schemas of the error catalogue."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from plankeeper.core.fields import component
from plankeeper.core.lists import CodeListQuery

ErrorSubject = Annotated[
    Literal["api", "invoice", "line_item"],
    component("ErrorSubject", "`api`: an error of a request. `invoice`, `line_item`: a warning of the checks."),
]


class ErrorCatalogueEntry(Struct):
    """An error of the API, or a warning of the invoice checks."""

    error_code: Annotated[str, Meta(description="The code, for programs.")]
    applies_to: Annotated[ErrorSubject, Meta(description="`api` for an error, `invoice` or `line_item` for a warning.")]
    status: Annotated[int | None, Meta(description="The HTTP status; null for a warning.")]
    title: Annotated[str, Meta(description="A short title, for people.")]
    description: Annotated[str, Meta(description="A sentence that explains the code.")]


class ErrorCatalogueListQuery(CodeListQuery, frozen=True):
    """The list of the catalogue, without filters."""
