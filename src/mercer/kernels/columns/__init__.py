"""Kernels on tables with columns of several kinds."""
