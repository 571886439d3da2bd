r"""Strings compared by the short words they contain, with or without gaps, anywhere or at their places.

A string is a text, or any sequence of hashables: letters, notes, tokens, tuples. All of these kernels are
inner products of sparse counts, which ``features`` gives. A string shorter than the words contains none: its
values are zero.

Leslie, Eskin and Noble, The spectrum kernel, PSB (2002), 564-575; Ghandi, Lee, Mohammad-Noori and Beer,
Enhanced regulatory sequence prediction using gapped k-mer features, PLOS Computational Biology 10 (2014),
e1003711; Rätsch, Sonnenburg and Schölkopf, RASE: recognition of alternatively spliced exons, Bioinformatics
21 (2005), i369-i377.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import lgamma, log

import numpy as np
from scipy import sparse

from mercer.data.types import Objects
from mercer.errors import InputError
from mercer.kernels.parameters import positive, whole
from mercer.kernels.strings.kmers import Words, codes_at, hashed_words, runs_of, table, words
from mercer.kernels.strings.word_pairs import Shifted, add_products, squares
from mercer.kernels.structured import FeatureKernel, ObjectKernel, Ragged, encode_sequences
from mercer.runtime.config import require_memory

#: Words with gaps are counted once for each choice of places: more choices would take hours.
_MOST_CHOICES = 10**6
#: letters of a word: more than any string has
_LONGEST_WORD = 2**31 - 1


class Spectrum(FeatureKernel):
    r"""k(x, x') = Σᵤ #ᵤ(x) #ᵤ(x'), u the words of k letters and #ᵤ(x) how often u is in x, overlaps included.

    Words are exact unless ``buckets`` says how many columns there may be: then they are hashed into these,
    each with a sign. Over the draw of a random hash the value is right on average, with a variance of at most
    (k(x, x) k(x', x') + k(x, x')²) / buckets: the error exceeds ε √(k(x, x) k(x', x')) with a probability of
    at most 2 / (ε² buckets). Of F different words, on average F² / (2 buckets) pairs or fewer share a column.

    >>> Spectrum(2)(["abab", "ab", ""])
    array([[5., 2., 0.],
           [2., 1., 0.],
           [0., 0., 0.]])
    >>> Spectrum(2)([["to", "be", "or", "not", "to", "be"]])
    array([[7.]])
    """

    objects = "sequences"
    lemma = "the inner product of counts of words"
    k: int = whole(3, maximum=_LONGEST_WORD)
    buckets: int | None = whole(None, optional=True)

    def features(self, X: Objects) -> sparse.csr_array:
        sequences = encode_sequences(X)
        if self.buckets is not None:
            return hashed_words(X, sequences, int(self.k), int(self.buckets))
        return table([words(sequences, int(self.k))], len(sequences))


class BlendedSpectrum(FeatureKernel):
    r"""k(x, x') = Σⱼ decayʲ Spectrum(j)(x, x'), j = 1 … k: words of all lengths up to k.

    ``decay`` below 1 lets short words count for more, above 1 long ones.

    >>> BlendedSpectrum(2, decay=0.5)(["ab"], ["abb"])
    array([[1.75]])

    Three pairs of equal letters at a half, one of words of two at a quarter.
    """

    objects = "sequences"
    lemma = "a sum of inner products of counts, with weights of zero or more"
    k: int = whole(3)
    decay: float = positive(1.0)

    def features(self, X: Objects) -> sparse.csr_array:
        sequences = encode_sequences(X)
        longest = max(1, int(sequences.lengths.max()))
        lengths = range(1, min(int(self.k), longest) + 1)
        return table((words(sequences, j, self._weight(j)) for j in lengths), len(sequences))

    def _weight(self, j: int) -> float:
        """√decayʲ: each side has one such factor."""
        if j * np.log10(float(self.decay)) < 300:
            return float(self.decay) ** (j / 2)
        raise InputError(
            f"decay={self.decay!r} makes words of {j} letters count decay^{j} times, which is more than a "
            "float can hold: pass a smaller decay or k"
        )


class GappedKmer(ObjectKernel):
    r"""k(x, x') = Σ_{S, u} #_{S,u}(x) #_{S,u}(x'), S all choices of g - m of g places, u what stands there.

    #_{S,u}(x) is the number of runs of g letters in x whose letters at the places S are u. Two runs that
    differ in d of their g letters add C(g - d, g - m): up to m differences are tolerated. This is the kernel
    of gkm-SVM; fastsk computes ``GappedKmer(g, m).normalized()``.

    The choices are gone through one by one, those that are shifts of each other together; no table of all
    features is made. ``features`` makes it.

    >>> GappedKmer(3, 1)(["abc"], ["abd", "xbc", "abc"])
    array([[1., 1., 3.]])
    """

    objects = "sequences"
    lemma = "the inner product of counts of words with gaps"
    g: int = whole(6, maximum=_LONGEST_WORD)
    m: int = whole(3, minimum=0)

    def check(self) -> None:
        if self.m >= self.g:
            raise InputError(
                f"m must be below g, got g={self.g}, m={self.m}: "
                "of g letters all but m are looked at, so leave at least one"
            )
        g, m = int(self.g), int(self.m)
        choices = lgamma(g + 1) - lgamma(m + 1) - lgamma(g - m + 1)  # the logarithm of the number of choices
        if choices > log(_MOST_CHOICES):
            raise InputError(
                f"there are about 1e{choices / log(10):.0f} ways to leave {m} of {g} letters out, each of "
                "which takes its time: use a smaller g, or an m nearer to 0 or to g"
            )

    def features(self, X: Objects) -> sparse.csr_array:  # (n, features)
        """The counts, of which the kernel is the inner product."""
        return table(self._words(encode_sequences(X)), len(X))

    def encode(self, X: Objects) -> Ragged:
        return encode_sequences(X)

    def pairs(self, X: Ragged, Y: Ragged | None) -> np.ndarray:
        K = np.zeros((len(X), len(X if Y is None else Y)), np.int64)
        for x, *y in self._shapes(X) if Y is None else self._shapes(X, Y):
            add_products(K, x, y[0] if y else None)
        values = K.astype(np.float64)
        return values if Y is not None else values + np.tril(values, -1).T

    def self_pairs(self, X: Ragged) -> np.ndarray:
        return np.sum([squares(x, len(X)) for x in self._words(X)], axis=0)

    def _words(self, sequences: Ragged) -> Iterator[Words]:
        """The letters of all runs, one choice of places after the other."""
        g = int(self.g)
        rows, starts = runs_of(sequences, g)
        for places in combinations(range(g), g - int(self.m)):
            yield Words(rows, *codes_at(sequences.values, starts, places))

    def _shapes(self, *sides: Ragged) -> Iterator[list[Shifted]]:
        """The same for the choices that begin at place 0; all others are shifts of these.

        Shifted by t, a choice that spans w places finds the letters at q in the run that begins at q - t:
        there is one for all t of 0 … g - w, but near the ends of a string. Sides are numbered alike.
        """
        values, g, k = sides[0].values, int(self.g), int(self.g) - int(self.m)
        assert all(side.values is values for side in sides), "sides that were not encoded together"
        for span in range(k, g + 1) if k > 1 else (1,):
            found = [_places(side, span, g) for side in sides]
            starts = np.concatenate([start for _, start, _, _ in found])
            cuts = np.cumsum([len(start) for _, start, _, _ in found])[:-1]
            for between in combinations(range(1, span - 1), max(k - 2, 0)):
                places = (0, *between, span - 1) if k > 1 else (0,)
                codes, width = codes_at(values, starts, places)
                yield [
                    Shifted(Words(rows, code, width), first, last, g - span + 1)
                    for (rows, _, first, last), code in zip(found, np.split(codes, cuts), strict=True)
                ]


def _places(sequences: Ragged, span: int, g: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows and starts of runs of ``span`` letters, and the first and last place they have in runs of g."""
    rows, starts = runs_of(sequences, span)
    before = starts - sequences.starts[rows]
    after = sequences.stops[rows] - starts - span
    first, last = np.maximum(g - span - after, 0), np.minimum(before, g - span)
    there = first <= last  # A string of less than g letters has none.
    return rows[there], starts[there], first[there], last[there]


class WeightedDegree(FeatureKernel):
    r"""k(x, x') = Σ_d β_d Σᵢⱼ (1 - |i - j| / (shift + 1))₊ [x[i : i+d] = x'[j : j+d]], d = 1 … k.

    Words that stand at the same place in both strings, or up to ``shift`` places apart, with less weight the
    farther apart they are. β_d = 2 (k - d + 1) / (k (k + 1)), so that a match counts by all the words in it.
    For strings that are aligned to something, such as a splice site: where a word is matters.

    The weights of shifts are triangular (elsewhere 1 / (2 (|i - j| + 1)) is common): with s = ``shift``, of
    the windows of s + 1 places that hold i, a share of (1 - |i - j| / (s + 1))₊ holds j, too. So the kernel
    is an inner product of counts of words in windows.

    >>> WeightedDegree(2)(["abc"], ["abc", "abx", "xab"]).round(3)
    array([[2.667, 1.667, 0.   ]])
    >>> WeightedDegree(2, shift=1)(["abc"], ["xab"]).round(3)
    array([[0.833]])
    """

    objects = "sequences"
    lemma = "a sum, with positive weights, of inner products of counts of words in windows"
    k: int = whole(3)
    shift: int = whole(0, minimum=0)

    def features(self, X: Objects) -> sparse.csr_array:
        sequences, k = encode_sequences(X), int(self.k)
        longest = max(1, int(sequences.lengths.max()))
        beta = ((d, 2 * (k - d + 1) / (k * (k + 1))) for d in range(1, min(k, longest) + 1))
        copies = min(k, longest) * min(int(self.shift) + 1, longest)
        require_memory(
            72 * len(sequences.values) * copies,
            f"{copies} words that begin at each of {len(sequences.values)} letters",
            "use a smaller shift or k, or fewer strings at a time",
        )
        return table((part for d, b in beta for part in self._placed(sequences, d, b)), len(sequences))

    def _placed(self, sequences: Ragged, d: int, beta: float) -> Iterator[Words]:
        """Words of d letters, once for every window of places that a word begins in.

        Where the shift s is no less than the last place L, all words share s + 1 - L of their s + 1 windows:
        those are words wherever they are, and what is left are the windows of the shift L - 1.
        """
        shift, found = int(self.shift), words(sequences, d).narrow()
        rows, starts = runs_of(sequences, d)
        places = starts - sequences.starts[rows]
        last = int(places.max(initial=0))
        windows = min(shift + 1, last)
        if windows <= shift:
            yield replace(found, weight=(beta * (shift + 1 - windows) / (shift + 1)) ** 0.5)
        if windows:
            width = last + windows
            codes = found.codes[:, None] * width + places[:, None] + np.arange(windows)
            weight = (beta / (shift + 1)) ** 0.5
            yield Words(np.repeat(rows, windows), codes.ravel(), found.width * width, weight)
