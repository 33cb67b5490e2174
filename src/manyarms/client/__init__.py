"""Clients of the service, with most methods of a handle."""

from manyarms.client.async_remote import AsyncRemote
from manyarms.client.remote import Remote

__all__ = ["AsyncRemote", "Remote"]
