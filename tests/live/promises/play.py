"""A play: an experiment, its model, and a twin, which get the same calls.

The twin is in memory, gets single calls where the experiment gets a batch or a list, and is never
read before the end, closed or loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import manyarms as ma
from tests.live.promises import promises
from tests.live.promises.answers import Answers, Handle, read
from tests.live.promises.homes import Home
from tests.live.promises.model import Model
from tests.live.promises.spec import POLICIES, Spec

AT_THE_END = 5  # pulls that the experiment and its twin are asked for at the end
Call = Callable[[Handle], Any]


class Play:
    """The state of a play, which `commands` change. Call `check` first, and after each of them."""

    answers: Answers

    def __init__(self, spec: Spec, home: Home) -> None:
        self.spec, self.home, self.model = spec, home, Model(spec)
        self.time = 1e9
        self.readers: list[Handle] = []
        self.was_read = False  # by a second handle
        self.handle = home.begin(spec, lambda: self.time)
        self.twin = home.twin()

    @property
    def finder(self) -> bool:
        return POLICIES[self.model.policy].finder

    @property
    def can_change(self) -> bool:
        """Whether arms may come and go."""
        return POLICIES[self.model.policy].changes

    def check(self) -> None:
        """Look, and check all promises."""
        self.answers = self.look()
        for promise in promises.ALWAYS:
            promise(self.model, self.answers)

    def look(self, handle: Handle | None = None) -> Answers:
        """Return the answers of a handle, which must not write anything."""
        before = self.events()
        try:
            answers = read(
                self.handle if handle is None else handle,
                finder=self.finder,
                epsilon=0.3 if self.spec.reward_range == (0.0, 1.0) else 3.0,
            )
        except ma.ManyarmsError as error:
            self.blame("a query", error)
        promises.queries_write_nothing(self.events() - before)
        return answers

    def events(self) -> int:
        """Return the number of recorded events."""
        return len(list(self.handle.events())) if self.home.is_recorded else 0

    def blame(self, call: str, error: Exception) -> Any:
        """Raise the promise that a failed call breaks."""
        if isinstance(error, ma.StoreError) and self.was_read:
            promises.queries_write_nothing(0, error)
        promises.calls_succeed(call, error)

    def both(self, name: str, whole: Call, pieces: Call | None = None) -> Any:
        """Make a call that must succeed, and on the twin the same in pieces."""
        try:
            answer = whole(self.handle)
        except ma.ManyarmsError as error:
            self.blame(name, error)
        self.on_twin(name, pieces or whole)
        return answer

    def on_twin(self, name: str, call: Call) -> None:
        """Make a call on the twin."""
        try:
            call(self.twin)
        except ma.ManyarmsError as error:
            promises.pieces_equal_the_whole("no error", repr(error), name)

    def refuse(self, name: str, call: Call, *, also_twin: bool = True) -> None:
        """Make a call that must be refused, and must change nothing."""
        before = self.look()
        for handle in (self.handle, self.twin) if also_twin else (self.handle,):
            try:
                call(handle)
            except ma.ManyarmsError:
                continue
            promises.wrong_calls_are_refused(name, False)
        after = self.look()
        promises.refused_calls_change_nothing(before.everything(), after.everything(), name)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, or set the clock back; the handle and the twin notice it."""
        self.time += seconds
        self.model.set_time(self.time)
        before = self.events()
        for handle in (self.handle, self.twin):
            try:
                _ = handle.pulls
            except ma.ManyarmsError as error:
                self.blame("a query", error)
        promises.queries_write_nothing(self.events() - before)

    def ask_singly(self, count: int) -> list[tuple[ma.Pull, bool]]:
        """Ask for some pulls, one by one; return them, and whether each is of the control."""
        pulls = []
        for _ in range(count):
            before = self.handle.progress().control_pulls
            pull = self.handle.ask()
            pulls.append((pull, self.handle.progress().control_pulls > before))
        return pulls

    def ask(self, count: int) -> None:
        """Ask for some pulls: on the twin one by one."""
        model, left = self.model, self.model.left
        try:
            if self.spec.shares_a_name and (left is None or count <= left):
                pulls = self.ask_singly(count)
            else:
                control = self.spec.control
                asked = self.handle.ask(count)
                pulls = [(p, control is not None and p.arm == control) for p in asked]
        except ma.TurnError:
            promises.promised_pulls_can_be_asked_for(left, count, True)
            return
        except ma.ManyarmsError as error:
            self.blame("ask", error)
        if len(pulls) != count:
            promises.calls_succeed("ask", ValueError(f"{len(pulls)} pulls instead of {count}"))
        for pull, is_control in pulls:
            promises.asks_return_available_arms(model, pull.arm, pull.id)
            model.add_pull(pull.arm, is_control=is_control, now=self.time)
        chosen = sum(not is_control for _, is_control in pulls)
        promises.promised_pulls_can_be_asked_for(left, chosen, False)
        self._ask_twin([(pull.id, pull.arm) for pull, _ in pulls])

    def _ask_twin(self, ours: list[tuple[int, Any]]) -> None:
        theirs: list[Any] = []
        try:
            for _ in ours:
                pull = self.twin.ask()
                theirs.append((pull.id, pull.arm))
        except ma.ManyarmsError as error:
            theirs.append(repr(error))
        name = "ask" if len(ours) == 1 else f"ask({len(ours)})"
        promises.pieces_equal_the_whole(theirs, ours, name)

    def finish(self) -> None:
        """Ask for some more pulls, and compare all answers with those of the twin."""
        if self.model.paused:
            self.handle.resume()
            self.model.paused = False
        left = self.model.left
        self.ask(AT_THE_END if left is None else min(AT_THE_END, left) or 1)
        self.check()
        ours, twin = self.answers, self.look(self.twin)
        if self.home.is_remote:  # texts name calls of the client, and arms have another order
            pieces, whole = ours.numbers(), twin.numbers()
        else:
            pieces, whole = ours.everything(), twin.everything()
        promises.pieces_equal_the_whole(whole, pieces, "the end")

    def close(self) -> None:
        """Close all handles."""
        for handle in (*self.readers, self.handle):
            handle.close()
        self.home.end()
