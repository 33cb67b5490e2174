"""Games that a service plays: the same methods as a handle's, over HTTP."""

from manyarms.client.async_remote import AsyncRemote
from manyarms.client.remote import Remote

__all__ = ["AsyncRemote", "Remote"]
