r"""Our docstrings, as Sphinx reads them.

A parameter is described beside its name, ``alpha : what it is, on as many lines as it takes``; numpydoc would
take the first of these lines for a type, and the API would lose it. A formula stands indented in the text, as
it is to be seen, and |x| is an absolute value. Docstrings of other libraries are left as they are.
"""

import inspect
import re


def whole_entries(lines):
    """``name : text`` and the lines below it: of parameters the name, and below it all of the text.

    Attributes become a list of their own, for a name that ends in ``_`` would be read as a link. Examples
    that follow are a section, or they would be parameters.
    """
    found, section = [], None
    for number, line in enumerate(lines):
        under = lines[number + 1] if number + 1 < len(lines) else ""
        if re.fullmatch(r"-{3,}\s*", under) and line.strip():
            section = line.strip()
        is_attribute = section == "Attributes"
        is_list = section in ("Parameters", "Attributes")
        entry = re.match(r"(\S[^:]*?) : (.*)", line) if is_list else None
        if is_attribute and line.strip() == section:
            found += ["", "", ".. rubric:: Attributes", ""]  # Two empty lines end a section.
        elif is_attribute and re.fullmatch(r"-{3,}\s*", line):
            pass
        elif entry and is_attribute:
            names = ", ".join(f"``{name}``" for name in entry[1].split(", "))
            found.append(f"* {names} – {entry[2]}")
        elif is_attribute and re.fullmatch(r"\w+(, \w+)*", line):
            found.append("* " + re.sub(r"\w+", r"``\g<0>``", line))
        elif entry:
            found += [entry[1], f"    {entry[2]}"]
        elif is_attribute and line.startswith("    "):
            found.append(line[2:])
        elif is_list and line.startswith(">>>"):
            section = None
            found += ["Examples", "--------", line]
        else:
            found.append(line)
    return found


def literal_formulas(lines):
    """An indented block in the text before the first section is shown as it stands."""
    found, is_inside = [], False
    for number, line in enumerate(lines):
        before = lines[number - 1].strip() if number else ""
        under = lines[number + 1] if number + 1 < len(lines) else ""
        if re.fullmatch(r"-{3,}\s*", under):
            return found + lines[number:]
        is_indented = line.startswith("    ")
        is_item = bool(found) and re.match(r"\s*([-*|]|>>>|\.\.) ?", line)
        if is_indented and not before and not is_inside and number and not is_item and not after_item(found):
            found += ["::", ""]
            is_inside = True
        elif line.strip() and not is_indented:
            is_inside = False
        found.append(line)
    return found


def after_item(found):
    """Whether the last line that is not empty belongs to a list, or to a block that Sphinx reads itself."""
    last = next((line for line in reversed(found) if line.strip()), "")
    return bool(re.match(r"\s*([-*]|\d+\.|\.\.|>>>|\|)", last)) or last.rstrip().endswith("::")


def plain_signs(lines):
    """No bar is a substitution, and no ``coef_`` a link; what is shown as it stands is left alone."""
    found, is_example, is_literal = [], False, False
    for line in lines:
        is_example = line.lstrip().startswith(">>>") or (is_example and bool(line.strip()))
        is_literal = line.strip() == "::" or (is_literal and (not line.strip() or line.startswith("    ")))
        found.append(line if is_example or is_literal else plain(line))
    return found


def plain(line):
    """A line of text, but for what is code in it."""
    parts = re.split(r"(``.*?``|`.*?`)", line)
    return "".join(part if part[:1] == "`" else escaped(part) for part in parts)


def escaped(text):
    """Signs that reStructuredText would read are themselves."""
    return re.sub(r"\b(\w+)_(?!\w)", r"\1\\_", text.replace("|", r"\|"))


def on_pages(lines):
    """What the sources say of long runs has a page of its own."""
    there = r"``mercer\.estimators\.shared\.iterative``|`estimators\.shared\.iterative`"
    return [re.sub(there, ":doc:`the learners </learners>`", line) for line in lines]


def is_ours(obj):
    """Whether a docstring is one of mercer's; properties and instances are named by what holds them."""
    holder = getattr(obj, "fget", None) or getattr(obj, "__func__", None) or obj
    module = holder.__name__ if inspect.ismodule(holder) else getattr(holder, "__module__", None)
    return module is None or str(module).startswith("mercer")


def process(app, what, name, obj, options, lines):
    """Before napoleon reads the sections."""
    if is_ours(obj):
        lines[:] = whole_entries(literal_formulas(on_pages(lines)))


def process_last(app, what, name, obj, options, lines):
    """After napoleon has read them."""
    lines[:] = plain_signs(lines)


def without_any(app, domain, kind, content):
    """That a parameter may be of any type need not be said: its text tells what it is."""
    from docutils import nodes

    for field in list(content.findall(nodes.field)):
        name, body = field.children
        if name.astext().startswith(("type ", "rtype")) and body.astext() in ("Any", "None"):
            field.parent.remove(field)


def setup(app):
    """Connect them."""
    app.connect("autodoc-process-docstring", process, priority=100)
    app.connect("autodoc-process-docstring", process_last, priority=900)
    app.connect("object-description-transform", without_any, priority=600)
    return {"parallel_read_safe": True}
