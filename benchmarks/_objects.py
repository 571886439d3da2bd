"""Real objects for benchmarks: questions with their parse trees, and others."""

from __future__ import annotations

import gzip
import re
from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from benchmarks._data import FOLDER


def questions(part: str = "train") -> tuple[dict[str, list[str]], np.ndarray]:
    """Questions and the kind of their answers, six classes; part is "train" (5452) or "test" (500).

    The questions are texts under "quest", and trees in brackets: "grct" (grammatical relations above words),
    "lct" (words above words, with their relations as leaves), "loct" (words alone), "cgrct", "clct".
    Ten questions of the test part are also in the training part.
    """
    name = {"train": "train_5500", "test": "TREC_10"}[part]
    found: dict[str, list[str]] = {}
    classes = []
    with gzip.open(FOLDER / "structured" / f"kelp_qc_{name}.coarse.klp.gz", "rt", encoding="utf-8") as file:
        for line in file:
            classes.append(line.split(maxsplit=1)[0])
            for kind, field, text in re.findall(r"\|B([STV]):(\w+)\| (.*?) \|E\1\|", line):
                if kind != "V":
                    found.setdefault(field, []).append(text)
    return found, np.array(classes)


def proteins() -> tuple[list[str], np.ndarray]:
    """632 proteins of 50 to 5000 letters: 325 that are found outside of cells (0), 307 of mitochondria (1).

    Two records have their sequence on the line of their name, one of them in the middle of another's line: a
    record is what comes after a ">", up to the next, and the first word of it is the name.
    """
    X: list[str] = []
    sizes = []
    for name in ("extracell", "mitochondrion"):
        with gzip.open(FOLDER / "structured" / f"protr_{name}.fasta.gz", "rt") as file:
            text = file.read()
        records = [record.split() for record in text.split(">")[1:]]
        X += ["".join(lines) for _, *lines in records]
        sizes.append(len(records))
    return X, np.repeat([0, 1], sizes)


def promoters() -> tuple[list[str], np.ndarray, np.ndarray]:
    """106 pieces of DNA of 57 letters, whether each is a promoter, and groups that share words of 15 letters.

    Nearly all that are not promoters overlap with others that are not: folds must keep a group together.
    """
    X, y = [], []
    with gzip.open(FOLDER / "structured" / "promoters.data.gz", "rt") as file:
        for line in file:
            _, *letters, label = line.strip().split(",")
            X.append("".join(letters))
            y.append(int(label == "+"))
    return X, np.array(y), shared_words(X, 15)


def shared_words(X: list[str], k: int) -> np.ndarray:  # (n,)
    """Groups of texts that are connected by common words of k letters."""
    first: dict[str, int] = {}
    links = [(i, first.setdefault(x[p : p + k], i)) for i, x in enumerate(X) for p in range(len(x) - k + 1)]
    rows, columns = np.array(links).T
    graph = sparse.coo_array((np.ones(len(links)), (rows, columns)), shape=(len(X), len(X)))
    return connected_components(graph, directed=False)[1]


def flowers() -> tuple[np.ndarray, np.ndarray]:
    """1360 images of 17 kinds of flowers as counts of 4096 colours (16 levels of red, green and blue), and y.

    Needs Pillow, which reads the images.
    """
    import io
    import tarfile

    from PIL import Image

    counts, kinds = [], []
    with tarfile.open(FOLDER / "images" / "flowers17_128px.tar") as archive:
        for member in archive:
            if member.name.endswith(".jpg"):
                file = archive.extractfile(member)
                assert file is not None
                levels = np.asarray(Image.open(io.BytesIO(file.read())).convert("RGB")).astype(int) // 16
                colours = (levels[..., 0] * 16 + levels[..., 1]) * 16 + levels[..., 2]
                counts.append(np.bincount(colours.ravel(), minlength=4096))
                kinds.append(int(re.findall(r"c(\d+)/", member.name)[0]))
    return np.array(counts), np.array(kinds)


def parts_per_class(y: np.ndarray, sizes: tuple[int, ...], seed: int) -> list[np.ndarray]:
    """Positions of parts that have so many of each class, chosen at random."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
    ends = np.cumsum((0, *sizes))
    return [np.concatenate([order[a:b] for order in orders]) for a, b in pairwise(ends)]
