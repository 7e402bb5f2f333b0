"""Schemas of the error catalogue."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from plankeeper.http.pagination import CodeListQuery
from plankeeper.http.schemas import component

ErrorSubject = Annotated[
    Literal["api", "invoice", "line_item"],
    component("ErrorSubject", "`api`: an error of a request. `invoice`, `line_item`: a warning of the checks."),
]


class ErrorCatalogueEntry(Struct):
    """An error of the API, or a warning of the invoice checks."""

    error_code: str
    applies_to: ErrorSubject
    status: Annotated[int | None, Meta(description="The HTTP status; null for a warning.")]
    title: str
    description: str


class ErrorCatalogueListQuery(CodeListQuery):
    """The list of the catalogue, without filters."""
