"""mercer: learning with kernels.

Data → kernel → Gram matrix → learning algorithm → f(x) = Σ αᵢ k(xᵢ, x) + b.

The public names stand in ``__init__.pyi``, each with its module. Estimators, kernels with compiled code
of their own, and the modules beside them (``mercer.geometry``, ``mercer.plots``, …) are loaded when they
are first used, so that ``import mercer`` stays quick.
"""

import ast
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import mercer.runtime.clock  # first of all, so that it knows when a process began
import mercer.runtime.start  # noqa: F401  before what it makes quicker

__version__ = "0.7.0.dev0"

#: each public name, and the module that it is imported from
_HOMES = {
    name.name: str(line.module)
    for line in ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8")).body
    if isinstance(line, ast.ImportFrom)
    for name in line.names
}
#: modules that are there after ``import mercer``, and loaded when they are asked for
_MODULES = tuple(name for name, home in _HOMES.items() if home == __name__)
#: modules that are loaded at once: a Gram, what is made of it, and kernels that no compiled code belongs to
_AT_ONCE = (
    "certify",
    "expansion",
    "kernels.objects",
    "kernels.spectral.density",
    "kernels.spectral.radial",
    "kernels.vectors.dotproduct",
    "kernels.vectors.histogram",
    "kernels.vectors.mixture",
    "kernels.vectors.stationary",
)
for _home in _AT_ONCE:
    import_module(f"mercer.{_home}")
#: names that are loaded when they are first used
_LATER = {name: home for name, home in _HOMES.items() if home not in sys.modules}

__all__ = sorted(_HOMES.keys() - _MODULES, key=lambda name: (name.islower(), name))

# ``certify`` stays the module, which may be called like the function of its name.
globals().update(
    {name: getattr(sys.modules[_HOMES[name]], name) for name in __all__ if name not in {*_LATER, "certify"}}
)


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    if name in _MODULES:
        return import_module(f"mercer.{name}")
    raise AttributeError(f"module 'mercer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
