r"""
What do two strings, trees or graphs share?
===========================================

An algorithm that sees only the Gram matrix does not mind what the objects are. **How does one compare
things that are no vectors?** By what they are made of: a kernel counts the parts that two objects have in
common.
"""

# %%
# Strings: common pieces
# ----------------------
# ``Spectrum(3)`` counts the common substrings of three letters. In the picture a mark at (i, j) says that
# the piece that begins at letter i of one word also begins at letter j of the other; the kernel is the
# number of marks.

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np

from mercer import Spectrum, Subsequence, SubsetTree, WeisfeilerLehman
from mercer.kernels.trees import as_tree

one, two = "gattacagattaca", "attacgattaccag"
pieces_of_one, pieces_of_two = ([word[i : i + 3] for i in range(len(word) - 2)] for word in (one, two))
marks = np.array([[a == b for b in pieces_of_two] for a in pieces_of_one])
print("marks:", marks.sum(), "  Spectrum(3):", Spectrum(3)(one, two))

words = ["kernel", "kernels", "colonel", "corner", "learn", "learning", "yearning", "earnings"]
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
left.imshow(marks, cmap="Greys", vmax=1.3)
left.set_xticks(range(len(two)), two)
left.set_yticks(range(len(one)), one)
left.set_title("pieces of three letters in both")
K = Subsequence(3, decay=0.6).normalized()(words)
image = right.imshow(K, cmap="cividis", vmin=0)
right.set_xticks(range(len(words)), words, rotation=45, ha="right")
right.set_yticks(range(len(words)), words)
right.set_title("words, by common subsequences with gaps")
fig.colorbar(image, ax=right, shrink=0.8)

# %%
# **What to see.** A diagonal of marks is a longer common piece. The subsequence kernel allows gaps, so that
# *colonel* and *kernel* are a little alike.
#
# Trees: common fragments
# -----------------------
# Sentences as trees of their grammar. The kernel counts fragments that two trees share, large ones less
# (decay).

sentences = {
    "dog bites man": "(S (NP (N dog)) (VP (V bites) (NP (N man))))",
    "man bites dog": "(S (NP (N man)) (VP (V bites) (NP (N dog))))",
    "the dog barks": "(S (NP (D the) (N dog)) (VP (V barks)))",
    "the cat barks": "(S (NP (D the) (N cat)) (VP (V barks)))",
}
K = SubsetTree(decay=0.5).normalized()(list(sentences.values()))
for name, row in zip(sentences, K, strict=True):
    print(f"{name:14s}", row.round(2))


def rules(tree):
    """All rules of the grammar that a tree uses: a label, and the labels below it."""
    below = [rules(child) for child in tree.children]
    own = [(tree.label, *(child.label for child in tree.children))] if tree.children else []
    return own + [rule for found in below for rule in found]


def draw_tree(ax, tree, shared, depth=0.0, begin=0.0):
    """A tree whose nodes have a colour where their rule is shared; where its root is, and where it ends."""
    places, end = [], begin
    for child in tree.children:
        place, end = draw_tree(ax, child, shared, depth + 1, end)
        places.append(place)
    here, end = (np.mean(places), end) if places else (begin, begin + 1)
    for place in places:
        ax.plot([here, place], [-depth, -depth - 1], color="0.6", zorder=0)
    rule = (tree.label, *(child.label for child in tree.children))
    colour = shared.get(rule, "white") if places else "white"
    box = {"boxstyle": "round,pad=0.35", "facecolor": colour, "edgecolor": "0.5" if places else "white"}
    ink = "black" if colour == "white" else "white"
    ax.annotate(tree.label, (here, -depth), ha="center", va="center", bbox=box, color=ink)
    return here, end


trees = {name: as_tree(text) for name, text in sentences.items()}
fig, axes = plt.subplots(1, 3, figsize=(12.5, 3.1), layout="constrained")
common = set(rules(trees["dog bites man"])) & set(rules(trees["man bites dog"]))
colours = {rule: f"C{k}" for k, rule in enumerate(sorted(common))}
for ax, name in zip(axes, ("dog bites man", "man bites dog", "the dog barks"), strict=True):
    draw_tree(ax, trees[name], colours)
    ax.set(title=name, xlim=(-0.6, 2.6), ylim=(-4.5, 0.5))
    ax.axis("off")

# %%
# **What to see.** A node has a colour where the first two sentences both use its rule: here all of them do,
# which are the same words in another order. The larger fragments differ: who is the subject. The third
# sentence has only the rules of S and of *dog* in common with them. ``SubsetTree`` counts all fragments that
# grow out of coloured nodes.

# %%
# Graphs: common neighbourhoods
# -----------------------------
# Weisfeiler and Lehman gave every atom a new name, made of its own and those of its neighbours, again and
# again. The kernel counts names that occur in both molecules. Atoms with the same colour have the same
# neighbourhood.

molecules = {
    "ethanol": ("CCO", [(0, 1), (1, 2)]),
    "ether": ("COC", [(0, 1), (1, 2)]),
    "propanol": ("CCCO", [(0, 1), (1, 2), (2, 3)]),
}


def adjacency(n, bonds):
    A = np.zeros((n, n))
    for i, j in bonds:
        A[i, j] = A[j, i] = 1
    return A


graphs = [(adjacency(len(atoms), bonds), list(atoms)) for atoms, bonds in molecules.values()]
names = [
    [
        atoms[i] + "(" + "".join(sorted(atoms[j] for j in np.flatnonzero(A[i]))) + ")"
        for i in range(len(atoms))
    ]
    for A, atoms in graphs
]
palette = {name: f"C{k}" for k, name in enumerate(sorted({name for row in names for name in row}))}
fig, axes = plt.subplots(1, 4, figsize=(12.5, 3), layout="constrained", width_ratios=[1, 1, 1.2, 1.3])
for ax, title, row in zip(axes, molecules, names, strict=False):
    ax.plot(range(len(row)), [k % 2 for k in range(len(row))], color="0.6", zorder=0)
    for k, name in enumerate(row):
        ax.scatter(k, k % 2, s=1300, color=palette[name], edgecolors="0.2")
        ax.annotate(
            name, (k, k % 2), ha="center", va="center", color="white", fontsize=7.5, fontweight="bold"
        )
    ax.set(title=title, xlim=(-0.6, len(row) - 0.4), ylim=(-0.8, 1.8))
    ax.axis("off")
K = WeisfeilerLehman(1).normalized()(graphs)
axes[3].imshow(K, cmap="cividis", vmin=0, vmax=1)
for (i, j), value in np.ndenumerate(K):
    axes[3].annotate(
        f"{value:.2f}", (j, i), ha="center", va="center", color="black" if value > 0.5 else "white"
    )
axes[3].set(xticks=range(3), yticks=range(3), xticklabels=molecules, yticklabels=molecules)
shared = Counter(names[0]) & Counter(names[2])
print("ethanol and propanol share the neighbourhoods", dict(shared))

# %%
# **What to see.** Ethanol and (dimethyl) ether have the same atoms, and no neighbourhood in common: what the
# kernel counts for them are the atoms alone. All of ethanol's neighbourhoods are in propanol.
