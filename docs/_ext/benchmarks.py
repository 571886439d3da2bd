"""The directives ``benchmark-charts``, ``-tables``, ``-results``: benchmarks/results, as pages are built.

Every row of the tables named below is drawn, also where a peer is faster or errs less.
"""

import re
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from mercer.plots import style

RESULTS = Path(__file__).resolve().parent.parent.parent / "benchmarks" / "results"

#: file, how the title of the table begins, column of ratios, the peer, and what is said before the row
TIMES = (
    ("svm", "", "scikit-learn ÷ mercer float32", "scikit-learn", "SVM: "),
    ("svm", "", "oneDAL ÷ mercer, float64", "oneDAL", "SVM: "),
    ("gram", "", "against scikit-learn", "scikit-learn", "Gram: "),
    ("learners", "Kernel ridge", "ratio", "scikit-learn", ""),
    ("learners", "Kernel perceptron", "ratio", "NumPy", "perceptron: "),
    ("learners", "Kernel PCA", "ratio to the best", "scikit-learn", "PCA: "),
    ("landmarks", "", "times faster", "scikit-learn", "covtype 200k, landmarks: "),
    ("graphs", "", "GraKeL ÷ mercer", "GraKeL", ""),
    ("selection", "", "ratio", "GridSearchCV", "search: "),
)


def tables(name):
    """The tables of a file: title, header, rows."""
    title, found = "", []
    for line in (RESULTS / f"{name}.md").read_text("utf-8").splitlines():
        if line.startswith("## "):
            title = line[3:]
        elif line.startswith("|"):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if all(re.fullmatch(r":?-+:?", cell) for cell in cells):
                continue
            if found and found[-1][0] == title and len(found[-1][1]) == len(cells):
                found[-1][2].append(cells)
            else:
                found.append((title, cells, []))
    return found


def number(cell):
    """The first number of a cell, or None: bold or not, with its unit or bar behind it."""
    found = re.match(r"\**([+-]?[\d.]+(?:e[+-]?\d+)?)", cell.replace(",", ""))
    return float(found[1]) if found else None


def times():
    """How many times faster than a peer, with what was timed."""
    found = []
    for name, begins, column, peer, before in TIMES:
        for title, header, rows in tables(name):
            if column not in header or not title.startswith(begins):
                continue
            for row in rows:
                value = number(row[header.index(column)])
                words = f"{row[0]}, {row[1]}" if name in ("graphs", "selection") else row[0]
                if value and peer not in words and not row[header.index(column)].endswith("one fit"):
                    found.append((short(before + words), peer, value))
    return sorted([*found, *small_work()], key=lambda entry: entry[2])


def small_work():
    """Where scikit-learn is faster: one row, and the first fit of a process."""
    _, header, rows = next(table for table in tables("first_second") if "ratio" in table[1])
    one = next(row for row in rows if row[header.index("ratio")])
    _, header, rows = next(table for table in tables("svm") if "first fit" in table[1])
    first = {row[0]: number(row[header.index("first fit")]) for row in rows}
    yield one[0], "scikit-learn", 1 / number(one[-1])
    own = first["mercer, compiled code on disk"]
    yield "SVM: first fit of a process, digits", "scikit-learn", first["scikit-learn"] / own


def errors():
    """Errors of mercer and of the best peer of the same row, in the unit of its table."""
    found = []
    for title, header, rows in tables("stated_tables"):
        for row in rows:
            own = header.index("mercer train" if "mercer train" in header else "mercer")
            peers = [
                i for i, name in enumerate(header) if re.fullmatch("SVC|kernel ridge.*|.*boosting", name)
            ]
            values = {header[i]: number(row[i]) for i in peers if number(row[i]) is not None}
            best = min(values, key=values.get)
            unit = "" if title.startswith("Regression") else " %"
            found.append((row[0], number(row[own]), best.split(",")[0], values[best], unit))
    for title, header, rows in tables("graphs"):
        if "accuracy" in title:
            for row in rows:
                own, peer = (
                    number(row[header.index("mercer, any base")]),
                    number(row[header.index("GraKeL + scikit-learn")]),
                )
                found.append((row[0], round(100 - own, 1), "GraKeL", round(100 - peer, 1), " %"))
    return found


def short(words):
    """A line of a chart."""
    words = re.sub(r", γ = .*", "", words)
    return words if len(words) < 52 else words[:51] + "…"


def drawing(width, height, draw, alt):
    """A picture in the ink of the page."""
    with style.report_style():
        figure, ax = style.new_figure(width, height)
        draw(ax)
        svg = style.as_svg(figure, draw.__name__)
    return nodes.raw(
        "",
        f'<div class="picture" role="img" aria-label="{escape(alt, quote=True)}">{svg}</div>',
        format="html",
    )


def draw_times(ax):
    """Bars to the right of 1 where mercer is faster, to the left where it is not."""
    found = times()
    for place, (_, peer, value) in enumerate(found):
        ax.barh(place, value - 1, left=1, color=style.colour(0 if value >= 1 else 1), height=0.7)
        ax.text(max(value, 1) * 1.06, place, f"{value:.3g} ×  {peer}", va="center", fontsize=7.5)
    ax.set_yticks(range(len(found)), [words for words, *_ in found])
    style.log_scale(ax, "x")
    ax.set_xlim(0.15, 220)
    ax.set_ylim(-0.7, len(found) - 0.3)
    ax.axvline(1, color=style.ink(), lw=0.8)
    ax.set_xlabel("times faster than the peer named beside the bar")
    style.tidy(ax, "x")


def draw_errors(ax):
    """Error of mercer relative to the best peer's: below 1 is better."""
    found = errors()[::-1]
    for place, (_, own, best, other, unit) in enumerate(found):
        ratio = own / other
        ax.plot([1, ratio], [place, place], color=style.faint(), lw=1.5, zorder=1)
        ax.plot(1, place, "|", color=style.ink(), ms=9)
        ax.plot(ratio, place, "o", color=style.colour(0 if ratio <= 1 else 1), ms=6)
        ax.text(1.2, place, f"{own:g}{unit} against {other:g}{unit}, {best}", va="center", fontsize=7.5)
    ax.set_yticks(range(len(found)), [name for name, *_ in found])
    ax.set_xlim(0, 1.9)
    ax.set_xlabel("error, divided by that of the best peer")
    style.tidy(ax, "x")


class Charts(SphinxDirective):
    """Times, and errors."""

    def run(self):
        """Two drawings."""
        for path in RESULTS.glob("*.md"):
            self.env.note_dependency(path)
        lost = sum(value < 1 for *_, value in times())
        told = f"Times of {len(times())} comparisons, as bars; in {lost} of them the peer is faster."
        found = [drawing(8.4, 0.2 * len(times()) + 0.8, draw_times, told), nodes.paragraph(text=told)]
        worse = [name for name, own, _, other, _ in errors() if own > other]
        names = ", ".join(worse) or "none"
        told = f"Errors on {len(errors())} data sets; mercer errs more than the best peer on {names}."
        found += [drawing(8.4, 0.25 * len(errors()) + 0.8, draw_errors, told), nodes.paragraph(text=told)]
        return found


class Results(SphinxDirective):
    """The tables of one file whose titles begin with a word: where a page speaks of them."""

    required_arguments = 2

    def run(self):
        """Tables, each under what its title says beyond that word."""
        name, begins = self.arguments
        self.env.note_dependency(RESULTS / f"{name}.md")
        found = [table for table in tables(name) if table[0].startswith(begins)]
        if not found:
            raise self.error(f"no table of {name}.md begins with {begins}: run python -m benchmarks.{name}")
        lines = []
        for title, header, rows in found:
            more = title.removeprefix(begins).lstrip(", ")
            lines += [more.capitalize(), "", *map(table_row, [header, ["---"] * len(header), *rows]), ""]
        return self.parse_text_to_nodes("\n".join(lines))


def table_row(cells):
    """A row of Markdown."""
    return f"| {' | '.join(cells)} |"


class Tables(SphinxDirective):
    """Every file of the results, as it is, one heading lower; but for what the page on migration shows."""

    def run(self):
        """Sections, a file each."""
        files = sorted(path for path in RESULTS.glob("*.md") if path.stem != "migration")
        for path in files:
            self.env.note_dependency(path)
        text = "\n\n".join(re.sub(r"^#", "##", path.read_text("utf-8"), flags=re.MULTILINE) for path in files)
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app):
    """Make the directives known."""
    app.add_directive("benchmark-charts", Charts)
    app.add_directive("benchmark-tables", Tables)
    app.add_directive("benchmark-results", Results)
    return {"parallel_read_safe": True}
