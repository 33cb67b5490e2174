"""After any sequence of commands, the service answers like a handle."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import rule, run_state_machine_as_test

import manyarms as ma
from tests.client.comparison import plain
from tests.live.stateful import LONG, SHORT, ExperimentMachine
from tests.serve.machines import TOKEN, InThread, new_name


class Served(ExperimentMachine):
    """An experiment that a node serves; a new node continues it after a stop or a kill."""

    def __init__(self) -> None:
        super().__init__()
        self._node = self._begun(self.new_folder())

    def _begun(self, folder: Path) -> InThread:
        self._folder = folder
        return InThread(f"sqlite:///{folder}/serve.db").start()

    def _remote(self) -> ma.Remote:
        return ma.Remote(f"http://{self._node.address}", self._name, token=TOKEN)

    def begin(self, policy: ma.Policy, spec: dict[str, Any]) -> ma.Remote:
        self._name = new_name()
        given = {name: value for name, value in spec.items() if name != "now"}
        return ma.Remote.create(
            f"http://{self._node.address}", self._name, policy, token=TOKEN, **given
        )

    @rule()
    def observe(self) -> None:
        """The service counts pulls that observed rewards answer; a handle does not."""

    def reopened(self) -> ma.Remote:
        self._node.stop()
        self._node = self._begun(self._folder)
        return self._remote()

    def killed(self, torn: int) -> ma.Remote:
        files = [self._folder / f"serve.db{end}" for end in ("-wal", "")]
        folder = self.new_folder()
        for file in files:
            if file.exists():
                shutil.copy(file, folder)
        self._node.stop()
        self._node = self._begun(folder)
        return self._remote()

    def same(self, ours: Any, twins: Any) -> None:
        if isinstance(twins, Exception):
            assert isinstance(ours, type(twins)), (ours, twins)
        else:
            assert ours == twins

    def same_bytes(self) -> None:
        """Compare visible state by `repr`, because of NaNs."""
        assert repr(self.experiment.progress()) == repr(self.twin.progress())
        ours, twins = (
            sorted(plain(experiment.arms()), key=repr)
            for experiment in (self.experiment, self.twin)
        )
        assert repr(ours) == repr(twins)

    def end(self) -> None:
        self._node.stop()


@pytest.mark.patient
def test_random_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MANYARMS_TOKEN", TOKEN)
    run_state_machine_as_test(Served, settings=settings(SHORT, max_examples=3))


@pytest.mark.long
@pytest.mark.slow
def test_many_random_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MANYARMS_TOKEN", TOKEN)
    run_state_machine_as_test(Served, settings=settings(LONG, max_examples=60))
