"""Statistics of an experiment's arms that are valid at any time.

    confidence_sequences   confidence intervals that hold at all times at once, for all arms
    facts, tried_arms      facts about an experiment, and columns of statistics of the tried arms
    estimates              estimates of arms and progress, printable as text
    question               the question of a verdict: target, tolerance and confidence
    verdict                whether to stop; its docstring has the proof
    judging, sample        the decision
    explanation            the texts of a verdict, with missing, outlook and next_steps
    uplift                 comparison of the recommended arm with the control
    lost_rewards           warning if missing rewards could make a verdict wrong
    uneven_losses          arms whose pulls are abandoned more often than those of others
    delays                 whether rewards depend on how long they take
    reported               warnings if reported rewards look incomplete or biased

Nothing here needs an experiment object: `live` and `serve` pass columns and facts.
"""

from manyarms.inference.estimates import ArmEstimate, Progress
from manyarms.inference.uplift import Uplift
from manyarms.inference.verdict import StopVerdict

__all__ = ["ArmEstimate", "Progress", "StopVerdict", "Uplift"]
