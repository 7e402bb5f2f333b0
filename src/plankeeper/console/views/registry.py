"""All lists of the console."""

from collections.abc import Mapping
from types import MappingProxyType

from plankeeper.console.activity.list import ACTIVITY
from plankeeper.console.developers.requests import REQUESTS
from plankeeper.console.invoices.list import INVOICES
from plankeeper.console.lists.definition import ListDefinition
from plankeeper.console.participants.list import PARTICIPANTS
from plankeeper.console.providers.list import PROVIDERS
from plankeeper.console.settings.access_log import ACCESS_LOG

LISTS: Mapping[str, ListDefinition] = MappingProxyType(
    {each.kind: each for each in (INVOICES, PARTICIPANTS, PROVIDERS, ACTIVITY, REQUESTS, ACCESS_LOG)}
)
