"""The directive ``notes``: the table of docs/notes.toml, a section for each note.

A lesson of the gallery is linked where the gallery is built, and named where it is not.
"""

import tomllib
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

TABLE = Path(__file__).parent.parent / "notes.toml"


class Notes(SphinxDirective):
    """All notes, in their order."""

    def run(self):
        """Sections of tables."""
        self.env.note_dependency(TABLE)
        given = tomllib.loads(TABLE.read_text("utf-8"))
        setup = nodes.literal_block(given["setup"].strip(), given["setup"].strip(), language="python")
        return [
            *(self.section(note) for note in given["notes"]),
            self.titled("What the lines begin with", setup),
        ]

    def titled(self, title, content):
        """A section of this page."""
        section = nodes.section(ids=[nodes.make_id(title)], names=[title])
        section += [nodes.title(title, title), content]
        return section

    def section(self, note):
        """A note as a table: what it is, its name, the line, the lesson."""
        table = nodes.table(classes=["notes"])
        group = nodes.tgroup(cols=3)
        group += [nodes.colspec(colwidth=width) for width in (34, 56, 10)]
        head = nodes.thead(
            "", self.row(*(nodes.paragraph(text=name) for name in ("statement", "mercer", "lesson")))
        )
        body = nodes.tbody()
        for kind, name, line, lesson in note["entries"]:
            said = nodes.paragraph("", "", nodes.emphasis(text=kind.capitalize()), nodes.Text(f". {name}"))
            body += self.row(said, nodes.paragraph("", "", nodes.literal(line, line)), self.lesson(lesson))
        group += [head, body]
        table += group
        return self.titled(note["title"], table)

    def row(self, *cells):
        """One row of the table."""
        return nodes.row("", *(nodes.entry("", cell) for cell in cells))

    def lesson(self, number):
        """The lesson's number, with a link where its page is there."""
        said = nodes.paragraph()
        begins = f"auto_examples/plot_{number:02d}_"
        page = next((name for name in self.env.found_docs if name.startswith(begins)), None)
        if page:
            target = self.env.app.builder.get_relative_uri(self.env.docname, page)
            said += nodes.reference("", str(number), refuri=target, internal=True)
        elif number:
            said += nodes.Text(str(number))
        return said


def setup(app):
    """Make the directive known."""
    app.add_directive("notes", Notes)
    return {"parallel_read_safe": True}
