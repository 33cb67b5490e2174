"""How the files in `formats` were made: they stand for what users have on their disks.

Never make one again: a file that no longer loads is a bug in the code, not in the file. A new
format gets new files, under a new version; then run `python -m tests.live.make_formats`. Format 1
had another rule for ties, so what its games did next is no longer listed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import manyarms as ma
from manyarms.live.saving import VERSION
from tests.live.games import counts, play

FORMATS = Path(__file__).parent / "formats"
NAMES = [f"item {k}" for k in range(20)]
GAMES: dict[str, ma.Live] = {
    "moss": ma.MOSS(count_late=True).live(n_arms=25, horizon=900, seed=1),
    "moss_oracle": ma.MOSSOracle(size=9).live(arms=NAMES, horizon=900, seed=2),
    "quantile": ma.Quantile(exponent=0.4).live(arms=NAMES, seed=3),
    "moss++": ma.MOSSPlusPlus(beta=0.6).live(n_arms=10**9, horizon=900, seed=4),
    "empmoss++": ma.EmpMOSSPlusPlus(rank="pulled").live(arms=NAMES, horizon=900, seed=5),
    "parallel": ma.Parallel(best_mean=0.9).live(n_arms=25, horizon=900, seed=6),
    "anytime_moss++": ma.Doubling(ma.MOSSPlusPlus()).live(
        n_arms=30, seed=7, reward_range=(-1.0, 2.0)
    ),
}


def expected(live: ma.Live) -> dict[str, Any]:
    """What a handle that was loaded must do."""
    known = list(counts(live))
    play(live, 100)
    return {
        "counts": known,
        "pending after 100 events": [list(pull) for pull in live.pending],
        "reward after 100 events": live.progress().reward,
    }


def main() -> None:
    listed = FORMATS / "expected.json"
    table = json.loads(listed.read_text()) if listed.exists() else {}
    for name, live in GAMES.items():
        path = FORMATS / f"v{VERSION}_{name}.manyarms"
        if not path.exists():
            play(live, 400)
            live.save(path)
            table[path.stem] = expected(live)
    path = FORMATS / f"v{VERSION}_moss++.journal"
    if not path.exists():
        live = ma.MOSSPlusPlus().live(n_arms=30, horizon=900, seed=8)
        with ma.recorded(ma.Journal(path, compact_every=150), live):
            play(live, 330)
        table[path.name] = expected(ma.Live.from_bytes(live.to_bytes()))
    path = FORMATS / f"v{VERSION}_going_on.journal"
    if not path.exists():  # with events of all kinds, and their times
        live = ma.MOSS().live(n_arms=30, horizon=900, seed=9)
        with ma.recorded(ma.Journal(path, history=True), live):
            play(live, 60)
            live.observe(3, [0.0, 1.0])
            live.retire([4, 5])
            live.restore(4)
            live.ask(30)
        table[path.name] = expected(ma.Live.from_bytes(live.to_bytes()))
    listed.write_text(json.dumps(table) + "\n")


if __name__ == "__main__":
    main()
