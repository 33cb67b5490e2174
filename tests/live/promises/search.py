"""Play random sequences of commands, and shorten those that break a promise."""

from __future__ import annotations

import random
import re
import tempfile
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from tests.live.promises.commands import Command, random_command
from tests.live.promises.homes import Home
from tests.live.promises.play import Play
from tests.live.promises.promises import BrokenError
from tests.live.promises.spec import Spec, random_spec, simpler_specs

LONGEST = 40  # commands
_QUOTED = r"'[^']*'|\"[^\"]*\"|\([^)]*\)|\[[^]]*\]|\{[^}]*\}"
_VALUES = re.compile(rf"{_QUOTED}|[-\d.e]*\d|nan|inf|None|True|False")
_FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None


@dataclass
class Failure:
    """A sequence that breaks a promise."""

    spec: Any
    commands: list[Any]
    broken: BrokenError
    seed: int = -1

    @property
    def kind(self) -> tuple[str, str]:
        """The promise, and the complaint without names and numbers."""
        return self.broken.promise, _VALUES.sub("_", self.broken.complaint)[:60]

    def __str__(self) -> str:
        plain = {field.name: field.default for field in fields(self.spec)}
        changed = [f"{k}={v!r}" for k, v in vars(self.spec).items() if v != plain[k]]
        return "\n    ".join(
            [f"{self.broken} (seed {self.seed})", ", ".join(changed), *map(repr, self.commands)]
        )


PlayAll = Callable[[Any, list[Any]], Failure | None]


class Game(NamedTuple):
    """How to draw, to play and to simplify sequences."""

    draw: Callable[[random.Random], tuple[Any, list[Any]]]
    play: PlayAll
    simpler: Callable[[Any], list[dict[str, Any]]]


def play_in(new_home: Callable[[Path], Home]) -> PlayAll:
    """Return a function that plays a sequence in a home, and returns its failure."""

    def play_all(spec: Spec, commands: list[Command]) -> Failure | None:
        done: list[Command] = []
        with tempfile.TemporaryDirectory(dir=_FOLDER) as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a clock that goes back is reported
            home = new_home(Path(folder))
            play = Play(spec, home)
            try:
                play.check()
                for command in commands:
                    done.append(command)
                    command.apply(play)
                    play.check()
                play.finish()
            except BrokenError as broken:
                return Failure(spec, done, broken)
            finally:
                play.close()
        return None

    return play_all


def shortened(failure: Failure, game: Game) -> Failure:
    """Delete commands and settings while the same promise is broken in the same way."""

    def still(spec: Any, commands: list[Any]) -> Failure | None:
        again = game.play(spec, commands)
        same = again is not None and again.kind == failure.kind
        return replace(again, seed=failure.seed) if again is not None and same else None

    shortest, size = failure, max(1, len(failure.commands) // 2)
    while size:
        start = 0
        while start < len(shortest.commands):
            fewer = shortest.commands[:start] + shortest.commands[start + size :]
            again = still(shortest.spec, fewer)
            if again is None:
                start += size
            else:
                shortest = again
        size //= 2
    for change in game.simpler(shortest.spec):
        again = still(replace(shortest.spec, **change), shortest.commands)
        if again is not None:
            return shortened(again, game)
    return shortest


def commands_in(new_home: Callable[[Path], Home]) -> Game:
    """Return the game of random calls on an experiment in a home."""

    def draw(dice: random.Random) -> tuple[Spec, list[Command]]:
        home = new_home(Path())
        spec = random_spec(dice, home.without)
        count = dice.randint(5, LONGEST)
        return spec, [random_command(dice, spec, home) for _ in range(count)]

    return Game(draw, play_in(new_home), simpler_specs)


def search(game: Game, seeds: Iterable[int]) -> dict[tuple[str, str], Failure]:
    """Play a random sequence for each seed; return a short failure of each kind."""
    failures: dict[tuple[str, str], Failure] = {}
    for seed in seeds:
        spec, commands = game.draw(random.Random(seed))
        failure = game.play(spec, commands)
        if failure is not None and failure.kind not in failures:
            failure = replace(failure, seed=seed)
            failures[failure.kind] = shortened(failure, game)
    return failures


def check(game: Game, seeds: Iterable[int]) -> None:
    """Raise if a random sequence breaks a promise; the message has the shortest ones."""
    failures = search(game, seeds)
    assert not failures, "\n".join(map(str, failures.values()))
