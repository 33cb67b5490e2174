"""The colours of policies, the same in figures, reports, dashboard and site."""

from __future__ import annotations

from manyarms.core.theme import css, on_dark, properties

# Colours of Okabe & Ito, which colour-blind readers can distinguish. Grey replaces their yellow,
# which is too pale for a line.
POLICY_COLOURS = {
    "moss": "#E69F00",
    "moss-oracle": "#000000",
    "quantile": "#009E73",
    "parallel": "#CC79A7",
    "moss++": "#0072B2",
    "empmoss++": "#D55E00",
    "anytime-moss++": "#56B4E9",
    "prospector": "#6A3D9A",
    "anytime-parallel": "#767676",
}
# For all others: Paul Tol's muted colours. A built-in policy's position in `_OTHERS`, modulo the
# number of colours, gives its colour; neighbours often occur in the same figure.
OTHER_COLOURS = (
    *("#332288", "#44AA99", "#882255", "#999933", "#88CCEE", "#CC6677", "#117733", "#AA4499"),
)
_OTHERS = (
    *("scout", "patience", "guarded-empmoss++", "guarded-ss-greedy", "ss-greedy", "empirical-cbt"),
    *("cbt", "sequential-halving", "ucb1", "ucb", "kl-ucb", "kl-moss", "kl-ucb++", "kl-ucb-switch"),
    *("thompson", "uniform", "ss-ucb"),
)
OTHERS = {name: k for k, name in enumerate(_OTHERS)}


def page_css(dark: str = "") -> str:
    """Return the theme's CSS (see `core.theme.css`) with the colours of policies.

    An element with a policy's name in `data-policy` gets its colours as `--light` and `--dark`.

    >>> '[data-policy="moss"] { --light: #E69F00; --dark: #E69F00; }' in page_css()
    True
    """
    rules = [css(dark)]
    colours = {**{name: colour_of(k) for name, k in OTHERS.items()}, **POLICY_COLOURS}
    for name, colour in colours.items():
        both = properties({"light": colour, "dark": on_dark(colour)})
        rules.append(f'[data-policy="{name}"] {both}\n')
    return "".join(rules)


def colour_of(place: int) -> str:
    """Return the colour of the k-th policy without a colour of its own."""
    return OTHER_COLOURS[place % len(OTHER_COLOURS)]
