"""Choosing kernels, their parameters and penalties, and an honest estimate of the error of the choice."""
