"""Eigenvalue problems: principal components, Fisher's discriminant, pre-images."""
