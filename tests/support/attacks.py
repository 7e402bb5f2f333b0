"""Malicious texts, and the check of a page for their effects."""

from html.parser import HTMLParser

PAYLOADS = {
    "script": "<script>hit()</script>",
    "attribute": "\"'><img src=x onerror=hit()>",
    "handler": "\" autofocus onfocus=hit() x='",
    "address": "javascript:hit()",
    "closing": "</textarea></title></style><svg onload=hit()>",
    "template": "{{ 7 * 7 }}{% raw %}${7*7}",
    "escaped": "&lt;script&gt;hit()&lt;/script&gt;",
    "style": "red;background:url(javascript:hit())",
}


class PageParser(HTMLParser):
    """The elements of a page, and its problems."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.violations, self.text = list[str](), ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.text += " ".join(found.values()) + " "
        self.violations += [f"<{tag} {name}>" for name in found if name.startswith("on") or name == "style"]
        if tag == "script" and not found.get("src", "").startswith("/console/assets/"):
            self.violations.append(f"<script> {found}")
        for name in ("href", "src", "action", "formaction", "xlink:href"):
            address = found.get(name, "/")
            picture = tag == "img" and address.startswith("data:image/svg+xml")
            if not address.startswith(("/", "#", "?", "mailto:", "tel:", "https://example.com")) and not picture:
                self.violations.append(f"<{tag} {name}={address}>")

    def handle_data(self, data: str) -> None:
        self.text += data
