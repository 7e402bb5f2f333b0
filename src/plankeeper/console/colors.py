"""CSS colours of note types: a valid colour is shown as a value that is built here, any other text only as text."""

from typing import Any

import tinycss2.color4

_RGB_SPACES = ("srgb", "hsl", "hwb")  # those that convert to RGB without a colour profile


def parse_color(text: str | None) -> str | None:
    """The colour as `#rrggbb`, or `#rrggbbaa` if translucent; null if the text is not a colour in RGB, HSL or HWB."""
    color: Any = tinycss2.color4.parse_color(text or "")  # its type stubs lack the attributes
    if color is None or isinstance(color, str) or color.space not in _RGB_SPACES:
        return None
    channels = [*color.to("srgb").coordinates, *([color.alpha] if color.alpha < 1 else [])]
    return "#" + "".join(f"{round(min(1.0, max(0.0, each)) * 255):02x}" for each in channels)
