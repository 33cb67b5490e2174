"""Opening a store, to begin a game in it or to continue one."""

from __future__ import annotations

import os
from typing import Any

from manyarms.core.checks import shown
from manyarms.core.files import fix_for
from manyarms.core.gc_pause import gc_paused
from manyarms.errors import ParameterError, SavedFileError, StoreError
from manyarms.live.game import LiveGame
from manyarms.live.handle import Live
from manyarms.live.journal import Journal
from manyarms.live.replay import replay
from manyarms.live.saving import VERSION, describe, restored, snapshot, version_of
from manyarms.live.store import Contents, Store


def recorded(store: str | os.PathLike[str] | Store, live: Live | None = None) -> Live:
    """Return a handle that records every event in a store before a call returns.

    After a crash, a kill or a deploy the same call plays all events again and goes on as if
    nothing had happened.

    Parameters
    ----------
    store
        A path is that of a `Journal`, a file; sqlite:///FILE?experiment=NAME and
        postgresql://HOST/DATABASE?experiment=NAME are games in a database. What is recorded there
        is played again.
    live
        The handle to begin with: needed where nothing is recorded yet. If something is, the handle
        must be new and of the same game (policy, arms, horizon, and seed if it was given), and
        takes over what is recorded; so the same script serves the first start and every other.

    Returns
    -------
    Live
        `live`, if that was given. Close it in the end, or use it in a `with` statement.

    Notes
    -----
    A store has one writer, and within that process any number of threads may use the handle. If
    writing fails, the disk being full, the call raises `StoreError`, and so do all others that must
    be recorded, until the store is opened again. Those that only look still answer; what the failed
    call did may be among what they say. What the store says is what happened. A reward whose tell
    failed may be told again, with `again="ignore"`. After a call that Ctrl-C, a signal or an error
    of the policy ended midway, all calls are refused.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import manyarms as ma
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "shop.journal"
    >>> with ma.recorded(path, ma.MOSSPlusPlus().live(n_arms=1000, horizon=500)) as live:
    ...     first, second = live.ask(2)
    ...     live.tell(second, reward=1.0)
    >>> with ma.recorded(path) as live:  # later, in another process
    ...     live.tell(first, reward=0.0)
    ...     live.pulls
    2
    """
    keeper = _store_of(store)
    if live is not None and not isinstance(live, Live):
        raise ParameterError(f"`live` must be what policy.live(...) returns, got {live!r}.")
    if live is not None and live._game.log is not None:
        raise ParameterError("`live` must be a handle without a store, got one that has one.")
    try:
        with gc_paused():
            held = keeper.load()
            try:
                return _begun(keeper, live) if held is None else _gone_on(keeper, live, held)
            except BaseException:
                keeper.close()
                raise
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"{keeper} cannot be opened: {reason}. {fix_for(error)}.") from error


def _store_of(store: str | os.PathLike[str] | Store) -> Store:
    if isinstance(store, str) and "://" in store:
        from manyarms.live.databases import store_of

        return store_of(store)
    if isinstance(store, str | os.PathLike):
        return Journal(store)
    if isinstance(store, Store):
        return store
    raise ParameterError(f"`store` must be a path or a store, got {store!r}.")


def _begun(store: Store, live: Live | None) -> Live:
    if live is None:
        raise StoreError(
            f"{store} holds no game yet. To begin one, pass a handle: "
            f"recorded(store, policy.live(...))."
        )
    with live._recorder.lock:
        store.save(live.to_bytes())
        live._recorder.begin(live._game, store)
    return live


def _gone_on(store: Store, live: Live | None, held: Contents) -> Live:
    game = restored(held.snapshot, None if live is None else live.policy, str(store))
    if version_of(held.snapshot) < VERSION:
        _renew(store, game, len(held.events.kind))
    replay(game, held.events, str(store))
    unsaved = len(held.events.kind) > 0
    if live is None:
        live = Live._of(game)
    else:
        _refuse_another_game(store, live._game, game)
        if _take_settings(live._game, game):  # no event could say so
            store.save(snapshot(game))
            unsaved = False
    with live._recorder.lock:
        live._game, live.seed = game, game.seed
        live._recorder.begin(game, store, unsaved=unsaved)
    return live


def _take_settings(given: LiveGame, game: LiveGame) -> bool:
    """Let a recorded game have the settings of a new handle; return whether they are others."""
    before = game.reward, game.epsilon
    game.reward = given.reward or game.reward
    game.epsilon = game.epsilon if given.epsilon is None else given.epsilon
    return before != (game.reward, game.epsilon)


def _renew(store: Store, game: LiveGame, events: int) -> None:
    """Replace the snapshot of an older format, unless events of that format follow it."""
    if events > 0:
        raise SavedFileError(
            f"{store} was recorded in format 1, by a manyarms with another rule for ties: its "
            f"{events} events cannot be played again here. Open it with that manyarms, "
            f"live.save(path) there, and read that file here with Live.load(path)."
        )
    store.save(snapshot(game))


def _refuse_another_game(store: Store, game: LiveGame, recorded: LiveGame) -> None:
    ours, theirs = describe(game), describe(recorded)
    begun = _first_arms(theirs["arms"], recorded.first_arms)
    what = ""
    if game.pulls > 0 or game.retired:
        what = f"a new handle, got one with {game.pulls} pulls"
    elif ours["arms"] not in (begun, theirs["arms"]):
        what = f"a handle with the recorded arms, {_differing(begun, ours['arms'])}"
        what += ". Change arms with sync_arms or add_arms, afterwards"
    for key in ("horizon", "seed", "reward_range", "control"):
        mine, kept = ours.get(key), theirs.get(key)
        if mine != kept and not (key == "seed" and game.seed_drawn):
            what = f"a handle with the recorded {key}, {kept!r}, got {mine!r}"
    if what:
        raise ParameterError(
            f"`live` must be {what}. To go on with the game recorded in {store}, leave `live` out; "
            f"for another game choose another store."
        )


def _first_arms(described: dict[str, Any], count: int) -> dict[str, Any]:
    """Return the arms that a game began with, in the form of `describe`."""
    return {"names": described["names"][:count]} if "names" in described else {"count": count}


def _differing(recorded: dict[str, Any], given: dict[str, Any]) -> str:
    """Return how two descriptions of arms differ, in words: the first name that does."""
    if "names" not in recorded or "names" not in given:
        had, got = (
            f"{len(arms['names'])} with names" if "names" in arms else f"{arms['count']} numbered"
            for arms in (recorded, given)
        )
        return f"{had}, got {got}"
    there, here = recorded["names"], given["names"]
    for place, (old, new) in enumerate(zip(there, here, strict=False)):
        if old != new:
            return f"of which arm {place} is {shown(old, 60)}, got {shown(new, 60)}"
    return f"{len(there)} of them, got {len(here)}"
