"""Games that a service plays: the same methods as a handle's, over HTTP."""

from manyarms.remote.async_remote import AsyncRemote
from manyarms.remote.remote import Remote

__all__ = ["AsyncRemote", "Remote"]
