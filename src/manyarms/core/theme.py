"""The theme of the project: colours, fonts and logo of figures, reports, dashboard and site.

This is plain data that needs no plotting package. The colours of policies are in
`protocol.colours`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# The colours of pages. `accent` is the colour of the project, `warm` and `pale` are used with it in
# charts; `good`, `bad` and `part` are for verdicts.
LIGHT = {
    "paper": "#fbfaf7",
    "card": "#ffffff",
    "ink": "#1d2129",
    "soft": "#5b6270",
    "faint": "#8a909c",
    "rule": "#e3e1da",
    "grid": "#eceae4",
    "accent": "#0b5c8f",
    "tint": "#e8f1f7",
    "good": "#00684b",
    "bad": "#a83f00",
    "part": "#7a5c00",
    "warm": "#d55e00",
    "pale": "#8fb7cf",
}
DARK = {
    "paper": "#14171c",
    "card": "#1c2027",
    "ink": "#e9eaec",
    "soft": "#abb1bc",
    "faint": "#858c99",
    "rule": "#333944",
    "grid": "#2a2f38",
    "accent": "#79bdea",
    "tint": "#20303d",
    "good": "#4cc79c",
    "bad": "#f0975a",
    "part": "#e0c060",
    "warm": "#f0975a",
    "pale": "#456b83",
}

ON_ANY = "#2f81c4"  # contrast 4:1 with white and with black, for notebooks and other pages

# Fonts of the reader's system, so that none are downloaded.
LETTERS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif'
CODE_LETTERS = 'ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace'

# The logo: one choice among many arms.
_ARMS = "M2 18C8 18 8 3 30 3M2 18C10 18 12 9 30 9M2 18C12 18 14 15 30 15"
MARK = f'<svg viewBox="0 0 32 20" aria-hidden="true"><path d="{_ARMS}"/></svg>'
_PEN = 'fill="none" stroke="{}" stroke-width="2.6" stroke-linecap="round"'
_SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {}">{}</svg>\n'
ICON = _SVG.format(
    "32 32",
    f'<rect width="32" height="32" rx="7" fill="{LIGHT["accent"]}"/>'
    f'<path transform="translate(4 8) scale(.76)" d="{_ARMS}" {_PEN.format("#fff")}/>',
)
LOGO = _SVG.format("32 20", f'<path d="{_ARMS}" {_PEN.format("#fff")}/>')

_CONTRAST = 4.0  # least contrast of a line with a dark page; WCAG demands 3


def css(dark: str = "") -> str:
    """Return the theme as custom properties, for style sheets.

    `dark` is the selector of a dark page (default: the reader's system decides, on screens).

    >>> "--accent: #0b5c8f;" in css()
    True
    """
    letters = {"letters": LETTERS, "code-letters": CODE_LETTERS}
    night = f"{dark or ':root'} {properties(DARK)}"
    rules = [
        f":root {properties({**LIGHT, **letters})}",
        night if dark else f"@media screen and (prefers-color-scheme: dark) {{ {night} }}",
    ]
    return "\n".join(rules) + "\n"


def properties(values: Mapping[str, str]) -> str:
    """Return the body of a rule that sets custom properties.

    >>> properties({"light": "#000000"})
    '{ --light: #000000; }'
    """
    return "{ " + " ".join(f"--{name}: {value};" for name, value in values.items()) + " }"


def on_dark(colour: str) -> str:
    """Mix a colour with white until it can be seen on a dark page; black becomes white.

    >>> on_dark("#000000"), on_dark("#E69F00"), on_dark("#332288")
    ('#FFFFFF', '#E69F00', '#857AB8')
    """
    channels = _channels(colour)
    if not any(channels):
        return "#FFFFFF"
    for white in range(0, 101, 5):
        mixed = [round(c + (255 - c) * white / 100) for c in channels]
        if (_luminance(mixed) + 0.05) / (_luminance(_channels(DARK["card"])) + 0.05) >= _CONTRAST:
            break
    return "#" + "".join(f"{c:02X}" for c in mixed)


def _channels(colour: str) -> list[int]:
    return [int(colour[k : k + 2], 16) for k in (1, 3, 5)]


def _luminance(channels: Sequence[int]) -> float:
    """Return the relative luminance of a colour, as WCAG 2 defines it."""
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
