"""LIBSVM files: a column is its index, in every file; there may be more columns than can be listed."""

import numpy as np
import pytest
from scipy import sparse

from mercer import SVC, config
from mercer.errors import InputError, MemoryBudgetError
from mercer.tables import TableModel, read_table

pytest.importorskip("polars")


def test_libsvm_agrees_with_scikit_learn(tmp_path, rng):
    from sklearn.datasets import dump_svmlight_file, load_svmlight_file

    X = sparse.random(30, 12, density=0.3, random_state=1, format="csr")
    y = rng.integers(0, 2, 30) * 2 - 1
    for zero_based in (True, False):
        dump_svmlight_file(X, y, str(tmp_path / "t.libsvm"), zero_based=zero_based, comment="made up")
        table = read_table(tmp_path / "t.libsvm")
        theirs, labels = load_svmlight_file(str(tmp_path / "t.libsvm"), zero_based="auto")
        assert (table.matrix[:, table.first :] != theirs).nnz == 0
        assert table.columns == ["target", *(f"x{j + table.first}" for j in range(12))]
        assert table.labels.tolist() == labels.tolist()
        assert table.label == "target"
        assert table.frame.height == 30
        dense = table.as_wide_as(20).toarray()[:, table.first : table.first + 12]
        assert np.allclose(dense, X.toarray(), rtol=1e-15)  # 16 digits
        assert table.as_wide_as(20).shape == (30, 20)


def test_a_column_is_its_index_also_where_no_row_writes_the_first(tmp_path):
    """A guess per file whether indices begin at 0 would move the columns of a file without index 0."""
    (tmp_path / "a.libsvm").write_text("".join(f"{i % 2} {i % 2}:1 {2 + i % 3}:2\n" for i in range(40)))
    table = read_table(tmp_path / "a.libsvm")
    y = table.labels.astype(int)
    (tmp_path / "b.libsvm").write_text("1 1:1 2:2\n1 1:1 3:2\n")
    new = read_table(tmp_path / "b.libsvm")
    assert (table.first, new.first) == (0, 1)
    for X in (table.frame.drop("target"), table.matrix):
        model = TableModel(SVC()).fit(X, y)
        assert model.predict(new).tolist() == [1, 1]
        assert model.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3", "x4"]


def test_more_columns_than_can_be_listed(tmp_path):
    path = tmp_path / "t.libsvm"
    path.write_text("1 1:2 2000000000:1\n0 2:1\n1 1:3\n0 2:2\n")
    table = read_table(path)
    assert table.frame is None
    assert len(table.columns) == 2_000_000_001
    assert [table.find(c) for c in ("target", "x7", 1, 2, -1)] == [
        "target",
        "x7",
        "target",
        "x1",
        "x2000000000",
    ]
    for absent in ("x0", "x07", "targett", "x2000000001"):
        with pytest.raises(InputError, match=r"'x11', … \(2000000001 in all\)"):
            table.find(absent)
    with config(memory="1GiB"), pytest.raises(MemoryBudgetError, match="a table of 2,000,000,001 columns"):
        TableModel(SVC()).fit(table.matrix, table.labels)
    few = TableModel(SVC()).fit(sparse.csr_array(np.eye(4)), [0, 0, 1, 1])
    assert few.predict(table).shape == (4,)
