"""Linear systems with K: ridge regression, factorisations, conjugate gradients."""
