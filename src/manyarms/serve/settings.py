"""Settings of an experiment that may be changed while it runs: those that change no pull.

They say when an arm is good enough.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from manyarms.inference.question import check_setting
from manyarms.serve.errors import as_refusals
from manyarms.serve.experiment import Experiment
from manyarms.serve.game import check_goal
from manyarms.serve.messages import Changes, Spec


def change_settings(experiment: Experiment, changes: Changes) -> None:
    """Change what is given; it joins the next commit."""
    given = {
        name: value for name, value in msgspec.structs.asdict(changes).items() if value is not UNSET
    }
    spec = msgspec.structs.replace(experiment.spec, **given)
    with as_refusals():
        check_setting(spec.epsilon, spec.reward_range)
        check_goal(spec)
    experiment.given = msgspec.structs.replace(experiment.given, **given)
    experiment.spec = spec
    experiment.look.judge_anew()
    experiment.touch().columns["spec"] = msgspec.json.encode(experiment.given).decode()


def same_but_settings(theirs: Spec, ours: Spec) -> bool:
    """Whether two specs are of one experiment: settings may have been changed since."""
    left = {name: getattr(ours, name) for name in Changes.__struct_fields__}
    return msgspec.structs.replace(theirs, **left) == ours
