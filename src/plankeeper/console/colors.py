"""CSS colours of note types: a valid colour is rendered from its parsed values, any other text only as text."""

from typing import Any

import tinycss2
import tinycss2.color4

_FUNCTIONS = ("rgb", "rgba", "hsl", "hsla", "hwb")  # colour spaces that convert to RGB without a colour profile


def parse_color(text: str | None) -> str | None:
    """The colour as `#rrggbb`, or `#rrggbbaa` if translucent; null if the text is not a colour in RGB, HSL or HWB."""
    token: Any = tinycss2.parse_one_component_value(text or "", skip_comments=True)
    if token.type == "function" and token.lower_name not in _FUNCTIONS:
        return None
    color: Any = tinycss2.color4.parse_color(token)
    if color is None or isinstance(color, str):  # a string is `currentcolor`, which has no value of its own
        return None
    channels = [*color.to("srgb").coordinates, *([color.alpha] if color.alpha < 1 else [])]
    return "#" + "".join(f"{round(min(1.0, max(0.0, each)) * 255):02x}" for each in channels)
