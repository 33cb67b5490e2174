"""Statistics of an experiment's arms that are valid at any time.

    confidence_sequences   confidence intervals valid at any time, for all arms at once
    facts, tallies         what is known: a few facts, and columns with a row for each arm tried
    estimates              estimates of arms and progress, which print as sentences
    question               what a verdict is asked
    verdict                whether to stop; sample, outlook and missing are its parts
    uplift                 how much better the recommended arm is than the control
    lost_rewards           whether pulls without a reward could make a verdict wrong
    uneven_losses          whether pulls of some arms are abandoned more often than others
    reported               whether only the best rewards are told, or late ones differ

Nothing here needs an experiment object: `live` and `serve` hand over columns and facts.
"""

from manyarms.inference.estimates import ArmEstimate, Progress
from manyarms.inference.uplift import Uplift
from manyarms.inference.verdict import StopVerdict

__all__ = ["ArmEstimate", "Progress", "StopVerdict", "Uplift"]
