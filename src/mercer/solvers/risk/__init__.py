"""Regularised risks with any convex loss: Newton, descent, multipliers, and their certificates."""
