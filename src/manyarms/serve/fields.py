"""Types of the fields in requests, with the limits that the API describes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from manyarms.live.checks import MOST_HORIZON, MOST_OF_A_NAME, MOST_REWARD
from manyarms.live.settings import MOST_SHARE, SHORTEST_WINDOW
from manyarms.store import LONGEST_ARM_NAME

MOST_PULLS = 10_000  # in one request
NO_NUL = r"^[^\u0000]*$"  # PostgreSQL cannot hold NUL in a text
LONGEST_KEY = 200  # characters of an Idempotency-Key


def described(**schema: Any) -> Meta:
    """Return a rule for the description of the API; another function checks it, with the value."""
    return Meta(extra_json_schema=schema)


Confidence = Annotated[float, described(exclusiveMinimum=0, exclusiveMaximum=1)]
PercentField = Annotated[str, described(pattern=r"^ *[0-9]+(\.[0-9]*)? *%$", maxLength=99)]
UnderHundred = Annotated[str, described(pattern=r"^ *(0\.[0-9]*)?[1-9][0-9]?(\.[0-9]*)? *%$")]
EpsilonField = Annotated[float, described(exclusiveMinimum=0)] | UnderHundred
PolicyField = Annotated[str, described(pattern=r"^[a-z0-9+-]+(\(.*\))?$", examples=["moss"])]
HorizonField = Annotated[int, Meta(ge=1), described(maximum=MOST_HORIZON)]
SeedField = Annotated[int, Meta(ge=0), described(maximum=2**64 - 1)]
RewardField = Annotated[float, described(minimum=-MOST_REWARD, maximum=MOST_REWARD)]
TextField = Annotated[str, described(minLength=1, maxLength=LONGEST_ARM_NAME, pattern=NO_NUL)]
ArmField = TextField | int
TargetField = float | Literal["control"]
WindowField = Annotated[float, described(minimum=SHORTEST_WINDOW)]
ControlShare = Annotated[float, described(exclusiveMinimum=0, maximum=MOST_SHARE)]
RewardName = Annotated[str, described(maxLength=MOST_OF_A_NAME)]
QuantileField = Annotated[float, described(minimum=0, exclusiveMaximum=1)]
MarginField = Annotated[float, described(minimum=0)] | PercentField
