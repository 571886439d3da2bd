"""How deep kernels in kernels may go: a formula is followed by calls, and Python has room for a thousand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mercer.errors import InputError

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel

#: levels of kernels in kernels, each of which takes several calls
DEEPEST = 60


def require_shallow(kernel: Kernel) -> None:
    """Refuse a kernel of a kernel of a kernel … that is deeper; what is in two places counts once."""
    level = [kernel]
    for _ in range(DEEPEST):
        inner = {id(part): part for one in level for part in _parts_of(one)}
        if not inner:
            return
        level = list(inner.values())
    raise InputError(
        f"the kernel is made of kernels in kernels, more than {DEEPEST} deep: put equal steps together, or "
        "write a Kernel with the whole formula"
    )


def _parts_of(kernel: Kernel) -> list[Kernel]:
    """The kernels that one is made of, quickly where there are none."""
    from mercer.kernels.base import Kernel

    if type(kernel).children is not Kernel.children:
        return list(kernel.children().values())
    return [value for value in vars(kernel).values() if isinstance(value, Kernel)]
