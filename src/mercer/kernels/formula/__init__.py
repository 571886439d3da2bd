"""A formula from Python to code: tree → pair quantities → program → printed source."""
