"""Query parameters, as types."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from manyarms.inference.question import CONFIDENCE
from manyarms.serve.fields import MOST_PULLS, NO_NUL, Confidence, described
from manyarms.store import LONGEST_EXPERIMENT_NAME

_Text = Annotated[str, described(pattern=NO_NUL)]


class NoQuery(Struct, forbid_unknown_fields=True):
    """No parameters."""


class AnyQuery(Struct):
    """Any parameters; they are ignored."""


class ListQuery(Struct, forbid_unknown_fields=True):
    """Where a page of the list begins."""

    cursor: Annotated[_Text, Meta(max_length=LONGEST_EXPERIMENT_NAME)] = ""


class EventsQuery(Struct, forbid_unknown_fields=True):
    """Which events to return."""

    after: Annotated[int, Meta(ge=0, le=1 << 60)] = 0
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1000


class ArmsQuery(Struct, forbid_unknown_fields=True):
    """Which arms to return."""

    search: Annotated[_Text, Meta(max_length=1000)] = ""
    sort: Literal["low", "estimate", "pulls", "told", "arm"] = "low"
    cursor: Annotated[str, described(pattern="^[0-9]{0,18}$")] = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50


class SyncQuery(Struct, forbid_unknown_fields=True):
    """Whether to count the changes without making them."""

    preview: bool = False


class LeadersQuery(Struct, forbid_unknown_fields=True):
    """How many arms to return."""

    k: Annotated[int, Meta(ge=1, le=1000)] = 20


class UpliftQuery(Struct, forbid_unknown_fields=True):
    """The confidence of the interval."""

    confidence: Confidence = CONFIDENCE


class PendingQuery(Struct, forbid_unknown_fields=True):
    """How many of the oldest pending pulls to return."""

    limit: Annotated[int, Meta(ge=1, le=MOST_PULLS)] = 20
