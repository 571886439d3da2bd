r"""What the kernel makes of the data: its matrix, its spectrum, and f on planes of feature space."""

from __future__ import annotations

from mercer.data import points as data
from mercer.plots.boundary import DecisionBoundaryDisplay
from mercer.plots.gram import GramDisplay
from mercer.plots.spectrum import SpectrumDisplay
from mercer.reporting.case import Case
from mercer.reporting.page import Html, figures, paragraph
from mercer.reporting.picture import Pictures

#: Points in the pictures of K, of its eigenvalues and of a plane, at most: more cannot be told apart.
_SHOWN, _SPECTRUM, _PLANE = 300, 500, 400
#: classes whose regions have colours that can be told apart
_CLASSES = 12


def matrix_section(case: Case, pictures: Pictures) -> list[Html]:
    """The Gram matrix by class, and its eigenvalues."""
    y = case.y if case.is_class or (case.is_regression and case.y.ndim == 1) else None
    shown, spectrum = case.afford(_SHOWN, 1.0), case.afford(_SPECTRUM, 1.5)
    by = "by class" if case.is_class else "by the target" if y is not None else "as they came"
    drawn = [
        pictures.draw(
            lambda ax: GramDisplay.from_kernel(
                case.found.kernel, case.points, y, most=shown, seed=case.seed, ax=ax
            ),
            "The Gram matrix",
            f"Bright where two points are alike, ordered {by}."
            + (" Bright blocks on the diagonal: the kernel sees the classes." if case.is_class else ""),
            height=3.3,
        ),
        pictures.draw(
            lambda ax: SpectrumDisplay.from_kernel(
                case.found.kernel,
                case.points,
                penalty=case.found.penalty,
                most=spectrum,
                seed=case.seed,
                ax=ax,
            ),
            "The spectrum",
            "How fast the eigenvalues fall says how simple the data are for this kernel; directions below "
            "the penalty are given up.",
            height=3.3,
        ),
    ]
    if case.n <= shown:
        return [figures(*drawn)]
    note = f"From about {shown} (matrix) and {min(case.n, spectrum)} (spectrum) of {case.n:,} {case.unit}."
    return [figures(*drawn), paragraph(note)]


def plane_section(case: Case, pictures: Pictures) -> list[Html]:
    """f on planes of feature space, where its values are exact and its level lines straight."""
    y = case.y if case.is_class or (case.is_regression and case.y.ndim == 1) else None
    classes = len(set(case.y.tolist())) if case.is_class else 0
    if classes > _CLASSES:
        return [paragraph(f"The regions of {classes} classes are too many to be told apart in a picture.")]
    most = min(case.afford(_PLANE, 1.0), case.afford_values(_PLANE, 1.0))

    def plane(kind: str, what: str, caption: str) -> Html:
        model, X = (case.model, case.X) if kind == "auto" else case.inside
        return pictures.draw(
            lambda ax: DecisionBoundaryDisplay.from_estimator(
                model, X, y, plane=kind, most=most, seed=case.seed, ax=ax
            ),
            what,
            caption,
            height=3.5,
        )

    drawn = []
    is_one = case.found.learner.expansion_.coef.ndim == 1 and hasattr(case.model, "predict")
    is_one = is_one and not case.is_regression
    if data.n_columns(case.X) == 2 and not case.is_regression:
        drawn.append(
            plane("auto", "The plane of the data", "The data themselves, and what is predicted where.")
        )
    drawn.append(
        plane(
            "principal",
            "The principal plane",
            "The plane of feature space along which the points vary most. "
            + (
                "Colours behind are f on that plane, those of the points their targets."
                if case.is_regression
                else "Colours behind are f on that plane; the points lie above and below it, so that some "
                "seem to be on a wrong side."
            ),
        )
    )
    if is_one:
        drawn.append(
            plane(
                "normal",
                "The plane of the boundary's normal",
                "To the right as far as f says: left and right of the line are the two predictions, exactly."
                + ("" if case.is_class else " What is on the left is novel."),
            )
        )
    return [figures(*drawn)]
