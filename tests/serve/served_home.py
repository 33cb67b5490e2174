"""An experiment of the service as a home of the random plays of `tests.live.promises`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import manyarms as ma
from tests.live.promises.homes import Home
from tests.serve.machines import TOKEN, InThread, new_name


class Served(Home):
    """An experiment that a node in this process serves.

    Left out are reward windows: the service ends them by its own clock, and only a timer does, so a
    tell after the end of a window is accepted, and a clock that is behind after a restart keeps
    windows open. Experiments are not deleted: late rewards of a deleted one are credited to its
    successor. Own policies cannot be served. Names are texts on the wire, so integers are left out.
    """

    is_remote = True
    without = frozenset({"window", "integers", "own"})

    def _begin(self) -> ma.Remote:
        self.name = new_name()
        self.node = self._node(self.new_path())
        settings = {k: v for k, v in self.spec.settings().items() if v is not None}
        settings["reward_range"] = self.spec.reward_range
        return ma.Remote.create(
            self._url, self.name, self.spec.policy_object(), token=TOKEN, **settings
        )

    def _node(self, path: Path) -> InThread:
        self.path = path
        return InThread(f"sqlite:///{path}").start()

    @property
    def _url(self) -> str:
        return f"http://{self.node.address}"

    def _remote(self) -> ma.Remote:
        return ma.Remote(self._url, self.name, token=TOKEN)

    def reopen(self, handle: Any) -> ma.Remote:
        handle.close()
        self.node.stop()
        self.node = self._node(self.path)
        return self._remote()

    def kill(self, handle: Any) -> ma.Remote:
        """Copy the files while the node runs, and serve the copy."""
        path = self.new_path()
        for end in ("-wal", ""):
            file = self.path.with_name(self.path.name + end)
            if file.exists():
                shutil.copy(file, path.with_name(path.name + end))
        handle.close()
        self.node.stop()
        self.node = self._node(path)
        return self._remote()

    def reader(self, handle: Any) -> ma.Remote:
        return self._remote()

    def end(self) -> None:
        self.node.stop()
