"""Support vector machines: five problems, one quadratic program, one decomposition."""
