"""Bandits with more arms than time.

The policies of *On Regret with Multiple Best Arms* (Zhu & Nowak, NeurIPS 2020), usable live and
in a simulator whose cost per pull does not depend on the number of arms.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Loaded on first use: `import manyarms` costs next to nothing, and never imports numba.
_HOME = {
    "ArmEstimate": "live",
    "AsyncRemote": "remote",
    "Advice": "advice",
    "MissingExtraError": "errors",
    "DownloadError": "errors",
    "ContestNotFoundError": "errors",
    "ContestFileError": "errors",
    "CompilationError": "errors",
    "PathNotFoundError": "errors",
    "PathError": "errors",
    "CopyError": "errors",
    "Doubling": "policies",
    "DuplicateNameError": "errors",
    "EmpMOSSPlusPlus": "policies",
    "Guarded": "policies",
    "HybridMOSSPlusPlus": "policies",
    "GameHistory": "live",
    "InMemory": "live",
    "Journal": "live",
    "Live": "live",
    "MOSS": "policies",
    "MOSSOracle": "policies",
    "MOSSPlusPlus": "policies",
    "ManyarmsError": "errors",
    "Parallel": "policies",
    "Patience": "policies",
    "ParameterError": "errors",
    "Policy": "protocol",
    "Problem": "theory",
    "Progress": "live",
    "Prospector": "policies",
    "Pull": "live",
    "Quantile": "policies",
    "Remote": "remote",
    "Result": "lab",
    "SavedFileError": "errors",
    "Scout": "policies",
    "ServiceError": "errors",
    "StoppedError": "errors",
    "StoreError": "errors",
    "Summary": "lab",
    "TurnError": "errors",
    "UnknownArmError": "errors",
    "UnknownNameError": "errors",
    "StopVerdict": "live",
    "advise": "advice",
    "best_arms": "theory",
    "hardness": "theory",
    "instances": "",
    "plain_policy": "protocol",
    "kit": "",
    "miss_probability": "theory",
    "policies": "",
    "policy": "protocol",
    "policy_names": "protocol",
    "recorded": "live",
    "register": "protocol",
    "replay": "lab",
    "simulate": "lab",
    "theory": "",
}

__all__ = [
    "MOSS",
    "Advice",
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
    "GameHistory",
    "Guarded",
    "HybridMOSSPlusPlus",
    "InMemory",
    "Journal",
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
    "TurnError",
    "UnknownArmError",
    "UnknownNameError",
    "advise",
    "best_arms",
    "hardness",
    "instances",
    "kit",
    "miss_probability",
    "plain_policy",
    "policies",
    "policy",
    "policy_names",
    "recorded",
    "register",
    "replay",
    "simulate",
    "theory",
]

if TYPE_CHECKING:
    from manyarms import instances, kit, policies, theory
    from manyarms.advice import Advice, advise
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
    from manyarms.lab import Result, Summary, replay, simulate
    from manyarms.live import (
        ArmEstimate,
        GameHistory,
        InMemory,
        Journal,
        Live,
        Progress,
        Pull,
        StopVerdict,
        recorded,
    )
    from manyarms.policies import (
        MOSS,
        Doubling,
        EmpMOSSPlusPlus,
        Guarded,
        HybridMOSSPlusPlus,
        MOSSOracle,
        MOSSPlusPlus,
        Parallel,
        Patience,
        Prospector,
        Quantile,
        Scout,
    )
    from manyarms.protocol import Policy, plain_policy, policy, policy_names, register
    from manyarms.remote import AsyncRemote, Remote
    from manyarms.theory import Problem, best_arms, hardness, miss_probability


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if not _HOME[name]:
        return importlib.import_module(f"{__name__}.{name}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
