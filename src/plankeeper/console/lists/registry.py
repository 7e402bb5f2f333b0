"""All lists of the console."""

from collections.abc import Mapping
from types import MappingProxyType

from plankeeper.console.lists.access_log import ACCESS_LOG
from plankeeper.console.lists.activity import ACTIVITY
from plankeeper.console.lists.definition import ListDefinition
from plankeeper.console.lists.invoices import INVOICES
from plankeeper.console.lists.participants import PARTICIPANTS
from plankeeper.console.lists.providers import PROVIDERS
from plankeeper.console.lists.requests import REQUESTS

LISTS: Mapping[str, ListDefinition] = MappingProxyType(
    {each.kind: each for each in (INVOICES, PARTICIPANTS, PROVIDERS, ACTIVITY, REQUESTS, ACCESS_LOG)}
)
