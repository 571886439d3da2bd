"""A certificate in a notebook: the verdict, and its proof, step by step; or the points that refute it."""

from __future__ import annotations

from itertools import islice

from mercer.certify.certificate import Certificate
from mercer.certify.proof import Step
from mercer.notebook.markup import code, escape, folded, frame

_STEPS = 200  # so many steps of a proof are shown
_UNFOLDED = 2  # levels that are open at first


def html(certificate: Certificate) -> str:
    """The certificate for a notebook."""
    colour = {"proved": "#12a07a", "refuted": "#d5701a"}.get(certificate.verdict, "currentColor")
    said = "".join(f"<div>{escape(line)}</div>" for line in certificate.statements())
    parts = [f'<div style="border-left:4px solid {colour};padding-left:0.6em">{said}</div>']
    parts += [
        _proof(steps) for steps in (certificate.steps, certificate.conditional_steps) if steps is not None
    ]
    witness = certificate.witness()
    parts += (
        [folded("the witness", "".join(f"<div>{code(line)}</div>" for line in witness), True)]
        if witness
        else []
    )
    return frame(*parts)


def _proof(steps: Step) -> str:
    count = sum(1 for _ in islice(steps.walk(), _STEPS + 1))
    if count > _STEPS:
        return f"<div>the proof has more than {_STEPS} steps: print the certificate to read them</div>"
    return _step(steps, 0)


def _step(step: Step, level: int) -> str:
    needs = "".join(f" [{escape(need)}]" for need in step.needs)
    inside = "".join(_step(part, level + 1) for part in step.parts)
    return folded(f"{code(step.subject)}: {escape(step.rule)}{needs}", inside, level < _UNFOLDED)
