"""`manyarms watch`: the experiments of a service in a terminal."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

import click

_TICK = 2.0  # seconds
_SLOW = 1.0  # seconds until it says that it still tries
_LEADERS = 10
_WIDTH = 30  # of bars
_WIDE = 200  # columns of a table where nobody looks: a line for each row
_TOKEN = "A token of role viewer or above (default: the variable MANYARMS_TOKEN)."


@click.command()
@click.argument("url")
@click.argument("experiment", required=False)
@click.option("--token", envvar="MANYARMS_TOKEN", help=_TOKEN)
@click.option("--once", is_flag=True, help="Print it once (default: only if there is no terminal).")
def watch(url: str, experiment: str | None, token: str | None, once: bool) -> None:
    """Watch the experiments of a service, or one of them.

    URL is the service's address, or that of an experiment's page.

    Example: manyarms watch http://127.0.0.1:8765 captions
    """
    from rich.console import Console, Group
    from rich.live import Live

    from manyarms.cli.screen import out, show

    base, named = _parts(url)
    look = _one if (experiment := experiment or named) else _all
    slow = threading.Timer(
        _SLOW, click.echo, [f"manyarms: {base} does not answer yet; trying for 5 s."], {"err": True}
    )
    slow.daemon = True
    slow.start()
    try:
        first = look(base, experiment, token)
    finally:
        slow.cancel()
    if once or not out.is_terminal:
        *lines, table = first
        show(*map(str, lines))
        (out if out.is_terminal else Console(width=_WIDE)).print(table)
        return
    with Live(Group(*first), console=out, auto_refresh=False) as screen:
        while True:
            time.sleep(_TICK)
            screen.update(Group(*look(base, experiment, token)), refresh=True)


def _parts(url: str) -> tuple[str, str | None]:
    """Return the service's address, and the experiment if it is a page's.

    >>> _parts("http://127.0.0.1:8765/arms/experiments/captions#leaders")
    ('http://127.0.0.1:8765/arms', 'captions')
    """
    parts = urlsplit(url)
    if not parts.netloc:
        return url, None  # which is refused, as it was given
    before, found, name = parts.path.partition("/experiments/")
    name = unquote(name.partition("/")[0])
    return f"{parts.scheme}://{parts.netloc}{before.rstrip('/')}", name if found else None


def _all(url: str, _: str | None, token: str | None) -> list[Any]:
    """Return what is shown of all experiments: a table."""
    from rich.table import Table

    from manyarms.remote import Remote
    from manyarms.remote.verdict import verdict

    table = Table("experiment", "state", "pulls", "last hour", "best so far", "verdict", box=None)
    for summary in Remote.experiments(url, token=token):
        about = SimpleNamespace(**summary)
        said = verdict(about)
        table.add_row(
            _text(about.name),
            about.state,
            _pulls(about),
            _mean(about.last_hour, about.rate),
            _text(_deployed(about), at_most=80),
            said.title,
        )
    return [table]


def _one(url: str, name: str | None, token: str | None) -> list[Any]:
    """Return what is shown of one experiment: lines, and the table of the leaders."""
    from rich.table import Table

    from manyarms.errors import TurnError
    from manyarms.remote import Remote
    from manyarms.remote.verdict import thousands, verdict

    assert name is not None
    with Remote(url, name, token=token, patience=5.0) as remote:
        about = SimpleNamespace(**remote.summary())
        try:
            leaders = remote.top(_LEADERS)
        except TurnError:
            leaders = []
        compared = _compared(remote) if about.spec.get("control") is not None else []
    said = verdict(about)
    table = Table("arm", "", "mean", "limits", "pulls", box=None, pad_edge=False)
    low = min((arm.interval[0] for arm in leaders), default=0.0)
    high = max((arm.interval[1] for arm in leaders), default=1.0)
    for arm in leaders:
        mean, *ends = (_mean(value, arm.rate) for value in (arm.estimate, *arm.interval))
        bar = _bar(*arm.interval, arm.estimate, low, high)
        table.add_row(_text(str(arm.arm)), bar, mean, " to ".join(ends), thousands(arm.pulls))
    lines = [
        f"{about.name}, {about.state}: {about.policy}, {thousands(about.n_arms)} arms",
        f"{_pulls(about)} pulls; {thousands(about.told)} told, {thousands(about.pending)} in "
        f"flight; mean reward {_mean(about.mean_reward, about.rate)}, last hour "
        f"{_mean(about.last_hour, about.rate)}",
        f"{'Deploy' if about.may_stop else 'Best so far:'} {_deployed(about)}",
        *compared,
        f"{said.headline} {said.why}",
        *([f"NOT HEALTHY: {about.alarm}"] if about.alarm else []),
        "",
    ]
    return [*(_text(line, at_most=2000) for line in lines), table]


def _compared(remote: Any) -> list[str]:
    """Return how much better the arm to deploy is than the control, if that is known."""
    from manyarms.errors import TurnError

    try:
        return [str(remote.uplift())]
    except TurnError:
        return []


def _text(text: str, *, at_most: int = 60) -> Any:
    from rich.text import Text

    from manyarms.core.tabular import plain

    return Text(plain(text, at_most=at_most))


def _pulls(about: Any) -> str:
    from manyarms.remote.verdict import thousands

    of = "" if about.horizon is None else f" of {thousands(about.horizon)}"
    return f"{thousands(about.pulls)}{of}"


def _deployed(about: Any) -> str:
    arm = about.recommended
    if arm is None:
        return "nothing yet"
    name = arm["arm"] if isinstance(arm["arm"], str) else f"arm {arm['arm']}"
    mean, low, high = (_mean(arm[end], arm["rate"]) for end in ("estimate", "low", "high"))
    return f"{name[:40]}: {mean}, {low} to {high}"


def _mean(value: float | None, rate: bool) -> str:
    from manyarms.inference.estimates import mean_text

    return "-" if value is None else mean_text(value, rate)


def _bar(low: float, high: float, mean: float, least: float, most: float) -> str:
    """Return an interval as a line of characters.

    >>> _bar(0.25, 0.75, 0.5, 0.0, 1.0)
    '       --------|-------       '
    """
    width = (most - least) or 1.0

    def place(value: float) -> int:
        return min(_WIDTH - 1, max(0, int(_WIDTH * (value - least) / width)))

    line = [" "] * _WIDTH
    line[place(low) : place(high) + 1] = "-" * (place(high) + 1 - place(low))
    line[place(mean)] = "|"
    return "".join(line)
