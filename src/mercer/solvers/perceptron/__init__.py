"""Perceptrons: lists of mistakes, on K or on vectors, with a budget or without."""
