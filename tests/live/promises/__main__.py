"""Play random sequences, and print the shortest failure of each kind."""

from __future__ import annotations

import argparse
import logging

from tests.live.promises import arrivals, homes, search, shop

_GAMES = {
    "memory": search.commands_in(homes.Home),
    "recorded": search.commands_in(homes.Recorded),
    "postgres": search.commands_in(homes.InPostgres),
    "shop": shop.GAME,
    "arrivals": arrivals.GAME,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("game", choices=_GAMES)
    parser.add_argument("first", type=int, help="the first seed")
    parser.add_argument("end", type=int, help="the seed after the last one")
    options = parser.parse_args()
    logging.getLogger("manyarms").setLevel(logging.ERROR)  # clocks that go back are reported
    seeds = range(options.first, options.end)
    for failure in search.search(_GAMES[options.game], seeds).values():
        print(failure, end="\n\n")  # noqa: T201


if __name__ == "__main__":
    main()
