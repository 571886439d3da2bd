"""LaTeX read back: the value of a printed formula, by its text alone."""

import re
from math import gamma, pi

import numpy as np
from scipy.special import kv

_TOKEN = re.compile(r"\\[A-Za-z]+\{cases\}|\\[A-Za-z]+|\\.|[A-Za-z]'?|\d+(?:\.\d+)?|\S")
_SPACES = {r"\,", r"\;", r"\ ", r"\quad"}
_ENDS = {*"+-,)]}&|>=", r"\\", r"\right", r"\rVert", r"\rangle", r"\le", r"\text", r"\end{cases}"}
_FUNCTIONS = {
    **{rf"\{name}": getattr(np, name) for name in ("exp", "log", "sin", "cos", "tanh", "arccos")},
    r"\min": np.minimum, r"\max": np.maximum, r"\Gamma": gamma,
}  # fmt: skip


def value(text, x, y):
    """The number that a whole line k(x, x') = … stands for, at two points."""
    given = {"x": np.asarray(x, dtype=float), "x'": np.asarray(y, dtype=float), r"\pi": pi}
    if text.startswith(r"\begin{aligned}"):
        text = text.removeprefix(r"\begin{aligned}").removesuffix(r"\end{aligned}")
        first, *rest = (line.replace("&=", "=").strip() for line in _lines(text))
    else:
        first, *rest = text.split(r", \quad ")
    definitions = {}
    for line in rest:
        for part in re.split(r",\\; ", line):
            name, meaning = part.split(" = ", 1)
            definitions[name] = meaning
    return _Reader(first.split(" = ", 1)[1], given, definitions).all()


def _lines(text):
    """The lines of an aligned block, those of cases kept together."""
    lines, depth = [""], 0
    for piece in re.split(r"(\\begin\{cases\}|\\end\{cases\}| \\\\ )", text):
        depth += (piece == r"\begin{cases}") - (piece == r"\end{cases}")
        if piece == r" \\ " and not depth:
            lines.append("")
        else:
            lines[-1] += piece
    return lines


class _Reader:
    def __init__(self, text, given, definitions):
        self.tokens = [token for token in _TOKEN.findall(text) if token not in _SPACES]
        self.at, self.given, self.definitions = 0, given, definitions

    @property
    def next(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, *expected):
        token = self.next
        assert not expected or token in expected, (token, expected, self.tokens[self.at :])
        self.at += 1
        return token

    def all(self):
        found = self.sum()
        assert not self.next, self.tokens[self.at :]
        return found

    def sum(self):
        sign = -1.0 if self.next == "-" else 1.0
        if sign < 0:
            self.take()
        total = sign * self.product()
        while self.next in ("+", "-"):
            sign = 1.0 if self.take() == "+" else -1.0
            total = total + sign * self.product()
        return total

    def product(self):
        total = self.factor()
        while self.next and self.next not in _ENDS:
            if self.next in (r"\cdot", r"\odot"):
                self.take()
            total = total * self.factor()
        return total

    def factor(self):
        base = self.atom()
        if self.next == "^":
            self.take()
            base = base ** self.group()
        return base

    def group(self):
        self.take("{")
        found = self.sum()
        self.take("}")
        return found

    def atom(self):
        token = self.take()
        if token == r"\left":
            token = self.take()
        if re.fullmatch(r"\d+(\.\d+)?", token):
            return float(token)
        if token == r"\frac":
            above = self.group()
            return above / self.group()
        if token == r"\sqrt":
            return np.sqrt(self.group())
        if token == "(":
            return self.bracket()
        if token == "[":
            return self.condition("]")
        if token == "|":
            found = abs(self.sum())
            self.close("|")
            return found
        if token == r"\lVert":
            inside = self.sum()
            self.close(r"\rVert")
            if self.next == "_":
                self.take()
                assert self.group() == 1
                return np.abs(inside).sum()
            return np.linalg.norm(inside)
        if token == r"\langle":
            left = self.sum()
            self.take(",")
            right = self.sum()
            self.close(r"\rangle")
            return left @ right
        if token in _FUNCTIONS:
            return self.function(_FUNCTIONS[token])
        if token == "K":
            self.take("_")
            order = self.group()
            return kv(order, self.bracket(opened=False))
        if token in (r"\sum", r"\prod"):
            return self.series(np.sum if token == r"\sum" else np.prod)
        if token == r"\begin{cases}":
            return self.cases()
        return self.symbol(token)

    def close(self, mark):
        if self.next == r"\right":
            self.take()
        self.take(mark)

    def bracket(self, opened=True):
        if not opened:
            self.take(r"\left")
            self.take("(")
        found = self.sum()
        self.close(")")
        if self.next == "_":  # the positive part
            for mark in ("_", "{", "+", "}"):
                self.take(mark)
            return np.maximum(found, 0.0)
        return found

    def condition(self, mark):
        left = self.sum()
        how = self.take(r"\le", ">", "=")
        right = self.sum()
        if mark:
            self.close(mark)
        return float(
            {r"\le": np.all(left <= right), ">": np.all(left > right), "=": np.all(left == right)}[how]
        )

    def function(self, function):
        power = 1.0
        if self.next == "^":
            self.take()
            power = self.group()
        self.take(r"\left")
        self.take("(")
        arguments = [self.sum()]
        while self.next == ",":
            self.take()
            arguments.append(self.sum())
        self.close(")")
        return function(*arguments) ** power

    def series(self, combine):
        for mark in ("_", "{", "j"):
            self.take(mark)
        which = range(len(self.given["x"]))
        if self.next == r"\in":
            self.take(), self.take(r"\{")
            which = [int(self.take())]
            while self.next == ",":
                self.take(), which.append(int(self.take()))
            self.take(r"\}")
        self.take("}")
        start, terms = self.at, []
        for j in which:
            self.at, self.given["j"] = start, j
            terms.append(self.product())
        return combine(terms)

    def cases(self):
        found, is_decided = 0.0, False
        while True:
            shown = self.sum()
            self.take("&")
            self.take(r"\text"), self.take("{")
            word = ""
            while self.next != "}":
                word += self.take()
            self.take("}")
            holds = word == "otherwise"
            while not holds:
                holds = bool(self.condition(None))
                if self.next != r"\text":
                    break
                for mark in (r"\text", "{", "o", "r", "}"):
                    self.take(mark)
            while self.next not in (r"\\", r"\end{cases}"):  # what stands behind an "or" that is decided
                self.take()
            if holds and not is_decided:
                found, is_decided = shown, True
            if self.take(r"\\", r"\end{cases}") == r"\end{cases}":
                return found

    def symbol(self, name):
        if name == r"\mathrm":
            return self.named(r"\mathrm{" + self.word() + "}")
        if self.next == "_":
            self.take(), self.take("{")
            inside = []
            while self.next != "}":
                inside.append(self.take())
            self.take("}")
            if name in ("x", "x'"):
                index = [self.given["j"] if i == "j" else int(i) for i in inside if i != ","]
                return self.given[name][index[0] if inside == ["j"] else index]
            name += f"_{{{''.join(inside)}}}"
        return self.named(name)

    def word(self):
        self.take("{")
        text = ""
        while self.next != "}":
            text += self.take()
        self.take("}")
        return text

    def named(self, name):
        if name not in self.given:
            meaning = self.definitions[name]
            if numbers := re.fullmatch(r"\\left\(([\d., ]+)\\right\)", meaning):  # one for each column
                self.given[name] = np.array([float(number) for number in numbers[1].split(", ")])
            else:
                self.given[name] = _Reader(meaning, self.given, self.definitions).all()
        return self.given[name]
