r"""What BLAS and LAPACK do in place, on parts of an array, as the tiles of a factorisation.

NumPy and SciPy copy a submatrix before BLAS sees it, or write its product to new memory. Here
SciPy's own BLAS is called by address, on views of Fortran-ordered arrays (a column is contiguous).

NumPy and SciPy bring a BLAS each, with threads each, and the threads of one keep spinning for some 20 ms
after its last product: a loop of small products must stay with one of the two, or run at a fraction of its
speed.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

#: By NumPy's letter for the type: its name would take longer to find than a small product takes.
_PREFIX = {"d": ("d", ctypes.c_double), "f": ("s", ctypes.c_float)}


@cache
def _function(name: str, arguments: int) -> Any:
    from scipy.linalg import cython_blas, cython_lapack

    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    title = ctypes.pythonapi.PyCapsule_GetName
    title.restype, title.argtypes = ctypes.c_char_p, [ctypes.py_object]
    capsule = (cython_blas.__pyx_capi__ | cython_lapack.__pyx_capi__)[name]
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(address(capsule, title(capsule)))


def _call(name: str, dtype: Any, *arguments: Any) -> None:
    """BLAS takes everything by reference: letters, sizes (int), factors (float), strided matrices."""
    prefix, real = _PREFIX[np.dtype(dtype).char]
    cells: list[Any] = []
    for value in arguments:
        if isinstance(value, np.ndarray):
            assert value.dtype == dtype and (value.strides[0] == value.itemsize or len(value) == 1)
            stride = value.strides[1] // value.itemsize if value.shape[1] > 1 else max(1, value.shape[0])
            cells += [ctypes.c_void_p(value.ctypes.data), ctypes.byref(ctypes.c_int(stride))]
        elif isinstance(value, bytes):
            cells.append(ctypes.byref(ctypes.c_char(value)))
        elif isinstance(value, int):
            cells.append(ctypes.byref(ctypes.c_int(value)))
        elif isinstance(value, ctypes.c_int):  # LAPACK writes its status there
            cells.append(ctypes.byref(value))
        else:
            cells.append(ctypes.byref(real(value)))
    _function(prefix + name, len(cells))(*cells)


def symmetric_product(A: np.ndarray, V: np.ndarray) -> np.ndarray:  # (n, n), (n, k) → (n, k)
    """A V for a symmetric A of which only the lower triangle is read."""
    out = np.empty(V.shape, A.dtype, order="F")
    _call("symm", A.dtype, b"L", b"L", *V.shape, 1.0, A, V, 0.0, out)
    return out


def subtract_rank_two(A: np.ndarray, V: np.ndarray, W: np.ndarray) -> None:  # (n, n), (n, k), (n, k)
    """A -= V Wᵀ + W Vᵀ in the lower triangle."""
    _call("syr2k", A.dtype, b"L", b"N", *V.shape, -1.0, V, W, 1.0, A)


def product(
    A: np.ndarray, B: np.ndarray, transpose: bool = False, out: np.ndarray | None = None
) -> np.ndarray:
    """A B, or Aᵀ B; into ``out`` when it is given."""
    inner, outer = A.shape if transpose else A.shape[::-1]
    if out is None:
        out = np.empty((outer, B.shape[1]), A.dtype, order="F")
    letter = b"T" if transpose else b"N"
    _call("gemm", A.dtype, letter, b"N", *out.shape, inner, 1.0, A, B, 0.0, out)
    return out


def multiply_triangle(A: np.ndarray, T: np.ndarray, upper: bool, side: str = "right") -> None:
    """A ← A Tᵀ, or on the left TᵀA, T lower or upper triangular."""
    letters = b"L" if side == "left" else b"R", b"U" if upper else b"L"
    _call("trmm", A.dtype, *letters, b"T", b"N", *A.shape, 1.0, T, A)


def add_product(C: np.ndarray, factor: float, A: np.ndarray, B: np.ndarray, transpose: bool = False) -> None:
    """C += factor · A B, or Aᵀ B."""
    letter = b"T" if transpose else b"N"
    if C.size and len(B):
        _call("gemm", C.dtype, letter, b"N", *C.shape, len(B), float(factor), A, B, 1.0, C)


def subtract_product(
    C: np.ndarray, A: np.ndarray, B: np.ndarray, transpose_first: bool = False, transpose_second: bool = False
) -> None:
    """C -= A B, with either transposed or not."""
    letters = b"T" if transpose_first else b"N", b"T" if transpose_second else b"N"
    inner = A.shape[0] if transpose_first else A.shape[1]
    if C.size and inner:
        _call("gemm", C.dtype, *letters, *C.shape, inner, -1.0, A, B, 1.0, C)


def subtract_square(C: np.ndarray, A: np.ndarray) -> None:  # (n, n), (n, k)
    """C -= A Aᵀ in the lower triangle."""
    if A.size:
        _call("syrk", C.dtype, b"L", b"N", *A.shape, -1.0, A, 1.0, C)


def add_square(C: np.ndarray, A: np.ndarray) -> None:  # (n, n), (k, n)
    """C += AᵀA in the lower triangle."""
    if A.size:
        _call("syrk", C.dtype, b"L", b"T", *A.shape[::-1], 1.0, A, 1.0, C)


def solve_triangle(
    L: np.ndarray, B: np.ndarray, side: str = "left", transpose: bool = False, factor: float = 1.0
) -> None:
    """B ← factor · L⁻¹ B, or on the right B L⁻¹, of a lower triangular L; L⁻ᵀ instead with ``transpose``."""
    letters = b"L" if side == "left" else b"R", b"L", b"T" if transpose else b"N", b"N"
    if B.size:
        _call("trsm", B.dtype, *letters, *B.shape, factor, L, B)


def inverse_in_place(L: np.ndarray) -> None:  # (n, n)
    """The lower triangle of L becomes that of (LLᵀ)⁻¹."""
    if L.size:
        _call("potri", L.dtype, b"L", len(L), L, ctypes.c_int(0))


def invert_triangle(L: np.ndarray) -> None:  # (n, n)
    """The lower triangle of L becomes that of L⁻¹."""
    _call("trtri", L.dtype, b"L", b"N", len(L), L, ctypes.c_int(0))


def square_triangle(L: np.ndarray) -> None:  # (n, n)
    """The lower triangle of L becomes that of LᵀL."""
    _call("lauum", L.dtype, b"L", len(L), L, ctypes.c_int(0))


def cholesky_in_place(A: np.ndarray) -> int:  # (n, n)
    """The lower triangle of A becomes L with A = LLᵀ; the order of the first minor that is not positive."""
    info = ctypes.c_int(0)
    if A.size:
        _call("potrf", A.dtype, b"L", len(A), A, info)
    return info.value
