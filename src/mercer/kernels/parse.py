r"""A kernel from a line of text, as one types it in a shell: ``2*gaussian(sigma=median) + polynomial(3)``.

>>> parse_kernel("2*gaussian(sigma=median) + polynomial(3)")
2 * Gaussian(sigma='median') + Polynomial(degree=3, c=1.0)
>>> parse_kernel("gausian(1) + linear")
Traceback (most recent call last):
mercer.errors.InputError: cannot read the kernel: there is no kernel 'gausian', did you mean 'gaussian'?
    gausian(1) + linear
    ^^^^^^^

The text is taken apart by Python's own grammar and never evaluated: what is not a number, a text, a list, a
known kernel, one of the operations + * / ** or one of a few methods is refused.
"""

from __future__ import annotations

import ast
import inspect
import math
import operator
import warnings
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

from mercer.errors import InputError, InputTypeError
from mercer.kernels.base import Kernel
from mercer.kernels.compose import Negative
from mercer.kernels.names import NAMES, as_kernel
from mercer.kernels.parameters import Parameter

#: A line of text is a formula that somebody typed: longer or deeper ones are written in Python.
_MOST_CHARACTERS, _DEEPEST_NESTING = 4000, 40
_SHOWN_CHARACTERS = 76  # An error shows so many characters of the text: a line of a terminal.

#: kernels that ``repr`` prints by name and that are not among the public names
COMPOSED = {"PolynomialOf": "mercer.kernels.compose", "Derivative": "mercer.kernels.derivative"}
#: scikit-learn's names that are no class of ours, with the order of what may stand in their brackets
_SKLEARN = {"rbf": ("gamma",), "poly": ("degree", "coef0", "gamma"), "chi2": ("gamma",)}
#: scikit-learn's words for parameters that have other names here
_SYNONYMS = {"Polynomial": {"coef0": "c"}, "Sigmoid": {"gamma": "eta", "coef0": "nu"}}
_METHODS = {
    "normalized": "normalized",
    "normalised": "normalized",
    "centered": "centered",
    "centred": "centered",
}
_METHODS |= {name: name for name in ("on", "exp", "polynomial", "derivative")}
#: The parameter for which a bare name is a word, even where a kernel has that name.
_ANY = Parameter(None, "", lambda value: True, "")
_NUMBERS = {"inf": math.inf, "pi": math.pi}
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def parse_kernel(text: str, follow_data: bool = True, *, signs: bool = False) -> Kernel:
    r"""The kernel that a text describes.

    - names of kernels in any case, with or without underscores, and scikit-learn's ("rbf", "poly", "chi2").
      A name without brackets is what ``kernel="…"`` of an estimator means: widths that follow the data.
      With ``follow_data=False`` it is the class with its defaults
    - parameters by position and by name; words ("median", "scale") with or without quotes; lists, and
      kernels inside kernels
    - ``+``, ``*``, ``/``, ``**`` and numbers; ``exp(k)``; ``.normalized()``, ``.centered()``, ``.exp()``,
      ``.on("age", "height")``, ``.polynomial([1, 2])``, ``.derivative("sigma")``

    With ``signs`` differences and negative multiples are read, too: what is to be certified need not be a
    kernel. What ``repr(kernel)`` prints is read back, unless it holds a function or a large array.

    >>> parse_kernel("setkernel(gaussian(1), mean) * bag_of_words(weighting='tf-idf').normalized()")
    SetKernel(base=Gaussian(sigma=1), normalize='mean') * BagOfWords(n=1, shortest=1, weighting='tf-idf', ...
    >>> parse_kernel("rbf"), parse_kernel("poly(2, coef0=1)"), parse_kernel("Delta.on(city)")
    (Gaussian(gamma='scale'), Polynomial(degree=2, c=1, gamma='scale'), Delta().on('city'))
    """
    if not isinstance(text, str):
        raise InputTypeError(
            f"a kernel is written as a text, got {text!r}: pass one such as 'gaussian(sigma=median)'"
        )
    line = text.replace("\n", " ").replace("\r", " ").strip()
    if not line:
        raise InputError("the text of the kernel is empty: pass one such as 'gaussian(sigma=median)'")
    if len(line) > _MOST_CHARACTERS:
        raise InputError(
            f"the text of the kernel has {len(line):,} characters, more than {_MOST_CHARACTERS:,}: "
            "write it in Python"
        )
    reader = _Reader(line, follow_data, signs)
    found = reader.expression(reader.tree.body, 0)
    if not isinstance(found, Kernel):
        what = f"the number {found!r}" if isinstance(found, int | float) else repr(found)
        reader.refuse(reader.tree.body, f"{what} is not a kernel; Constant({found!r}) would be one")
    return found


def kernel_names() -> dict[str, str]:
    """The names a text may use, as one would type them, and the Python names of the classes.

    >>> kernel_names()["bagofwords"], kernel_names()["rbf"]
    ('BagOfWords', 'rbf')
    """
    import mercer  # This loads the public names only.

    names = {}
    for name in mercer.__all__:
        here = vars(mercer).get(name)
        is_later = mercer._LATER.get(name, "").startswith("mercer.kernels.") and name[0].isupper()
        if is_later or (isinstance(here, type) and issubclass(here, Kernel) and here is not Kernel):
            names[name.lower()] = name
    return {**names, **{name.lower(): name for name in COMPOSED}, **{name: name for name in _SKLEARN}}


def _signed(
    op: ast.operator, compute: Callable[[Any, Any], Any], left: Any, right: Any
) -> tuple[Callable[[Any, Any], Any], Any, Any]:
    """The same operation with its minus signs as `Negative`."""
    if not isinstance(left, Kernel) and not isinstance(right, Kernel):
        return compute, left, right
    if isinstance(op, ast.Sub):
        right = Negative(right) if isinstance(right, Kernel) else -right
        op, compute = ast.Add(), operator.add
    if isinstance(op, ast.Add):
        return compute, _as_term(left), _as_term(right)
    for one, other in ((left, right), (right, left)):
        if isinstance(op, ast.Mult | ast.Div) and not isinstance(one, Kernel) and one < 0:
            return compute, *((-one, Negative(other)) if one is left else (Negative(other), -one))
    return compute, left, right


def _as_term(value: Any) -> Any:
    """A negative number in a sum, as the negative of a constant kernel."""
    if isinstance(value, Kernel) or value >= 0:
        return value
    from mercer.kernels.vectors.dotproduct import Constant

    return Negative(Constant(-value))


class _Reader:
    """Goes through the tree of a text. Values are kernels, numbers, words, lists and dicts of those."""

    def __init__(self, line: str, follow_data: bool, signs: bool = False) -> None:
        self.line, self._follow_data, self._signs = line, follow_data, signs
        self.names = kernel_names()
        try:
            with warnings.catch_warnings():
                # Escapes in patterns and numbers that touch a word would warn.
                warnings.simplefilter("ignore")
                self.tree = ast.parse(line, mode="eval")
        except SyntaxError as error:
            start = min(max((error.offset or 1) - 1, 0), len(line))
            what = (
                "a bracket or a quote is not closed"
                if _is_open(error)
                else (error.msg or "it is no expression")
            )
            self._fail(start, start + 1, f"{what}; write e.g. gaussian(1) + linear")
        except (ValueError, MemoryError, RecursionError, OverflowError) as error:
            raise InputError(f"cannot read the kernel: {error or type(error).__name__}") from None

    # --- errors ------------------------------------------------------------------------------------------

    def refuse(self, node: ast.AST, what: str) -> NoReturn:
        """An error that points at a place of the text."""
        raw = self.line.encode()
        ends = (getattr(node, "col_offset", 0), getattr(node, "end_col_offset", None) or len(raw))
        # Python counts bytes, not characters.
        start, stop = (len(raw[:end].decode(errors="ignore")) for end in ends)
        self._fail(start, stop, what)

    def _fail(self, start: int, stop: int, what: str) -> NoReturn:
        first = max(0, min(start - _SHOWN_CHARACTERS // 2, len(self.line) - _SHOWN_CHARACTERS))
        last = min(len(self.line), first + _SHOWN_CHARACTERS)
        before, after = "…" if first else "", "…" if last < len(self.line) else ""
        marks = "^" * max(1, min(stop, last) - start)
        shown = "".join(letter if letter.isprintable() else "?" for letter in self.line[first:last])
        raise InputError(
            f"cannot read the kernel: {what}\n"
            f"    {before}{shown}{after}\n"
            f"    {' ' * (start - first + len(before))}{marks}"
        ) from None

    def _attempt(self, node: ast.AST, build: Callable[..., Any], *values: Any, **named: Any) -> Any:
        try:
            return build(*values, **named)
        except ZeroDivisionError:
            self.refuse(node, "nothing is divided by zero")
        except OverflowError:
            self.refuse(node, "a number is too large")
        except RecursionError:
            self.refuse(node, "it is nested too deeply: write the kernel in Python")
        except (TypeError, ValueError) as error:  # The kernel refuses a parameter in its own words.
            self.refuse(node, str(error))

    # --- expressions -------------------------------------------------------------------------------------

    def _require_shallow(self, node: ast.AST, depth: int) -> None:
        if depth > _DEEPEST_NESTING:
            self.refuse(node, f"it is nested more than {_DEEPEST_NESTING} deep: write the kernel in Python")

    def expression(self, node: ast.AST, depth: int) -> Any:
        """A kernel or a number."""
        self._require_shallow(node, depth)
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return number
            case ast.Name(id=name):
                return _NUMBERS[name] if name in _NUMBERS else self._named(node, name)
            case ast.BinOp():
                return self._chain(node, depth)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                value = self.expression(operand, depth + 1)
                if self._signs and isinstance(value, Kernel) and isinstance(sign, ast.USub):
                    return Negative(value)
                return self._attempt(node, operator.neg if isinstance(sign, ast.USub) else _same, value)
            case ast.Call(func=ast.Name(id=name)):
                return self._call(node, name, depth)
            case ast.Call(func=ast.Attribute(value=inner, attr=method)):
                return self._method(node, self.expression(inner, depth + 1), method, depth)
            case ast.Attribute(attr=method) if method.lower() in _METHODS:
                self.refuse(node, f"{method} is a method: write .{method}()")
        self.refuse(node, "this is neither a kernel nor a number")

    def _chain(self, node: ast.BinOp, depth: int) -> Any:
        """a + b + c + …, which is as deep as it is long, from left to right."""
        links: list[ast.BinOp] = []
        first: ast.AST = node
        while isinstance(first, ast.BinOp):
            links.append(first)
            first = first.left
        value = self.expression(first, depth + 1)
        for link in reversed(links):
            if isinstance(link.op, ast.MatMult):
                self.refuse(link, "a map φ in k @ φ is a function: write the kernel in Python")
            value = self._operation(link, link.op, value, self.expression(link.right, depth + 1))
        return value

    def _operation(self, node: ast.AST, op: ast.operator, left: Any, right: Any) -> Any:
        compute = _OPERATIONS.get(type(op))
        if compute is None:
            self.refuse(node, "kernels are combined by + * / ** and numbers")
        if isinstance(op, ast.Pow) and isinstance(right, Kernel):
            self.refuse(node, "the exponent of a kernel is a number")
        if isinstance(op, ast.Pow) and not isinstance(left, Kernel):
            left, right = float(left), float(right)  # Whole numbers would grow without bound.
        if self._signs:
            compute, left, right = _signed(op, compute, left, right)
        value = self._attempt(node, compute, left, right)
        if isinstance(value, complex):
            self.refuse(node, "the power of a negative number is not real")
        return value

    def _named(self, node: ast.AST, name: str) -> Kernel:
        """A name without brackets: as scikit-learn's where there is one, with the defaults otherwise."""
        key = _key(name)
        if key in NAMES and (self._follow_data or key in _SKLEARN):
            return as_kernel(key)
        kind = self._class(node, name)
        return self._attempt(node, kind)

    def _class(self, node: ast.AST, name: str) -> Any:
        key = _key(name)
        if key not in self.names:
            if key in _METHODS:
                self.refuse(node, f"{name} comes after a kernel: gaussian(1).{_METHODS[key]}(…)")
            starting = sorted(known for known in self.names if len(key) > 2 and known.startswith(key))
            near = starting or get_close_matches(key, self.names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "there are gaussian, laplacian, linear, poly, …"
            self.refuse(node, f"there is no kernel {name!r}, {hint}")
        known = self.names[key]
        return getattr(import_module(COMPOSED.get(known, "mercer")), known)

    # --- calls -------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call, name: str, depth: int) -> Any:
        key = _key(name)
        if key == "exp":
            if len(node.args) != 1 or node.keywords:
                self.refuse(node, "exp takes one kernel: exp(k)")
            return self._method(node, self.expression(node.args[0], depth + 1), "exp", depth, arguments=False)
        if key in _SKLEARN:
            order: tuple[str, ...] = _SKLEARN[key]
            given = self._arguments(node, order, {}, {}, depth)
            return self._attempt(node, as_kernel, key, **given)
        kind = self._class(node.func, name)
        parameters = inspect.signature(kind).parameters
        several = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters.values())
        order = tuple(parameters) if not several else ()
        synonyms = {**_SYNONYMS.get(kind.__name__, {}), **kind.aliases}
        given = self._arguments(node, order, kind.parameters, synonyms, depth)
        return self._attempt(node, kind, **given)

    def _arguments(
        self,
        node: ast.Call,
        order: tuple[str, ...],
        declared: Mapping[str, Parameter],
        synonyms: dict[str, str],
        depth: int,
    ) -> dict[str, Any]:
        """What stands in the brackets, by the names of the parameters."""
        takes = f"it takes {', '.join(order)}" if order else "it takes none"
        if len(node.args) > len(order):
            self.refuse(node.args[len(order)], f"there is no parameter for this: {takes}")
        items = list(zip(order, node.args, strict=False))
        for keyword in node.keywords:
            name = synonyms.get(keyword.arg or "", keyword.arg)
            if name is None:
                self.refuse(keyword.value, "parameters are given one by one")
            if name not in order:
                near = get_close_matches(name, [*order, *synonyms], n=1)
                hint = f"did you mean {near[0]!r}?" if near else takes
                self.refuse(keyword, f"there is no parameter {name!r}: {hint}")
            if any(name == other for other, _ in items):
                self.refuse(keyword, f"{name} is given twice")
            items.append((name, keyword.value))
        return {name: self.value(value, declared.get(name), name, depth + 1) for name, value in items}

    def _method(self, node: ast.Call, kernel: Any, method: str, depth: int, arguments: bool = True) -> Kernel:
        name = _METHODS.get(method.lower())
        if name is None:
            near = get_close_matches(method.lower(), _METHODS, n=1)
            hint = (
                f"did you mean .{near[0]}()?"
                if near
                else f"there are {', '.join(sorted(set(_METHODS.values())))}"
            )
            self.refuse(node.func, f"a kernel has no method {method!r} here: {hint}")
        if not isinstance(kernel, Kernel):
            self.refuse(node.func, f"{name} is a method of kernels, not of {kernel!r}")
        values = [self.value(value, _ANY, "", depth + 1) for value in node.args] if arguments else []
        if node.keywords:
            self.refuse(node.keywords[0], f"{name} takes its values without names")
        if name == "on":
            if not values:
                self.refuse(node, "on needs columns: .on('age', 'height') or .on(0, 1)")
            return self._attempt(node, kernel.on, *values)
        wanted = int(name in ("polynomial", "derivative"))
        if len(values) != wanted:
            example = f".{name}(…)" if wanted else f".{name}()"
            self.refuse(
                node, f"{name} takes {'one value' if wanted else 'nothing in its brackets'}: {example}"
            )
        return self._attempt(node, getattr(kernel, name), *values)

    # --- values in brackets ------------------------------------------------------------------------------

    def value(self, node: ast.AST, parameter: Parameter | None, name: str, depth: int) -> Any:
        """A number, a word, a list, a dict or a kernel; ``parameter`` decides what a bare name is."""
        self._require_shallow(node, depth)
        match node:
            case ast.Constant(value=str() | bool() | None as plain):
                return plain
            case ast.Name(id=word):
                return self._word(node, word, parameter, name)
            case ast.BinOp(left=ast.Name(id=first), op=ast.Sub(), right=ast.Name(id=second)):
                # This is a word such as tf-idf.
                return self._word(node, f"{first}-{second}", parameter, name)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                inner = parameter if parameter is _ANY else None
                values = [self.value(item, inner, name, depth + 1) for item in items]
                return values if isinstance(node, ast.List) else tuple(values)
            case ast.Dict(keys=keys, values=entries):
                if not all(keys):
                    self.refuse(node, "the entries of a dict are given one by one")
                found = [self.value(key, _ANY, name, depth + 1) for key in keys if key is not None]
                if any(isinstance(key, list | dict | Kernel) for key in found):
                    self.refuse(node, "the keys of a dict are numbers, names, or tuples of these")
                return dict(zip(found, (self.value(v, None, name, depth + 1) for v in entries), strict=True))
        return self.expression(node, depth)

    def _word(self, node: ast.AST, word: str, parameter: Parameter | None, name: str) -> Any:
        """A bare name: a word where the parameter takes it, else a number or a kernel of that name."""
        if parameter is not None:
            try:
                parameter.check(name, word)
                return word
            except InputError:
                pass
        if word in _NUMBERS:
            return _NUMBERS[word]
        is_kernel = _key(word) in self.names or _key(word) in NAMES
        return self._named(node, word) if is_kernel else word


def _key(name: str) -> str:
    return name.lower().replace("_", "")


def _same(value: object) -> Any:
    return value


def _is_open(error: SyntaxError) -> bool:
    return any(words in (error.msg or "") for words in ("was never closed", "unterminated", "unexpected EOF"))
