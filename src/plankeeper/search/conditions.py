"""The texts and keys that the search indexes hold, as literals for statements. See migration 0025."""

from typing import LiteralString

_PARTICIPANT_NAMES: LiteralString = "array[first_name, middle_name, last_name, preferred_name]"
_MEMBER_NAMES: LiteralString = "array[first_name, last_name]"
_PROVIDER_NAMES: LiteralString = "array[entity_name]"

PARTICIPANT_TEXT: LiteralString = f"search_text({_PARTICIPANT_NAMES}, array[participant_number, phone_number])"
PARTICIPANT_KEYS: LiteralString = f"search_keys({_PARTICIPANT_NAMES})"
MEMBER_TEXT: LiteralString = f"search_text({_MEMBER_NAMES}, array[phone_number, secondary_phone_number])"
MEMBER_KEYS: LiteralString = f"search_keys({_MEMBER_NAMES})"
PROVIDER_TEXT: LiteralString = f"search_text({_PROVIDER_NAMES}, array[abn])"
PROVIDER_KEYS: LiteralString = f"search_keys({_PROVIDER_NAMES})"
INVOICE_TEXT: LiteralString = "search_text('{}', array[invoice_number])"
