"""Colours as data: what parses as one is shown, as a value that was built anew; whatever else it says is only text."""

import colorsys
import re

_HEX = re.compile(r"#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})")
_CALL = re.compile(r"(rgb|hsl)a?\(([^()]{1,80})\)")
_NUMBER = re.compile(r"[+-]?([0-9]{1,6}(\.[0-9]{1,6})?|\.[0-9]{1,6})")

NAMES = frozenset(
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


def shade(text: str | None) -> str | None:
    """What a colour is drawn with: a name of the list, or `#rrggbb`, or `#rrggbbaa`; null where it is no colour."""
    plain = (text or "").strip().lower()
    if plain in NAMES:
        return plain
    if found := _HEX.fullmatch(plain):
        digits = found[1] if len(found[1]) > 4 else "".join(each * 2 for each in found[1])
        return _hex([int(digits[at : at + 2], 16) / 255 for at in range(0, len(digits), 2)])
    if found := _CALL.fullmatch(plain):
        return _called(found[1], found[2])
    return None


def _called(function: str, inside: str) -> str | None:
    """`rgb(1, 2, 3)` or `rgb(1 2 3 / 50%)`, and the same of hsl."""
    if "," in inside:
        parts = [each.strip() for each in inside.split(",")]
    else:
        front, slash, alpha = inside.partition("/")
        parts = [*front.split(), *([alpha.strip()] if slash else [])]
    scales = {"rgb": (255, 255, 255, 1), "hsl": (360, 100, 100, 1)}[function]
    if not 3 <= len(parts) <= 4:
        return None
    found = [_share(part, scale, function, at) for at, (part, scale) in enumerate(zip(parts, scales, strict=False))]
    values = [each for each in found if each is not None]
    if len(values) < len(found):
        return None
    if function == "hsl":
        values[:3] = colorsys.hls_to_rgb(values[0], values[2], values[1])
    return _hex(values)


def _share(part: str, scale: float, function: str, at: int) -> float | None:
    """A number as a share of its scale, from 0 to 1; a hue goes round."""
    is_hue = function == "hsl" and at == 0
    is_percent = part.endswith("%") and not is_hue
    number = part.removesuffix("%") if is_percent else part.removesuffix("deg") if is_hue else part
    if not _NUMBER.fullmatch(number):
        return None
    value = float(number) / (100 if is_percent else scale)
    return value % 1 if is_hue else min(1.0, max(0.0, value))


def _hex(shares: list[float]) -> str:
    return "#" + "".join(f"{round(each * 255):02x}" for each in shares)
