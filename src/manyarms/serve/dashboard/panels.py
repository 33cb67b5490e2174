"""The panels of the list and of an experiment, from views to HTML."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from manyarms.core import face
from manyarms.serve import messages as m
from manyarms.serve.dashboard import charts, words

if TYPE_CHECKING:
    from manyarms.serve.access import Caller
    from manyarms.serve.service import Service

__all__ = ["PANELS", "arms_panel", "common_scale", "draw_experiment", "draw_list", "template"]

HERE = Path(__file__).parent
PANELS = ("header", "deploy", "leaders", "reward", "exploring", "flight", "health")  # all but arms
_LEADERS = 20
_ARMS = 25


@functools.cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "thousands": words.thousands,
        "count": words.count,
        "number": words.number,
        "duration": words.duration,
        "moment": words.moment,
        "arm": words.arm_name,
    }
    made.globals |= {
        "mark": Markup(face.MARK),
        "bar": charts.bar,
        "parts_bar": charts.parts_bar,
        "interval": charts.interval,
        "share": words.share,
        "delay_range": words.delay_range,
        "verdict": words.verdict,
    }
    return made


def template(name: str, /, **content: Any) -> str:
    """Return a template, filled."""
    return _environment().get_template(f"{name}.html").render(**content)


async def draw_list(service: Service, caller: Caller, cursor: str) -> dict[str, str]:
    """Return a page of the list of experiments."""
    listing = await service.listing(caller, cursor)
    content = {"listing": listing, "cursor": cursor, "root": service.root_path}
    return {"list": template("panels/list", **content)}


async def draw_experiment(service: Service, name: str, kept: dict[str, Any]) -> dict[str, str]:
    """Return the panels of an experiment; what follows from its log alone is drawn once a head."""
    summary: m.ExperimentSummary = await service.view("summary", name)
    kept["summary"] = summary
    if kept.get("head") != (summary.head, summary.n_arms):
        kept["leaders"] = await service.view("leaders", name, k=_LEADERS)
        kept["minutes"] = await service.view("minutes", name)
        kept["exploring"] = await service.view("exploring", name)
        kept["head"] = summary.head, summary.n_arms
    looked = {
        "summary": summary,
        "leaders": kept["leaders"].arms,
        "exploring": kept["exploring"],
        "flight": await service.view("in_flight", name),
        "health": await service.health(name),
        "root": service.root_path,
    }
    looked |= _reckoned(looked, kept["minutes"])
    drawn = {panel: template(f"panels/{panel}", **looked) for panel in PANELS}
    return drawn | {"state": summary.state}


def _reckoned(looked: dict[str, Any], minutes: m.Minutes) -> dict[str, Any]:
    """Return what templates show and views do not say."""
    summary, exploring, flight = looked["summary"], looked["exploring"], looked["flight"]
    cost, how = words.cost_of_exploring(exploring, summary.told)
    return {
        "cost": cost,
        "cost_how": how,
        "delays": words.delays_in_words(flight),
        "plots": charts.reward_plots(minutes.points, summary.recommended),
        "scale": common_scale(looked["leaders"]),
        "histogram": [(_pulls(k), arms) for k, arms in enumerate(exploring.histogram)],
        "most": max(exploring.histogram, default=0),
        "hold": _with_hold(summary, flight),
    }


def _pulls(power: int) -> str:
    low, high = 2**power, 2 ** (power + 1) - 1
    return "1" if power == 0 else f"{words.thousands(low)} to {words.thousands(high)}"


def common_scale(arms: list[m.ArmView]) -> charts.PlotScale:
    """Return the scale that the intervals of a table share."""
    ends = [v for a in arms for v in (a.low, a.high, a.estimate) if v is not None]
    return charts.scale_of(ends or [0.0, 1.0])


def _with_hold(summary: m.ExperimentSummary, flight: m.InFlightView) -> float:
    """Return the window, in seconds, that holds back all but the latest rewards of those seen."""
    if summary.spec.window is not None:
        return summary.spec.window
    total, seen = sum(b.count for b in flight.delays), 0
    for delays in flight.delays:
        seen += delays.count
        if seen >= 0.99 * total and delays.high is not None:
            return delays.high
    return 48 * 3600.0


async def arms_panel(
    service: Service, name: str, chosen: dict[str, str], *, may_retire: bool
) -> str:
    """Return a page of arms, as its reader chose."""
    sort = chosen.get("sort", "low")
    sort = sort if sort in ("low", "estimate", "pulls", "told", "arm") else "low"
    search, cursor = chosen.get("search", "")[:200], chosen.get("cursor", "")
    page: m.ArmPage = await service.view(
        "arms", name, search=search, sort=sort, cursor=cursor, limit=_ARMS
    )
    return template(
        "panels/arms",
        page=page,
        scale=common_scale(page.arms),
        sort=sort,
        search=search,
        cursor=cursor,
        name=name,
        may_retire=may_retire,
        root=service.root_path,
    )
