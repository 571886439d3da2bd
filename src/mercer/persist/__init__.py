r"""Model files: one file for a fitted model, which runs no code when it is loaded.

Experimental: names and results may change from one version to the next (README.md).

>>> import tempfile, pathlib
>>> from mercer import SVC, Polynomial
>>> model = SVC(kernel=Polynomial(2)).fit([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]], [1, 0, 1, 0])
>>> path = pathlib.Path(tempfile.mkdtemp()) / "xor.mercer"
>>> save(model, path)
>>> load(path).predict([[2.0, 2.0], [2.0, -2.0]])
array([1, 0])

A file begins with three lines of text: what it is and the version of the format, a checksum of what follows,
and a description in JSON (``describe``). The rest is an archive of skops. ``known`` says what may be in it.
"""

from __future__ import annotations

from typing import Any

from mercer.data.types import Model
from mercer.errors import InputError
from mercer.persist import archive, envelope
from mercer.persist.known import trust
from mercer.persist.trusted import trusted_types
from mercer.persist.walk import pack, unpack

__all__ = ["describe", "load", "save", "trusted_types"]


def save(model: Model, path: Any, *, trusted: Any = ()) -> None:
    """Write a model to a file: an estimator, a pipeline, a kernel, an Expansion, or a dict of such.

    Parameters
    ----------
    model : fitted or not; what it consists of must be classes of mercer and scikit-learn, arrays, data frames
        and plain Python. Functions are stored by name, and only those of mercer, NumPy, scipy.special and
        sklearn.metrics: a model file holds no code
    path : where to; a file that is there is replaced at once, when all is written
    trusted : classes and functions of yours that the model needs, e.g. a kernel of your own. Whoever loads
        the file must pass them too

    >>> from mercer import FromFunction
    >>> save(FromFunction(lambda a, b: 1.0), "model.mercer")
    Traceback (most recent call last):
    mercer.errors.InputError: model.function: a model file holds no code, and this is the function ...
    """
    own = trust(trusted)
    place = envelope.as_path(path)
    try:
        payload = archive.write(pack(model, own))
        archive.audit(payload, own)  # What is written can then be read.
    except (InputError, ImportError):
        raise
    except RecursionError:
        raise InputError(
            "the model is nested too deeply, or holds itself: it cannot be written to a file"
        ) from None
    except Exception as error:
        raise InputError(f"the model cannot be written to a file: {error}") from error
    kind = type(model)
    envelope.write(place, payload, {"kind": kind.__name__, "class": f"{kind.__module__}.{kind.__qualname__}"})


def load(path: Any, *, trusted: Any = ()) -> Any:
    """The model in a file that ``save`` has written; it predicts what it did then, to the last bit.

    No code of the file is run, for it has none. A file that is not whole, was changed, is of another kind or
    of a later version of mercer is refused.

    Parameters
    ----------
    path : the file
    trusted : classes and functions of yours that the model was saved with
    """
    own = trust(trusted)
    place = envelope.as_path(path)
    about, payload = envelope.read(place)
    try:
        return unpack(archive.read(payload, own), own)
    except ImportError:
        raise
    except InputError as error:
        raise InputError(f"{str(place)!r} cannot be loaded: {error}{envelope.later(about)}") from None
    except Exception as error:
        written = f"mercer {about.get('mercer')} and skops {about.get('skops')}"
        raise InputError(
            f"{str(place)!r} cannot be loaded: its content does not fit together ({type(error).__name__}); "
            f"it was written by {written}: save the model again{envelope.later(about)}"
        ) from error


def describe(path: Any) -> dict[str, Any]:
    """What a model file says about itself: the kind of the model, and the versions it was written with.

    The checksum is verified; the model is not loaded.
    """
    return envelope.read(envelope.as_path(path))[0]
