"""The search for providers in SQL, by the prefix of a name, an ABN or an email address."""

from typing import LiteralString

from msgspec import UnsetType

from plankeeper.database.filters import Filter

MATCHES: LiteralString = "select * from providers where plan_manager_id = $1"
# A prefix is a range of bytes: `like` has no range while its pattern is a parameter.
SEARCH = Filter(
    ("search_text",),
    "",
    source=f"""
            {MATCHES} and lower(entity_name) ~>=~ lower({{0}}) and lower(entity_name) ~<~ (lower({{0}}) || chr(1114111))
            union all
            {MATCHES} and lower(email) ~>=~ lower({{0}}) and lower(email) ~<~ (lower({{0}}) || chr(1114111))
            union all
            {MATCHES}
                and replace(abn, ' ', '') ~>=~ replace({{0}}, ' ', '')
                and replace(abn, ' ', '') ~<~ (replace({{0}}, ' ', '') || chr(1114111))
    """,
)


def search_values(text: str | UnsetType) -> dict[str, object]:
    """The values of the filter for a search text; none without one."""
    return {} if isinstance(text, UnsetType) else {"search_text": " ".join(text.split())}
