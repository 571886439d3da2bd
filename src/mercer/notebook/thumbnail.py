r"""A small matrix as a picture: a PNG file inside of an HTML attribute, one pixel for each entry.

Values that are all positive go from dark blue to yellow, growing evenly in lightness; values of both signs
from purple through white to brown. Both maps are read by people with any colour vision.
"""

from __future__ import annotations

import base64
import struct
import zlib
from html import escape

import numpy as np

_SIDE_IN_PIXELS = 170  # pixels of the page for the longer side
#: colours at equal steps, from the lowest value to the highest
_ONE_SIGN = ("00224e", "2a3f6d", "575d6d", "7d7c78", "a59c74", "d2c060", "fee838")
_TWO_SIGNS = ("542788", "998ec3", "d8daeb", "f7f7f7", "fee0b6", "f1a340", "b35806")


def thumbnail(K: np.ndarray, label: str) -> str:
    """An image element for the matrix, with a text for those who do not see it."""
    scale = _SIDE_IN_PIXELS / max(K.shape)
    size = f'width="{max(1, round(scale * K.shape[1]))}" height="{max(1, round(scale * K.shape[0]))}"'
    data = base64.b64encode(png(_codes(K), _palette(_is_two_signed(K)))).decode("ascii")
    style = "image-rendering:pixelated;border:1px solid;border-color:rgba(128,128,128,0.5)"
    return f'<img alt="{escape(label)}" {size} style="{style}" src="data:image/png;base64,{data}"/>'


def _is_two_signed(K: np.ndarray) -> bool:
    finite = K[np.isfinite(K)]
    return bool(finite.min() < -1e-12 * np.abs(finite).max())


def _codes(K: np.ndarray) -> np.ndarray:  # the same shape, 0 … 255
    """The places of values on the map of colours: infinite ones at its ends, NaN at its beginning."""
    finite = K[np.isfinite(K)]
    low, high = float(finite.min()), float(finite.max())
    if _is_two_signed(K):
        high = max(abs(low), abs(high))
        low = -high
    share = (np.clip(K, low, high) - low) / (high - low) if high > low else np.full(K.shape, 0.5)
    return np.rint(255 * np.nan_to_num(share)).astype(np.uint8)


def _palette(is_two_signed: bool) -> np.ndarray:  # (256, 3)
    anchors = [list(bytes.fromhex(text)) for text in (_TWO_SIGNS if is_two_signed else _ONE_SIGN)]
    places, at = np.linspace(0, 255, len(anchors)), np.arange(256)
    colours = [np.interp(at, places, channel) for channel in np.array(anchors, dtype=float).T]
    return np.rint(np.stack(colours, axis=1)).astype(np.uint8)


def png(codes: np.ndarray, palette: np.ndarray) -> bytes:  # (h, w) of 0 … 255, (256, 3)
    """A PNG file of a picture whose pixels are numbers of colours."""

    def chunk(name: bytes, content: bytes) -> bytes:
        checked = zlib.crc32(name + content)
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", checked)

    h, w = codes.shape
    header = struct.pack(">IIBBBBB", w, h, 8, 3, 0, 0, 0)  # eight bits a pixel, by a palette
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(codes))  # no filter
    parts = ((b"IHDR", header), (b"PLTE", palette.tobytes()), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(name, content) for name, content in parts)
