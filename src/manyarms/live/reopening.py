"""Opening a journal that exists: read, play again, go on."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from manyarms.errors import ParameterError
from manyarms.live.description import first_arms
from manyarms.live.handle import Live
from manyarms.live.records import read_file
from manyarms.live.replay import replay
from manyarms.live.saving import describe
from manyarms.live.writer import Writer

__all__ = ["reopen"]


def reopen(path: Path, live: Live | None, pause: float | None, most: int) -> tuple[Live, Writer]:
    """Play again what the file holds, and go on after it."""
    data = path.read_bytes()
    saved, events, end, check = read_file(data, str(path))
    played = Live._from_bytes(saved, None if live is None else live.policy, str(path))
    if live is not None:
        _refuse_another_game(path, live, played)
    replay(played, events, str(path))
    if end < len(data):  # the last record was not written wholly
        os.truncate(path, end)
    writer = Writer(path, live or played, pause=pause, most=most)
    writer.go_on(end=end, records=len(events.kind), check=check)
    if live is not None:
        live._become(played)
    token = "[0-9a-f]" * 8
    for left in path.parent.glob(f"{glob.escape(path.name)}.{token}.tmp"):
        left.unlink()  # by a compaction that did not end
    return live or played, writer


def _refuse_another_game(path: Path, live: Live, recorded: Live) -> None:
    ours, theirs = describe(live), describe(recorded)
    begun = first_arms(theirs["arms"], recorded._first_arms)
    what = ""
    if live.pulls > 0 or live._retired:
        what = f"a new handle, got one with {live.pulls} pulls"
    elif ours["arms"] not in (begun, theirs["arms"]):
        what = "of the arms recorded there; add others with add_arms, afterwards"
    for key in ("horizon", "seed", "reward_range"):
        if ours[key] != theirs[key]:
            what = f"of the game recorded there, with {key} {theirs[key]!r}, got {ours[key]!r}"
    if what:
        raise ParameterError(
            f"`live` must be {what}. To go on with {path}, leave it out; for another game choose "
            f"another path."
        )
