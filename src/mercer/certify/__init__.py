"""Is it a kernel? Verdicts with their reasons, spectra, and repair."""

from mercer.certify.bochner import density
from mercer.certify.certify import Certificate, certify
from mercer.certify.repair import repair
from mercer.certify.schoenberg import largest_dimension

__all__ = ["Certificate", "certify", "density", "largest_dimension", "repair"]
