"""How Numba compiles a loop: the functions it calls are optimized only together with the loop.

Numba would optimize each function together with all that it calls, and again in each caller. That
takes half of the compile time of Prospector (21 s instead of 10), and does not make pulls faster.
Numba has no option to turn it off, so private steps of Numba are skipped here. A Numba without
these steps compiles in its usual way. docs/design.md lists these and other private names in use.
"""

from __future__ import annotations

import functools
from typing import Any

_STEPS = ("_optimize_final_module", "_finalize_final_module", "_ensure_finalized")
_VERSIONS = (0, 62), (0, 68)  # the first and the last version of Numba with which this was tested
_PRIVATE_OPTIONS = ("_nrt", "no_cfunc_wrapper")  # without them compilation is slower


def part_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return options for a function that is compiled as a part of the loops that call it.

    Its own options say whether it is to be inlined. Numba lets callees inherit that, and compiles a
    function again for callers with other options; so all parts are given the same ones, and the
    compiler knows which it must not inline.
    """
    options = _known(options)
    if not _has_steps():
        return options
    inlined = bool(options.get("forceinline"))
    return {**options, "forceinline": True, "pipeline_class": _part_compiler(inlined)}


def whole_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return options for a loop, which is optimized twice: some pulls are 2 to 4 % faster."""
    options = _known(options)
    return {**options, "pipeline_class": _whole_compiler()} if _has_steps() else options


def _known(options: dict[str, Any]) -> dict[str, Any]:
    """Leave out private options that this version of Numba does not have and would refuse."""
    gone = [name for name in _PRIVATE_OPTIONS if not _has_option(name)]
    return {name: value for name, value in options.items() if name not in gone}


def _has_option(name: str) -> bool:
    from numba.core.cpu import CPUTargetOptions

    return hasattr(CPUTargetOptions, name)


def _has_steps() -> bool:
    from numba import version_info
    from numba.core.codegen import JITCodeLibrary

    first, last = _VERSIONS
    tried = first <= tuple(version_info.short) <= last
    return tried and all(hasattr(JITCodeLibrary, name) for name in _STEPS)


@functools.cache
def _part_compiler(inlined: bool) -> Any:
    """Return a compiler that leaves all optimization, and machine code, to the loop."""
    from numba.core.codegen import JITCodeLibrary

    class Part(JITCodeLibrary):
        def add_ir_module(self, module: Any) -> None:
            if not inlined:
                for function in module.functions:
                    function.attributes.discard("alwaysinline")
            super().add_ir_module(module)

        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0

        @property
        def codegen(self) -> Any:
            return self  # for `set_env`

        def set_env(self, name: str, environment: Any) -> None:
            pass  # there is no machine code yet; the loop does it

    return _compiler_into(Part)


@functools.cache
def _whole_compiler() -> Any:
    from numba.core.codegen import JITCodeLibrary
    from numba.core.environment import lookup_environment

    class Whole(JITCodeLibrary):
        def _optimize_final_module(self) -> None:
            super()._optimize_final_module()
            super()._optimize_final_module()

        def get_pointer_to_function(self, name: str) -> Any:
            """Add the Python objects of parts, without which a part that prints never returns."""
            pointer = super().get_pointer_to_function(name)
            for one in self._final_module.global_variables:
                known = lookup_environment(one.name) if "NumbaEnv" in one.name else None
                if known is not None:
                    self.codegen.set_env(one.name, known)
            return pointer

    return _compiler_into(Whole)


def _compiler_into(library: Any) -> Any:
    """Return a compiler whose code goes into a library of this class."""
    from numba.core.compiler import Compiler

    class CompilerInto(Compiler):
        def define_pipelines(self) -> Any:
            state = self.state
            state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()  # so that the cache can keep it
            return super().define_pipelines()

    return CompilerInto
