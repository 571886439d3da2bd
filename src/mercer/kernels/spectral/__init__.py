"""Kernels given by their Fourier side, and how their integrals are computed."""
