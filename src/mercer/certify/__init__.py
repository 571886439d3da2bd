"""Is it a kernel? Verdicts with their reasons."""

from mercer.certify.certify import Certificate, certify

__all__ = ["Certificate", "certify"]
