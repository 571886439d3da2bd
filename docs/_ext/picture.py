"""The directive ``picture``: one of docs/pictures inside of a page, whose ink is that of the page.

A picture that is a file of its own does not know whether the reader's page is light or dark. What it shows
is said in ``:alt:``, for those who do not see it.
"""

from html import escape
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

PICTURES = Path(__file__).parent.parent / "pictures"


class Picture(SphinxDirective):
    """``{picture} name`` with what it shows in words, and a caption."""

    required_arguments = 1
    has_content = True
    option_spec = {"alt": directives.unchanged_required}

    def run(self):
        """A figure: the drawing, then the caption."""
        if "alt" not in self.options:
            raise self.error("a picture needs :alt:, what is to be seen in words")
        path = PICTURES / f"{self.arguments[0]}.svg"
        if not path.is_file():
            raise self.error(f"there is no {path.name}: draw it with python docs/_ext/draw.py")
        self.env.note_dependency(path)
        alt = escape(self.options["alt"], quote=True)
        drawing = (
            f'<div class="picture {path.stem}" role="img" aria-label="{alt}">{path.read_text("utf-8")}</div>'
        )
        found = nodes.figure("", nodes.raw("", drawing, format="html"))
        if self.content:
            caption = nodes.caption()
            caption += self.parse_inline(" ".join(self.content))[0]
            found += caption
        return [found]


def setup(app):
    """Make the directive known."""
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True}
