"""Colours as data: what parses as one is shown, as a value that was built anew; whatever else it says is only text."""

import colorsys
import re

_HEX = re.compile(r"#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})")
_FUNCTION = re.compile(r"(rgb|hsl)a?\(([^()]{1,80})\)")
_NUMBER = re.compile(r"[+-]?([0-9]{1,6}(\.[0-9]{1,6})?|\.[0-9]{1,6})")

COLOR_NAMES = frozenset(
    """
    aliceblue antiquewhite aqua aquamarine azure beige bisque black blanchedalmond blue blueviolet brown burlywood
    cadetblue chartreuse chocolate coral cornflowerblue cornsilk crimson cyan darkblue darkcyan darkgoldenrod darkgray
    darkgreen darkgrey darkkhaki darkmagenta darkolivegreen darkorange darkorchid darkred darksalmon darkseagreen
    darkslateblue darkslategray darkslategrey darkturquoise darkviolet deeppink deepskyblue dimgray dimgrey dodgerblue
    firebrick floralwhite forestgreen fuchsia gainsboro ghostwhite gold goldenrod gray green greenyellow grey honeydew
    hotpink indianred indigo ivory khaki lavender lavenderblush lawngreen lemonchiffon lightblue lightcoral lightcyan
    lightgoldenrodyellow lightgray lightgreen lightgrey lightpink lightsalmon lightseagreen lightskyblue
    lightslategray lightslategrey lightsteelblue lightyellow lime limegreen linen magenta maroon mediumaquamarine
    mediumblue mediumorchid mediumpurple mediumseagreen mediumslateblue mediumspringgreen mediumturquoise
    mediumvioletred midnightblue mintcream mistyrose moccasin navajowhite navy oldlace olive olivedrab orange
    orangered orchid palegoldenrod palegreen paleturquoise palevioletred papayawhip peachpuff peru pink plum
    powderblue purple rebeccapurple red rosybrown royalblue saddlebrown salmon sandybrown seagreen seashell sienna
    silver skyblue slateblue slategray slategrey snow springgreen steelblue tan teal thistle tomato turquoise violet
    wheat white whitesmoke yellow yellowgreen
    """.split()  # noqa: SIM905 - a list of quoted words is read by nobody
)


def parse_color(text: str | None) -> str | None:
    """What a colour is drawn with: a name of the list, or `#rrggbb`, or `#rrggbbaa`; null where it is no colour."""
    normalized = (text or "").strip().lower()
    if normalized in COLOR_NAMES:
        return normalized
    if match := _HEX.fullmatch(normalized):
        digits = match[1] if len(match[1]) > 4 else "".join(each * 2 for each in match[1])
        return _to_hex([int(digits[index : index + 2], 16) / 255 for index in range(0, len(digits), 2)])
    if match := _FUNCTION.fullmatch(normalized):
        return _parse_function(match[1], match[2])
    return None


def _parse_function(function: str, arguments: str) -> str | None:
    """`rgb(1, 2, 3)` or `rgb(1 2 3 / 50%)`, and the same of hsl."""
    if "," in arguments:
        parts = [each.strip() for each in arguments.split(",")]
    else:
        front, slash, alpha = arguments.partition("/")
        parts = [*front.split(), *([alpha.strip()] if slash else [])]
    scales = {"rgb": (255, 255, 255, 1), "hsl": (360, 100, 100, 1)}[function]
    if not 3 <= len(parts) <= 4:
        return None
    channels = [
        _parse_channel(part, scale, function, index)
        for index, (part, scale) in enumerate(zip(parts, scales, strict=False))
    ]
    values = [each for each in channels if each is not None]
    if len(values) < len(channels):
        return None
    if function == "hsl":
        values[:3] = colorsys.hls_to_rgb(values[0], values[2], values[1])
    return _to_hex(values)


def _parse_channel(part: str, scale: float, function: str, index: int) -> float | None:
    """A number as a share of its scale, from 0 to 1; a hue goes round."""
    is_hue = function == "hsl" and index == 0
    is_percent = part.endswith("%") and not is_hue
    number = part.removesuffix("%") if is_percent else part.removesuffix("deg") if is_hue else part
    if not _NUMBER.fullmatch(number):
        return None
    value = float(number) / (100 if is_percent else scale)
    return value % 1 if is_hue else min(1.0, max(0.0, value))


def _to_hex(channels: list[float]) -> str:
    return "#" + "".join(f"{round(each * 255):02x}" for each in channels)
