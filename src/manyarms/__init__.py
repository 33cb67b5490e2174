"""Bandits with more arms than time.

The policies of *On Regret with Multiple Best Arms* (Zhu & Nowak, NeurIPS 2020), usable live and
in a simulator whose cost per pull does not depend on the number of arms.
"""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# The module of each name; errors are in `errors`. A module is imported on first use, so that
# `import manyarms` is fast and never imports numba.
_MODULES = {
    "advise": "advice",
    "Result": "simulation",
    "Summary": "simulation",
    "simulate": "simulation",
    "ArmEstimate": "inference",
    "Progress": "inference",
    "StopVerdict": "inference",
    "Uplift": "inference",
    "Live": "live",
    "Pull": "live",
    "SyncedArms": "live",
    "load": "live",
    "Doubling": "policies",
    "EmpMOSSPlusPlus": "policies",
    "Guarded": "policies",
    "MOSS": "policies",
    "MOSSOracle": "policies",
    "MOSSPlusPlus": "policies",
    "Parallel": "policies",
    "Patience": "policies",
    "Prospector": "policies",
    "Quantile": "policies",
    "Scout": "policies",
    "Policy": "protocol",
    "plain_policy": "protocol",
    "policy": "protocol",
    "policy_names": "protocol",
    "register": "protocol",
    "AsyncRemote": "client",
    "Remote": "client",
    "Problem": "theory",
    "best_arms": "theory",
    "hardness": "theory",
    "miss_probability": "theory",
}

__all__ = [
    "MOSS",
    "ArmEstimate",
    "AsyncRemote",
    "CompilationError",
    "ContestFileError",
    "ContestNotFoundError",
    "CopyError",
    "Doubling",
    "DownloadError",
    "DuplicateNameError",
    "EmpMOSSPlusPlus",
    "Guarded",
    "Live",
    "MOSSOracle",
    "MOSSPlusPlus",
    "ManyarmsError",
    "MissingExtraError",
    "Parallel",
    "ParameterError",
    "PathError",
    "PathNotFoundError",
    "Patience",
    "Policy",
    "Problem",
    "Progress",
    "Prospector",
    "Pull",
    "Quantile",
    "Remote",
    "Result",
    "SavedFileError",
    "Scout",
    "ServiceError",
    "StopVerdict",
    "StoppedError",
    "StoreError",
    "Summary",
    "SyncedArms",
    "TurnError",
    "UnknownArmError",
    "UnknownNameError",
    "Uplift",
    "advise",
    "best_arms",
    "errors",
    "hardness",
    "instances",
    "kit",
    "load",
    "miss_probability",
    "plain_policy",
    "policies",
    "policy",
    "policy_names",
    "register",
    "simulate",
    "simulation",
    "theory",
]

if TYPE_CHECKING:
    from manyarms import errors, instances, kit, policies, simulation, theory
    from manyarms.advice import advise
    from manyarms.client import AsyncRemote, Remote
    from manyarms.errors import (
        CompilationError,
        ContestFileError,
        ContestNotFoundError,
        CopyError,
        DownloadError,
        DuplicateNameError,
        ManyarmsError,
        MissingExtraError,
        ParameterError,
        PathError,
        PathNotFoundError,
        SavedFileError,
        ServiceError,
        StoppedError,
        StoreError,
        TurnError,
        UnknownArmError,
        UnknownNameError,
    )
    from manyarms.inference import ArmEstimate, Progress, StopVerdict, Uplift
    from manyarms.live import Live, Pull, SyncedArms, load
    from manyarms.policies import (
        MOSS,
        Doubling,
        EmpMOSSPlusPlus,
        Guarded,
        MOSSOracle,
        MOSSPlusPlus,
        Parallel,
        Patience,
        Prospector,
        Quantile,
        Scout,
    )
    from manyarms.protocol import Policy, plain_policy, policy, policy_names, register
    from manyarms.simulation import Result, Summary, simulate
    from manyarms.theory import Problem, best_arms, hardness, miss_probability


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_hint(name)}")
    module = "errors" if name.endswith("Error") else _MODULES.get(name)
    if module is None:  # the name is a module's, such as `theory`
        return importlib.import_module(f"{__name__}.{name}")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)


def _hint(name: str) -> str:
    """Return where a policy is that has no name here; "" if there is no such policy."""
    if not name[:1].isupper():
        return ""
    policies = importlib.import_module(f"{__name__}.policies")
    if name not in policies.__all__:
        return ""
    by_name = getattr(getattr(policies, name), "name", None)
    made = f"ma.policy({json.dumps(by_name)}) or " if isinstance(by_name, str) else ""
    return f". Use {made}ma.policies.{name}"


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
