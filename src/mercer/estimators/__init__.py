"""Estimators: scikit-learn classes. Validate → Gram → solver → Expansion; no numerics of their own."""
