"""How the source speaks: constants name their quantity, comments can be read where they stand."""

import ast
import re
import tokenize
from pathlib import Path

import pytest

import mercer

SOURCE = Path(mercer.__file__).parent
ROOMS = sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists())
#: words that say how much, and not of what
VAGUE = {
    *("SMALL", "TINY", "FEW", "MANY", "ENOUGH", "LARGE", "MEDIUM", "MOST", "LEAST", "FEWEST", "LONG"),
    *("SHORT", "HIGH", "HIGHEST", "LONGEST", "LARGEST", "BLOCK", "KEPT", "LIMIT"),
}
RIDDLES = re.compile(r"# (as|see) (below|above)\b|# and at (least|most)\b|may be none")


@pytest.mark.parametrize("room", ROOMS)
def test_constants_name_a_quantity(room):
    for path in (SOURCE / room).rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            names = {
                leaf.id.strip("_") for top in targets for leaf in ast.walk(top) if isinstance(leaf, ast.Name)
            }
            assert not names & VAGUE, f"{path}: {names & VAGUE}: which quantity?"


@pytest.mark.parametrize("room", ROOMS)
def test_comments_can_be_read_where_they_stand(room):
    for path in (SOURCE / room).rglob("*.py"):
        if not RIDDLES.search(path.read_text("utf-8")):
            continue
        with path.open("rb") as file:
            comments = [t.string for t in tokenize.tokenize(file.readline) if t.type == tokenize.COMMENT]
        assert not [comment for comment in comments if RIDDLES.search(comment)], path
