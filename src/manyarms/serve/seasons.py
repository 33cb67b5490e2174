"""A new experiment that remembers an old one, as `Live.season`.

A process of its own plays it, because a long log would slow down the service: it reads the old log,
lets every reward be observed, and answers the pulls that these rewards answer at once. What comes
out is the snapshot that the new experiment begins with. Nobody sees the experiment until one
transaction gives it its name.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from manyarms import __version__
from manyarms.live.columns import tallies_of
from manyarms.live.databases import Database, ExperimentRow
from manyarms.live.databases.store import columns_of
from manyarms.live.game import LiveGame
from manyarms.live.history import GameHistory
from manyarms.live.saving import restored, snapshot
from manyarms.live.season import next_season
from manyarms.live.store import Contents, EventKind
from manyarms.protocol.policy import Policy
from manyarms.serve import clock, tables
from manyarms.serve import messages as m
from manyarms.serve.batch import LostError
from manyarms.serve.cleaning import SOME_ARMS
from manyarms.serve.errors import RefusedError, as_refusals, refuse, unavailable, unknown_experiment
from manyarms.serve.game import Game, ReplayError, begun, check_spec, policy_of
from manyarms.serve.requests import Request, Response, answered

if TYPE_CHECKING:
    from manyarms.serve.service import Service

_STORE = "MANYARMS_SEASON_STORE"  # in the environment: there may be a password in it


class _Begun(msgspec.Struct):
    """What a new experiment begins with; its pulls are those that are answered already."""

    source: int  # the number of the experiment that it remembers
    spec: str
    keyed: bool
    n_arms: int
    state: bytes
    more: bytes
    minute: tuple[int, int, int, int, float, int] | None


class _Outcome(msgspec.Struct):
    begun: _Begun | None = None
    failure: m.Failure | None = None


async def season(service: Service, request: Request) -> Response:
    """Create an experiment that remembers another; the same one again is no mistake."""
    wanted: m.NewSeason = request.body
    old, name, caller = request.experiment, wanted.name, request.caller
    if caller is not None and caller.experiment not in (None, name):
        raise refuse(403, "experiment", f"The token {caller.name!r} is for {old!r} only.")
    # if the asker goes away, it is made all the same: whoever asks again finds it
    making = service.leader.in_background(_make(service, old, wanted))
    made = await asyncio.shield(making)
    if made:
        service.note(caller, old, f"season {name}")
        service.note(caller, name, f"create as a season of {old}")
    return answered(await service.view("summary", name), 201 if made else 200)


async def _make(service: Service, old: str, wanted: m.NewSeason) -> bool:
    """Make a season; return False if it is there already."""
    leader = service.leader
    async with service.making_seasons:
        row = await leader.read(lambda database: database.find(wanted.name))
        if row is not None:
            _check_same(row, old, wanted)
            return False
        await leader.find(old)  # or refuse
        new = await _in_a_process(service, old, wanted)
        x = await leader.write(lambda database: tables.hidden(database, new.keyed))
        try:
            source = await leader.read(lambda database: database.find(old))
            if source is None or source.id != new.source:  # it was deleted, or is another one now
                raise unknown_experiment(old)
            for begin in range(0, new.n_arms if new.keyed else 0, SOME_ARMS):
                numbers = begin, min(begin + SOME_ARMS, new.n_arms)
                await leader.write(partial(tables.copy_arms, source.id, x, *numbers))
            await leader.write(lambda database: _publish(database, x, wanted.name, new))
        except BaseException:
            with contextlib.suppress(RefusedError, LostError):
                await leader.write(lambda database: tables.bury(database, x))
                leader.purge_soon(wanted.name)
            raise
        return True


def _check_same(row: ExperimentRow, old: str, wanted: m.NewSeason) -> None:
    spec = msgspec.json.decode(row.spec, type=m.Spec | None)
    there = None if spec is None else spec.season
    if there is None or there != _asked_for(old, there.head, wanted):
        raise refuse(
            409, "exists", f"There is another experiment {row.name!r}. Choose another name."
        )


def _asked_for(old: str, head: int, wanted: m.NewSeason) -> m.Season:
    return m.Season(old, head, wanted.policy, wanted.horizon, wanted.seed)


def _publish(database: Database, x: int, name: str, new: _Begun) -> None:
    if new.keyed and tables.count_arms(database, x) != new.n_arms:
        raise unavailable("It was interrupted. Nothing was done: send it again.")
    columns = {
        "spec": new.spec,
        "state": "running",
        "version": __version__,
        "first_arms": new.n_arms,
        "n_arms": new.n_arms,
    }
    if not tables.begin_with(database, x, name, columns, (new.state, new.more), new.minute):
        if database.find(name) is None:  # another process led meanwhile, and cleaned up
            raise unavailable("It was interrupted. Nothing was done: send it again.")
        raise refuse(409, "exists", f"There is another experiment {name!r}. Choose another name.")


async def _in_a_process(service: Service, old: str, wanted: m.NewSeason) -> _Begun:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "manyarms.serve.seasons", old),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {_STORE: service.settings.store},
    )
    try:
        written, _ = await process.communicate(msgspec.json.encode(wanted))
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        raise unavailable("The season cannot be made; the log of the service says why.")
    outcome = msgspec.msgpack.decode(written, type=_Outcome)
    if outcome.begun is None:
        assert outcome.failure is not None
        raise RefusedError(outcome.failure)
    return outcome.begun


# In the process


def begin_season(database: Database, old: str, wanted: m.NewSeason) -> _Begun:
    """Return what a new experiment begins with that remembers an old one."""
    row = database.find(old)
    if row is None:
        raise unknown_experiment(old)
    game = Game.load(database, row)
    live = game.live
    if live is None:
        raise refuse(409, "no_arms", f"{old} has no arms yet. POST some to .../arms first.")
    named = game.spec.policy if wanted.policy is None else wanted.policy
    seed = live.seed if wanted.seed is None else wanted.seed
    with as_refusals():
        spec = msgspec.structs.replace(
            game.spec, policy=named, horizon=wanted.horizon, seed=seed, n_arms=live.arms.count
        )
        check_spec(spec)
        history = _history(database, row, game)
        new = next_season(live, history, policy_of(named), wanted.horizon, seed)
    state = snapshot(new)
    played = _played(state, new.policy)
    spec = msgspec.structs.replace(
        spec,
        horizon=new.horizon,
        n_arms=None if game.keyed else new.arms.count,
        season=_asked_for(old, game.head, wanted),
    )
    text = msgspec.json.encode(spec).decode()
    there = Game(row._replace(spec=text, head=0))
    there.live, there.remembered = played, state
    there.answered = {arm: tally.asked for arm, tally in played.tally.items() if tally.asked}
    return _Begun(row.id, text, game.keyed, new.arms.count, *there.snapshot(), _minute(played))


def _history(database: Database, row: ExperimentRow, game: Game) -> GameHistory:
    """Return all that happened, from the first event: it has the order of an arm's rewards."""
    first = database.snapshot(row.id, before=1)
    if first is not None:
        state = Game.remembered_in(first[2])
    else:
        state = snapshot(begun(game.spec, row.first_arms))
    events = [
        event
        for event in database.events(row.id, 0, most=row.head)
        if event.kind < EventKind.REPORTED
    ]
    return GameHistory([Contents(state, columns_of(events))])


def _played(state: bytes, policy: Policy) -> LiveGame:
    """Return the game of a snapshot after the pulls that observed rewards answer at once.

    Else the first ask would take minutes. A first copy goes one pull too far: it finds out how many
    they are.
    """
    ahead, count = restored(state, policy, "The season"), 0
    while ahead.stock and (ahead.horizon is None or ahead.pulls + 1 < ahead.horizon):
        pull = ahead.ask()
        if ahead.flying(pull.id) not in ahead.stock:
            break
        ahead.answer(pull.id)
        count += 1
    game = restored(state, policy, "The season")
    for _ in range(count):
        game.answer(game.ask().id)
    return game


def _minute(game: LiveGame) -> tuple[int, int, int, int, float, int] | None:
    if game.pulls == 0:
        return None
    fresh = sum(tally.asked > 0 for tally in game.tally.values())
    return int(clock.now() // 60), game.pulls, game.pulls, 0, tallies_of(game).facts.earned, fresh


def main(old: str) -> None:
    """Read what is wanted from the standard input, and write what came of it."""
    wanted = msgspec.json.decode(sys.stdin.buffer.read(), type=m.NewSeason)
    database = tables.opened(os.environ[_STORE])
    try:
        outcome = _Outcome(begun=begin_season(database, old, wanted))
    except RefusedError as error:
        outcome = _Outcome(failure=msgspec.convert(error.failure, m.Failure, from_attributes=True))
    except ReplayError as error:
        outcome = _Outcome(failure=m.Failure("replay", str(error), 503))
    finally:
        database.close()
    sys.stdout.buffer.write(msgspec.msgpack.encode(outcome))


if __name__ == "__main__":
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the service's, which ends us
    main(*sys.argv[1:])
