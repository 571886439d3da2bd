"""Solvers: functions (kernel matrix, targets, options) → result, one file each.

A solver sees K and never a point (``matrix`` says how), so it cannot tell vectors from strings, or a matrix
in memory from one that is computed as it is asked for. Labels, classes and warnings are the estimators'.
"""
