"""The visible text of a page: the text of its elements, and of the attributes that browsers show or read aloud."""

from html.parser import HTMLParser

SHOWN_ATTRIBUTES = {"alt", "aria-description", "aria-label", "data-label", "placeholder", "title"}
TYPED = {None, "date", "email", "number", "search", "submit", "tel", "text", "url"}  # kinds of inputs with a text
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
# Phrases stand in the sentence that they are part of; what other elements hold is a text of its own.
PHRASES = {"a", "abbr", "b", "bdi", "del", "em", "i", "ins", "mark", "small", "span", "strong", "sub", "sup", "time"}


class _Reader(HTMLParser):
    def __init__(self, skipped: set[str]) -> None:
        super().__init__()
        self.skipped, self.depth = skipped, 0  # how deep in a skipped element
        self.texts = [""]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.depth or tag in self.skipped:
            self.depth += tag not in VOID
            return
        if tag not in PHRASES:
            self.texts.append("")
        values = dict(attrs)
        shown = [value for name, value in attrs if name in SHOWN_ATTRIBUTES and value]
        if tag == "input" and values.get("type") in TYPED and values.get("value"):
            shown.append(values["value"] or "")
        self.texts[-1:-1] = shown

    def handle_endtag(self, tag: str) -> None:
        if self.depth:
            self.depth -= tag not in VOID
        elif tag not in PHRASES:
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        if not self.depth:
            self.texts[-1] += data


def visible_texts(html: str, skipped: set[str]) -> list[str]:
    """The texts of a page in order, without those in elements with the names `skipped`."""
    reader = _Reader(skipped)
    reader.feed(html)
    reader.close()
    return [text for each in reader.texts if (text := " ".join(each.split()))]
