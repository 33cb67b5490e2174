"""Addresses of databases: what is said of them has no secrets."""

from __future__ import annotations

import pytest

import manyarms as ma
from manyarms.live.databases import database_of


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:s3cret@db/arms",
        "postgresql://ann:s3/cr@et:s3cret@db/arms",
        "postgresql://db/arms?user=ann&password=s3cret",
        "postgresql://db/arms?pass%77ord=s3cret",
        "postgresql://db/arms?sslpassword=s3cret&sslmode=require",
        "postgresql://db/arms?options=-c%20app.key=s3cret",
        "postgresql://db/arms?s3cret",
    ],
)
def test_no_password_is_shown(url: str) -> None:
    assert "s3cret" not in str(database_of(url))
    assert str(database_of(url)).startswith("postgresql://db/arms")
    with pytest.raises(ma.ParameterError, match="`store` must be") as caught:
        database_of(url.replace("postgresql", "postgress"))
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["sqlite:///:memory:", "sqlite:///", "sqlite://", "sqlite:///:memory:?sync=never"]
)
def test_a_database_that_forgets_is_refused(url: str) -> None:
    with pytest.raises(ma.ParameterError, match="`store` must be sqlite:///FILE"):
        database_of(url)
