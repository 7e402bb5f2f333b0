"""The texts and keys that the search indexes hold, as literals for statements. See migrations 0025 and 0040."""

from typing import LiteralString

_PARTICIPANT_NAMES: LiteralString = "array[first_name, middle_name, last_name, preferred_name]"
_MEMBER_NAMES: LiteralString = "array[first_name, last_name]"
_PROVIDER_NAMES: LiteralString = "array[entity_name]"

PARTICIPANT_TEXT: LiteralString = f"search_text({_PARTICIPANT_NAMES}, array[participant_number, phone_number])"
PARTICIPANT_KEYS: LiteralString = f"search_keys({_PARTICIPANT_NAMES})"
ADDRESS_TEXT: LiteralString = "search_text(array[address_line_1, address_line_2, city], array[postcode])"
MEMBER_TEXT: LiteralString = f"search_text({_MEMBER_NAMES}, array[phone_number, secondary_phone_number])"
MEMBER_KEYS: LiteralString = f"search_keys({_MEMBER_NAMES})"
PROVIDER_TEXT: LiteralString = f"search_text({_PROVIDER_NAMES}, array[abn])"
PROVIDER_KEYS: LiteralString = f"search_keys({_PROVIDER_NAMES})"
INVOICE_TEXT: LiteralString = "search_text('{}', array[invoice_number])"

# Arabic surnames often begin with an article, which people leave out.
_ARTICLE: LiteralString = "\u0627\u0644"


def has_key(keys: LiteralString, word: LiteralString) -> LiteralString:
    """Whether keys of names have one of those of a word, or of the word with the Arabic article."""
    return f"{keys} && (select word_keys({word}) || word_keys('{_ARTICLE}' || {word}))"
