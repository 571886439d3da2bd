r"""Problems restricted to landmarks: f = Σⱼ βⱼ k(zⱼ, ·) + b for M points zⱼ, whatever the number n of data.

K(X, Z), by passes ─> features ─> ridge, newton, multipliers ─> β, b and how far from the minimum
(gram.blocks)         φ = T⁻ᵀk(Z,·)   a linear model in φ        (certificate)
                             └─> spectrum ─> path, components, fisher, from the eigenvalues of Φ̃ᵀWΦ̃
"""
