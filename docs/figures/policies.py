"""The pictures of docs/policies: `python docs/figures/policies.py` draws them again (minutes).

All show simulated runs, and depend on the seed alone. A picture has two parts:
where the pulls go, and what is lost. Its colours follow the page, light or dark.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import manyarms as ma
from manyarms.core.theme import DARK, LIGHT, on_dark, properties

if TYPE_CHECKING:
    from manyarms.report.drawing import Axes

FOLDER = Path(__file__).parent / "policies"
N_ARMS, HORIZON, ALPHA, RUNS, SEED = 20_000, 50_000, 0.25, 40, 0  # Figure 2(b) of the paper
TIMES = np.unique(np.geomspace(1, HORIZON, 60).astype(int))
MANY = 4  # policies of one picture
_THIN = ((1, 1), (4, 2), (6, 1, 1, 1))  # dashes of lines that stand beside
LENGTHS = (300, 1_000, 3_000, 10_000)  # pulls of searches
PAPER = ("moss", "moss_oracle", "quantile", "parallel", "moss_plus_plus", "emp_moss_plus_plus")
KINDS = {
    "best arm": LIGHT["good"],
    "another arm, again": LIGHT["pale"],
    "a fresh arm": LIGHT["rule"],
}


@dataclass(frozen=True)
class Picture:
    """What one page shows: policies, and where they play."""

    policies: tuple[ma.Policy, ...]
    instance: ma.Instance
    where: str
    horizon: int = HORIZON
    beside: tuple[ma.Policy, ...] = ()  # thin lines
    finds: bool = False  # whether the arm kept counts, not regret


def standard() -> ma.Instance:
    """Return the arms of Figure 2(b)."""
    return ma.instances.planted(n=N_ARMS, alpha=ALPHA, horizon=HORIZON)


def paper() -> tuple[ma.Policy, ...]:
    """Return the six policies of the paper."""
    return (
        ma.MOSS(),
        ma.MOSSOracle(alpha=ALPHA),
        ma.Quantile(),
        ma.Parallel(best_mean=0.9),
        ma.MOSSPlusPlus(),
        ma.EmpMOSSPlusPlus(),
    )


def named(names: str) -> tuple[ma.Policy, ...]:
    """Return policies by their names, which spaces separate."""
    return tuple(map(ma.policy, names.split()))


def pictures() -> dict[str, Picture]:
    """Return the picture of each page."""
    arms, m = standard(), standard().n_best or 1
    where = f"{N_ARMS:,} arms, {m} of them best (mean 0.9), others 0.1 to 0.5"
    six = paper()
    alone: dict[str, ma.Policy] = {
        **dict(zip(PAPER, six, strict=True)),
        "prospector": ma.Prospector(),
        "patience": ma.Patience(best_mean=0.9),
    }
    found = {page: Picture((one,), arms, where, beside=six) for page, one in alone.items()}
    anytime = (ma.MOSSPlusPlus(), ma.Parallel(best_mean=0.9))
    found["doubling"] = Picture((*anytime, *map(ma.Doubling, anytime)), arms, where)
    bare = named("ss-greedy empmoss++")
    found["guarded"] = Picture((*bare, *map(ma.Guarded, bare)), arms, where)
    few = ma.instances.planted(n=10, m=1, best=0.6, others=(0.3, 0.4, 0.5))
    found["few_arms"] = Picture(
        named("ucb1 ucb kl-ucb kl-moss kl-ucb++ kl-ucb-switch thompson uniform"),
        few,
        "10 arms, 1 of them best (mean 0.6), others 0.3, 0.4 and 0.5",
    )
    found["subsets"] = Picture(named("ss-greedy ss-ucb"), arms, where)
    evenly = np.linspace(0.0, 1.0, 100_001)
    found["never_fail"] = Picture(
        named("cbt empirical-cbt"),
        ma.instances.from_means(evenly, epsilon=0.01),
        f"{len(evenly):,} arms, means spread evenly over [0, 1]; best: those above 0.99",
    )
    means = np.random.default_rng(SEED).beta(2.0, 5.0, 200_000)
    beta = ma.instances.from_means(means, epsilon=float(means.max()) - 0.75)
    law = f"200,000 arms, means drawn from Beta(2, 5); best: the {beta.n_best:,} above 0.75"
    longest = LENGTHS[-1]
    rivals = named("sequential-halving")
    found["scout"] = Picture((ma.Scout(),), beta, law, longest, rivals, finds=True)
    found["finders"] = Picture(rivals, beta, law, longest, (ma.Scout(),), finds=True)
    return found


def drawn(picture: Picture, *, runs: int = RUNS) -> str:
    """Return a picture as SVG."""
    from manyarms.report.drawing import drawing, rendered

    with drawing(6.4, 3.2 if len(picture.policies) >= MANY else 2.5) as figure:
        left, right = figure.subplots(1, 2)
        (pulls_over_time if len(picture.policies) == 1 else pulls_in_all)(left, picture, runs)
        (simple_regret if picture.finds else regret)(right, picture, runs)
        figure.suptitle(f"{picture.where}; means of {runs} runs", fontsize=7.5)
    return day_and_night(rendered(figure, "svg").decode())


@cache
def played(policy: ma.Policy, instance: ma.Instance, horizon: int, runs: int, arms: bool) -> Any:
    """Return the result of one policy, which does not depend on the others."""
    times = [int(t) for t in TIMES if t <= horizon]
    return ma.simulate(
        policy, instance, horizon=horizon, replications=runs, seed=SEED, checkpoints=times,
        record_arms=arms, progress=False,
    )  # fmt: skip


def kinds(policy: ma.Policy, picture: Picture, runs: int) -> np.ndarray[Any, Any]:
    """Return by (kind, pull) which share of the runs pulled a best, an old or a fresh arm."""
    result = played(policy, picture.instance, picture.horizon, runs, True)
    good = good_arms(picture.instance)
    shares = np.zeros((3, picture.horizon))
    for arms in result.arms[0]:
        best, fresh = good[arms], np.zeros(picture.horizon, bool)
        fresh[np.unique(arms, return_index=True)[1]] = True
        shares += [best, ~best & ~fresh, ~best & fresh]
    return shares / runs


@cache
def good_arms(instance: ma.Instance) -> np.ndarray[Any, Any]:
    """Return by arm whether it is a best one."""
    least = instance.best_mean - instance.epsilon
    return np.array([instance.mean(arm) >= least for arm in range(instance.n_arms)])


def pulls_over_time(axes: Axes, picture: Picture, runs: int) -> None:
    """Draw which arms are pulled as time goes by, on an axis of logarithms."""
    shares = kinds(picture.policies[0], picture, runs)
    edges = np.unique(np.geomspace(1, picture.horizon + 1, 45).astype(int))
    binned = np.array([shares[:, a - 1 : b - 1].mean(axis=1) for a, b in pairwise(edges)])
    low = np.zeros(len(edges))
    for (kind, colour), share in zip(KINDS.items(), binned.T, strict=True):
        high = low + np.append(share, share[-1])
        axes.fill_between(edges, low, high, step="post", color=colour, lw=0, label=kind)
        low = high
    axes.set(xscale="log", xlim=(1, picture.horizon), ylim=(0, 1), xlabel="pull")
    axes.minorticks_off()
    axes.set_title("where its pulls go", loc="left")
    axes.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    axes.grid(visible=False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=3, handlelength=1)


def pulls_in_all(axes: Axes, picture: Picture, runs: int) -> None:
    """Draw which arms are pulled in the whole run, one bar for each policy."""
    from manyarms.report.style import policy_title

    titles = [policy_title(policy.name) for policy in picture.policies]
    shares = np.array([kinds(p, picture, runs).mean(axis=1) for p in picture.policies])
    low = np.zeros(len(titles))
    for (kind, colour), share in zip(KINDS.items(), shares.T, strict=True):
        axes.barh(titles, share, left=low, color=colour, label=kind, height=0.7)
        low = low + share
    axes.invert_yaxis()
    axes.set(xlim=(0, 1))
    axes.set_title("where pulls go", loc="left")
    axes.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    axes.grid(visible=False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.3, -0.1), ncols=3, handlelength=1)


def regret(axes: Axes, picture: Picture, runs: int) -> None:
    """Draw regret over time."""
    from manyarms.report.style import thousands

    def curve(policy: ma.Policy) -> tuple[Any, Any]:
        result = played(policy, picture.instance, picture.horizon, runs, policy in picture.policies)
        return result.times, result.regret[0].mean(axis=0)

    _lines(axes, picture, curve)
    axes.set(xscale="log", xlim=(10, picture.horizon), xlabel="pull")
    axes.minorticks_off()
    if len(picture.policies) > MANY:  # some lose a hundred times as much as others
        axes.set(yscale="log", ylim=(10, None))
    else:
        axes.set_ylim(0, 1.05 * max(curve(policy)[1][-1] for policy in picture.policies))
    axes.set_title("regret", loc="left")
    axes.yaxis.set_major_formatter(thousands)


def simple_regret(axes: Axes, picture: Picture, runs: int) -> None:
    """Draw the simple regret, against the length of the search."""
    best, lengths = picture.instance.best_mean, [t for t in LENGTHS if t <= picture.horizon]

    def curve(policy: ma.Policy) -> tuple[Any, Any]:
        ends = [played(policy, picture.instance, pulls, runs, False) for pulls in lengths]
        return lengths, [best - end.recommended_mean[0].mean() for end in ends]

    _lines(axes, picture, curve)
    axes.set(xscale="log", xlabel="pulls of the search", ylim=(0, None))
    axes.minorticks_off()
    axes.set_title("simple regret of the arm kept", loc="left")


def _lines(axes: Axes, picture: Picture, curve: Any) -> None:
    from manyarms.report.style import policy_styles, policy_title

    names = [policy.name for policy in picture.policies]
    others = [policy for policy in picture.beside if policy.name not in names]
    alike = len(others) > len(_THIN)
    for k, policy in enumerate(others):
        label = "the paper's others" if alike else policy_title(policy.name)
        dashes = (1, 0) if alike else _THIN[k]
        options: dict[str, Any] = {"color": LIGHT["faint"], "lw": 0.7, "dashes": dashes}
        axes.plot(*curve(policy), **options, label=None if alike and k else label)
    for policy, style in zip(picture.policies, policy_styles(names).values(), strict=True):
        options = style.options() | {"label": policy_title(policy.name), "marker": ""}
        axes.plot(*curve(policy), **options | {"lw": 2.0 if len(names) == 1 else 1.3})
    axes.legend(fontsize=6.5, handlelength=2.4)


def day_and_night(svg: str) -> str:
    """Return a picture whose colours are those of a dark page on dark pages."""
    night = {LIGHT[name]: DARK[name] for name in LIGHT}
    colours = sorted(set(re.findall(r"#[0-9a-f]{6}(?![0-9a-f])", svg)))
    day = {f"c{k}": colour for k, colour in enumerate(colours)}
    dark = {name: night.get(colour, on_dark(colour)) for name, colour in day.items()}
    for name, colour in day.items():
        svg = re.sub(f"{colour}(?![0-9a-f])", f"var(--{name})", svg)
    at_night = f"@media (prefers-color-scheme: dark) {{ :root {properties(dark)} }}"
    svg = re.sub(r"(\d\.\d\d)\d+", r"\1", svg)  # hundredths of a point are enough
    return svg.replace("<defs>", f"<defs>\n  <style>:root {properties(day)} {at_night}</style>", 1)


def main() -> None:
    """Draw all pictures, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", nargs="*", help="pages, such as moss_plus_plus (default: all)")
    all_of_them = pictures()
    FOLDER.mkdir(exist_ok=True)
    for name in parser.parse_args().which or all_of_them:
        path = FOLDER / f"{name}.svg"
        path.write_text(drawn(all_of_them[name]), encoding="utf-8")
        print(path, flush=True)


if __name__ == "__main__":
    main()
