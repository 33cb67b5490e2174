"""Where compiled code is kept, and when it is trusted.

Numba's own cache runs whatever it reads: the code of whoever can write to it, and code that a
disk has damaged. So ours lies in folders that only we can write to, in files with checksums.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from manyarms.core.files import UnsafeError, cache_root, private_folder, read_private, replace_file
from manyarms.errors import CacheWarning

_MAGIC = b"manyarms code 1\n"
_FOLDER = "compiled"
_OWN = "Set MANYARMS_CACHE to a folder of your own."
_warned: list[bool] = []  # not empty once the user was warned


def cache_directory(name: str) -> Path | None:
    """Return a folder for this digest that only we can write to, or None: no caching then.

    What is kept there are pickles: whoever can write to them can run code as us.
    """
    root = cache_root()
    if root is None:
        _warn(f"there is no home folder. {_OWN}")
        return None
    try:
        return private_folder(root, _FOLDER, name)
    except UnsafeError as error:
        _warn(f"{error} Or set MANYARMS_CACHE to a folder of your own.")
    except OSError as error:
        _warn(f"{error}. {_OWN}")
    return None


def has_code(name: str, loop: str) -> bool:
    """Whether something is kept for this digest and a loop of this name; nothing is created."""
    root = cache_root()
    return root is not None and any((root / _FOLDER / name).glob(f"{loop}-*.code"))


def _warn(reason: str) -> None:
    if not _warned:
        _warned.append(True)
        text = f"Compiled code is not kept, so every process waits for the compiler: {reason}"
        warnings.warn(text, CacheWarning, stacklevel=2)


def _parts_of(result: Any) -> tuple[Any, ...] | None:
    addresses = result.lifted or result.library.has_dynamic_globals
    return None if addresses else result._reduce()


class CodeCache:
    """The machine code of one loop on disk; it takes the place of Numba's own cache.

    A file is a line, a checksum, and what Numba pickled. Whatever is wrong with a file, the loop
    is compiled as if it were not there, and the file replaced. All this uses private names of
    Numba (docs/design.md). If one of them is gone, code is not kept, and a warning says so.

    Parameters
    ----------
    folder, loop
        From `cache_directory`; the function that is compiled.
    dumps, rebuild, reduce
        Numba's: they turn the parts of a result into bytes, parts into a result, and a result into
        parts; None for one that cannot be kept.
    """

    def __init__(
        self,
        folder: Path,
        loop: Any,
        dumps: Callable[[Any], bytes],
        rebuild: Callable[..., Any],
        reduce: Callable[[Any], tuple[Any, ...] | None] = _parts_of,
    ) -> None:
        self.cache_path = str(folder)
        self._folder, self._loop = folder, loop
        self._dumps, self._rebuild, self._reduce = dumps, rebuild, reduce

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return what was compiled for a signature; None if it is missing or damaged."""
        path = None
        try:
            target.refresh()
            path = self._path(signature, target.codegen())
            found, parts = pickle.loads(_opened(read_private(path)))
            if found == signature:
                return self._rebuild(target, *parts)
        except FileNotFoundError:
            return None
        except Exception:  # of any kind: what is wrong here must not end the process
            if path is not None:
                with contextlib.suppress(OSError):
                    path.unlink()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what was compiled, unless it holds addresses of this process."""
        try:
            parts = self._reduce(result)
            if parts is not None:
                body = self._dumps((signature, parts))
                replace_file(self._path(signature, result.codegen), _sealed(body), mode=0o600)
        except OSError as error:
            _warn(f"{error}. {_OWN}")
        except Exception as error:  # of any kind, as above
            _warn(f"this version of Numba is not known ({error!r}). Install an earlier one.")

    def _path(self, signature: Any, codegen: Any) -> Path:
        code = self._loop.__code__
        place = (self._loop.__module__, self._loop.__qualname__, code.co_firstlineno)
        what = (place, sys.implementation.cache_tag, codegen.magic_tuple(), signature)
        name = hashlib.sha256(repr(what).encode()).hexdigest()[:32]
        return self._folder / f"{self._loop.__name__}-{name}.code"


def _sealed(body: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(body).digest() + body


def _opened(data: bytes) -> bytes:
    body = data[len(_MAGIC) + hashlib.sha256().digest_size :]
    if data != _sealed(body):
        raise ValueError("damaged")
    return body
