"""Kernels on trees against explicit enumeration of their fragments."""

import pickle
import sys
from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import (
    SVC,
    Delta,
    FromFunction,
    Gaussian,
    KernelRidge,
    PartialTree,
    SubsetTree,
    SubtreeKernel,
    certify,
    config,
)
from mercer.errors import InputError, InputTypeError, MemoryBudgetError
from mercer.kernels.trees import matching as tree_matching
from mercer.kernels.trees.tree import Tree, as_tree, encode_trees
from mercer.testing.objects import OBJECTS

slow_is_fine = pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")

# --- trees are (label, child, child, …) here, a leaf is (label,) ---------------------------------------

labels = st.sampled_from("abc")
trees = st.recursive(
    labels.map(lambda l: (l,)),
    lambda below: st.builds(lambda l, c: (l, *c), labels, st.lists(below, min_size=1, max_size=3)),
    max_leaves=6,
)
some_trees = st.lists(trees, min_size=1, max_size=5)
weights = st.sampled_from([0.3, 0.5, 1.0, 1.25])


def nodes(tree):
    yield tree
    for child in tree[1:]:
        yield from nodes(child)


def size(tree):
    return sum(1 for _ in nodes(tree))


def subset_fragments(tree):
    """Fragments at the root of a tree, and how many nodes of each are continued."""
    if len(tree) == 1:
        return []
    choices = [[((child[0],), 0), *subset_fragments(child)] for child in tree[1:]]
    return [
        ((tree[0], *(fragment for fragment, _ in chosen)), 1 + sum(n for _, n in chosen))
        for chosen in product(*choices)
    ]


def partial_fragments(tree, decay, gap):
    """Partial trees at the root of a tree, and what finding one there counts; a leaf is (label,)."""
    found = [((tree[0],), decay**0.5 * gap)]
    children = tree[1:]
    for length in range(1, len(children) + 1):
        for places in combinations(range(len(children)), length):
            span = places[-1] - places[0] + 1
            for chosen in product(*(partial_fragments(children[p], decay, gap) for p in places)):
                weight = decay**0.5 * gap**span * np.prod([w for _, w in chosen])
                found.append(((tree[0], *(fragment for fragment, _ in chosen)), weight))
    return found


def all_partial_fragments(tree, decay, gap):
    return [found for node in nodes(tree) for found in partial_fragments(node, decay, gap)]


def weighted(found):
    total = Counter()
    for fragment, weight in found:
        total[fragment] += weight
    return total


def inner(counters):
    return np.array([[sum(a[f] * b[f] for f in a) for b in counters] for a in counters], float)


# --- the truth -------------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(some_trees, weights)
def test_subtrees_are_counted(X, decay):
    counters = [weighted((s, decay ** (size(s) / 2)) for s in nodes(tree)) for tree in X]
    np.testing.assert_allclose(SubtreeKernel(decay)(X), inner(counters), rtol=1e-13)


@settings(max_examples=80, deadline=None)
@given(some_trees, weights, st.booleans())
def test_subset_trees_are_counted(X, decay, leaves):
    counters = []
    for tree in X:
        found = [(f, decay ** (n / 2)) for node in nodes(tree) for f, n in subset_fragments(node)]
        if leaves:
            found += [(node, decay**0.5) for node in nodes(tree) if len(node) == 1]
        counters.append(weighted(found))
    # sums and products of positive numbers: a relative error of ε for each of some hundred operations
    np.testing.assert_allclose(SubsetTree(decay, leaves)(X), inner(counters), rtol=1e-12)


@settings(max_examples=80, deadline=None)
@given(some_trees, weights, weights)
def test_partial_trees_are_counted(X, decay, gap):
    counters = [weighted(all_partial_fragments(tree, decay, gap)) for tree in X]
    np.testing.assert_allclose(PartialTree(decay, gap)(X), inner(counters), rtol=1e-12)


def likeness(a, b):
    """A kernel on the labels a, b, c: the inner product of three vectors; a and c are at right angles."""
    vectors = {"a": (1.0, 0.0), "b": (0.6, 0.8), "c": (0.0, 0.7)}
    return float(np.dot(vectors[a], vectors[b]))


@slow_is_fine
@settings(max_examples=40, deadline=None)
@given(st.lists(trees, min_size=1, max_size=3), weights, weights)
def test_partial_trees_with_similar_labels(X, decay, gap):
    def alike(f, g):
        """The product over nodes, where the shapes are the same."""
        if len(f) != len(g):
            return 0.0
        return likeness(f[0], g[0]) * np.prod([alike(c, d) for c, d in zip(f[1:], g[1:], strict=True)])

    found = [list(weighted(all_partial_fragments(tree, decay, gap)).items()) for tree in X]
    wanted = [[sum(v * w * alike(f, g) for f, v in F for g, w in G) for G in found] for F in found]
    np.testing.assert_allclose(PartialTree(decay, gap, FromFunction(likeness))(X), wanted, rtol=1e-11)


@slow_is_fine
def test_equality_as_the_kernel_of_labels_changes_nothing(rng):
    X = OBJECTS["trees"](20, rng)
    smooth = PartialTree(0.7, 0.6, labels=FromFunction(lambda a, b: a == b))
    np.testing.assert_allclose(smooth(X), PartialTree(0.7, 0.6)(X), rtol=1e-12)


def test_vectors_as_labels():
    """Words as vectors: a kernel on these compares labels, and may take its width from them."""
    one, other = Tree((0.0, 1.0), [Tree((2.0, 0.0))]), Tree((0.0, 1.0), [Tree((2.0, 0.5))])
    k = PartialTree(1.0, 1.0, labels=Gaussian(sigma=1.0))
    close = np.exp(-(0.5**2) / 2)
    far = np.exp(-5 / 2) + np.exp(-(4 + 0.5**2) / 2)  # a root against a leaf
    np.testing.assert_allclose(k([one], [other]), [[1 + 2 * close + far]], rtol=1e-12)
    assert PartialTree(labels=Gaussian(sigma="median")).resolve([one, other]).labels.sigma > 0.5


@slow_is_fine
@settings(max_examples=40, deadline=None)
@given(some_trees)
def test_they_are_positive_semidefinite(X):
    for kernel in (SubtreeKernel(0.5), SubsetTree(0.5, leaves=True), PartialTree(0.6, 0.7)):
        assert certify(kernel).verdict == "proved"
        for k in (kernel, kernel * SubsetTree(), kernel + PartialTree()):
            K = k(X)
            # rounding of eigenvalues is of the order of n ε ‖K‖
            assert np.linalg.eigvalsh(K).min() >= -1e-13 * len(K) * max(np.abs(K).max(), 1.0)
    K = PartialTree(0.6, 0.7, FromFunction(likeness))(X)
    assert np.linalg.eigvalsh(K).min() >= -1e-13 * len(K) * max(np.abs(K).max(), 1.0)


def test_what_is_proved_of_similar_labels():
    assert certify(PartialTree(labels=Gaussian())).verdict == "proved"
    assert certify(PartialTree(labels=FromFunction(likeness))).verdict == "unknown"


KERNELS = [SubtreeKernel(0.8), SubsetTree(0.6), SubsetTree(0.6, leaves=True), PartialTree(0.7, 0.6)]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@settings(max_examples=25, deadline=None)
@given(X=some_trees)
def test_what_does_not_matter(kernel, X):
    """Other names for the labels, and left and right exchanged in all trees."""

    def changed(tree, turn, name):
        children = [changed(child, turn, name) for child in tree[1:]]
        return (name[tree[0]], *(reversed(children) if turn else children))

    K = kernel(X)
    names = {"a": "z", "b": 7, "c": "a b"}
    for turn, name in ((False, names), (True, dict(zip("abc", "abc", strict=True)))):
        np.testing.assert_allclose(kernel([changed(tree, turn, name) for tree in X]), K, rtol=1e-12)


def test_the_order_of_children_matters():
    one, other = "(S (NP dog) (VP bites))", "(S (VP bites) (NP dog))"
    for kernel in KERNELS:
        K = kernel([one, other])
        assert K[0, 1] < K[0, 0] == K[1, 1]


def test_numbers_of_threads_do_not_matter(rng):
    X = OBJECTS["trees"](600, rng)
    for kernel in (SubsetTree(), PartialTree()):
        with config(threads=1):
            K = kernel(X)
        with config(threads=2):
            np.testing.assert_array_equal(kernel(X), K)


# --- learning ----------------------------------------------------------------------------------------------


def test_learners_take_trees(rng):
    X = OBJECTS["trees"](80, rng)
    y = np.array(["dog" in tree for tree in X])
    kernel = PartialTree(0.5, 0.5).normalized() + SubsetTree(leaves=True).normalized()
    machine = SVC(kernel=kernel, C=10.0).fit(X[:60], y[:60])
    assert machine.score(X[60:], y[60:]) > 0.8
    assert pickle.loads(pickle.dumps(machine)).predict(X[60:]).tolist() == machine.predict(X[60:]).tolist()
    counts = np.array([tree.count("dog") for tree in X], float)
    ridge = KernelRidge(kernel=SubtreeKernel(), alpha=1e-6).fit(X[:60], counts[:60])
    assert np.abs(ridge.predict(X[:60]) - counts[:60]).max() < 1e-3  # a count of leaves is linear in it


def test_labels_that_only_new_trees_have():
    X, new = ["(S (NP dog) (VP bites))", "(S (NP cat))"], ["(S (NP wolf) (VP bites))", "(X Y)"]
    for kernel in KERNELS:
        model = KernelRidge(kernel=kernel, alpha=0.1).fit(X, [1.0, -1.0])
        values = model.predict(new)
        assert np.isfinite(values).all()
        np.testing.assert_allclose(kernel(new, X)[1], 0.0)


# --- what a tree is ----------------------------------------------------------------------------------------


class FromElsewhere(list):
    """As nltk's: a list of children with a label."""

    def __init__(self, label, children):
        super().__init__(children)
        self._label = label

    def label(self):
        return self._label


FORMS = [
    "(S (NP dog) (VP bites))",
    " ( S(NP(dog))\n(VP ( bites ) ) ) ",
    ("S", ("NP", "dog"), ("VP", "bites")),
    ["S", ["NP", ("dog",)], ("VP", "bites")],
    Tree("S", [Tree("NP", ["dog"]), ("VP", Tree("bites"))]),
    FromElsewhere("S", [FromElsewhere("NP", ["dog"]), FromElsewhere("VP", ["bites"])]),
]


def test_ways_to_give_a_tree():
    for form in FORMS:
        assert as_tree(form) == as_tree(FORMS[0])
        assert hash(as_tree(form)) == hash(as_tree(FORMS[0]))
        assert str(as_tree(form)) == FORMS[0]
    for kernel in KERNELS:
        K = kernel(FORMS)
        assert np.all(K[0, 0] == K)


@given(trees)
def test_texts_and_pickles_bring_a_tree_back(tree):
    assert as_tree(str(as_tree(tree))) == as_tree(tree) == pickle.loads(pickle.dumps(as_tree(tree)))


@settings(deadline=None)
@given(some_trees)
def test_arrays_hold_the_trees(X):
    encoded = encode_trees(X)

    def tree(v):
        return (encoded.names[encoded.labels[v]], *map(tree, range(encoded.first[v], encoded.last[v])))

    assert [tree(start) for start in encoded.starts] == X
    assert encoded.owners().tolist() == [i for i, x in enumerate(X) for _ in range(size(x))]


def test_labels_of_any_kind():
    assert as_tree(Tree(("a", 1), [2, 2.5])).children[0].label == 2
    assert as_tree("( (S x))").label == "" and str(as_tree("((S x))")) == "( (S x))"
    assert as_tree("word") == Tree("word")
    assert as_tree(("S", "(NP dog)")).children[0].label == "(NP dog)"  # only a whole tree is read as a text
    assert Tree("a") != "a"


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        ("(S (NP dog)", InputError, "tree 1 leaves 1 brackets open.*close every bracket"),
        ("(S (NP dog)) (", InputError, "tree 1 leaves 1 brackets open"),
        ("(S (NP dog)))", InputError, "tree 1 closes a bracket that it did not open.*-RRB-"),
        ("(S a) (S b)", InputError, "tree 1 goes on after its root is complete, at 'S'"),
        ("dog bites", InputError, "tree 1 goes on after its root is complete, at 'bites'"),
        ("(S ())", InputError, "tree 1 has a pair of brackets without a label"),
        ("  ", InputError, "tree 1 is an empty text"),
        ((), InputError, "a node of tree 1 has no label"),
        ((("NP", "dog"), "bites"), InputError, "the label comes first"),
        (None, InputTypeError, "tree 1 must be a text in brackets.*got None"),
        (3.5, InputTypeError, "tree 1 must be a text in brackets"),
        (("S", None), InputTypeError, "a node of tree 1 is None"),
        (("S", {"NP"}), InputTypeError, "hashable"),
    ],
)
def test_what_is_no_tree(bad, error, words):
    for kernel in (SubtreeKernel(), SubsetTree(), PartialTree()):
        with pytest.raises(error, match=words):
            kernel(["(S a)", bad])


def test_children_are_a_list():
    with pytest.raises(InputTypeError, match=r"pass \['dog'\]"):
        Tree("NP", "dog")
    with pytest.raises(InputTypeError, match="are a list"):
        Tree("NP", 3)


# --- large ones --------------------------------------------------------------------------------------------


def test_deep_trees():
    depth = 10_000
    assert depth > sys.getrecursionlimit()
    text = "".join(f"(n{i % 50} " for i in range(depth)) + "end" + ")" * depth
    tree, nested = as_tree(text), "end"
    for i in range(depth - 1, -1, -1):
        nested = (f"n{i % 50}", nested)
    assert as_tree(nested) == tree == pickle.loads(pickle.dumps(tree))
    assert str(tree) == text
    assert len(repr(tree)) > depth
    assert SubtreeKernel()([text], [tree])[0, 0] == depth + 1
    for kernel in (SubsetTree(0.5), PartialTree(0.5, 0.5)):
        value = kernel([text, nested])
        assert np.isfinite(value).all() and (value == value[0, 0]).all()
        assert value[0, 0] > 0


def caterpillar(height):
    return "(n n " * height + "n" + ")" * height


def caterpillars(height, other, decay, gap):
    """Σ Δ over the nodes of two of them: Δ depends only on the smaller of two heights."""
    leaf = decay * gap**2
    delta = [leaf]
    for _ in range(max(height, other)):
        # a leaf and a caterpillar below: four pairs of single children, one of both
        single = 3 * leaf + delta[-1]
        delta.append(decay * gap**2 * (1 + single + gap**2 * leaf * delta[-1]))
    heights = [np.r_[np.zeros(h + 1, int), np.arange(1, h + 1)] for h in (height, other)]
    return np.array(delta)[np.minimum.outer(*heights)].sum()


@pytest.mark.parametrize(("height", "other"), [(3, 5), (600, 500)])
def test_room_for_values_is_used_again(height, other):
    """600 × 500 nodes with children are more values than are kept at a time."""
    if height > 100:
        assert height * other > tree_matching._VALUES_KEPT
    K = PartialTree(0.7, 0.9)([caterpillar(height)], [caterpillar(other)])
    # rows of some hundred values are added up, then their sums: ε for each addition
    np.testing.assert_allclose(K, caterpillars(height, other, 0.7, 0.9), rtol=1e-12)
    smooth = PartialTree(0.7, 0.9, labels=Delta())
    np.testing.assert_allclose(smooth([caterpillar(height)], [caterpillar(other)]), K, rtol=1e-12)


def test_room_for_values_of_subset_trees_is_used_again():
    height, other = 600, 609
    chains = ["(a " * h + "b" + ")" * h for h in (height, other)]
    # (a a) at g nodes of one above (a b), at g' of the other: fragments of 1, 2, … nodes up to the nearer end
    heights = np.arange(1, height), np.arange(1, other)
    longest = np.minimum.outer(*heights) + np.equal.outer(*heights)
    wanted = np.cumsum(0.9 ** np.arange(1, height + 1))[longest - 1].sum() + 0.9
    np.testing.assert_allclose(SubsetTree(0.9)(chains[:1], chains[1:]), wanted, rtol=1e-12)


def test_large_trees_in_little_memory():
    deep = caterpillar(5000)  # 10,001 nodes, all with the same label: 25 million pairs of nodes with children
    bush = ("S", *(("A", "b") for _ in range(1500)))
    with config(memory="12MiB", threads=1):
        assert np.isfinite(SubsetTree(0.4)([deep])).all()
        for kernel in (SubsetTree(0.01), PartialTree(0.01, 0.4)):
            with pytest.raises(MemoryBudgetError, match="cut trees into smaller ones"):
                kernel([bush])
    assert np.isfinite(PartialTree(0.01, 0.4)([bush])).all()


def test_wide_trees():
    wide = ("S", *(f"w{i}" for i in range(300)))
    other = ("S", *(f"w{i}" for i in range(0, 300, 2)))
    assert SubtreeKernel()([wide], [other])[0, 0] == 150
    assert SubsetTree()([wide], [other])[0, 0] == 0
    assert PartialTree(0.4, 0.4)([wide], [other])[0, 0] > 0.4 * 0.4**2 * 151  # single nodes alone


def test_what_overflows_is_refused():
    bush = ("S", *(("A", "b") for _ in range(1200)))  # 2¹²⁰⁰ fragments
    for kernel in (SubsetTree(1.0), PartialTree(1.0, 1.0)):
        with pytest.raises(InputError, match="smaller decay"):
            kernel([bush])
        with pytest.raises(InputError, match="smaller decay"):
            kernel.normalized()([bush])
    assert np.isfinite(SubsetTree(0.4)([bush])).all()
    with pytest.raises(InputError, match="smaller decay"):
        SubtreeKernel(10.0)([bush])


@pytest.mark.parametrize("wrong", [{"decay": 0.0}, {"decay": -1}, {"decay": "0.4"}, {"decay": float("nan")}])
def test_parameters_are_checked(wrong):
    for kind in (SubtreeKernel, SubsetTree, PartialTree):
        with pytest.raises(InputError, match="decay must be positive"):
            kind(**wrong)
    with pytest.raises(InputError, match="gap must be positive"):
        PartialTree(gap=0)
    with pytest.raises(InputError, match="labels must be a kernel on labels"):
        PartialTree(labels=likeness)
    with pytest.raises(InputError, match="leaves must be one of"):
        SubsetTree(leaves="yes")
