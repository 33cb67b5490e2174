"""Empty schemas of the shared PostgreSQL server."""

from __future__ import annotations

import uuid

from tests.serve.machines import shared_postgres


def new_address() -> str:
    """Return the address of an empty schema; skip the test without PostgreSQL."""
    import psycopg

    server, schema = shared_postgres(), f"t{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as link:
        link.execute(f"CREATE SCHEMA {schema}".encode())
    return f"{server}?options=-csearch_path%3D{schema}"
