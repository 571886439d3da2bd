"""The lab: a page on this machine with the real engine behind it, opened by ``mercer lab``.

Each room is a function from a request, a dict of plain values, to an answer of the same kind, so that it can
be asked without a browser:

>>> from mercer.lab.rooms import answer
>>> answer("certify", {"kernel": "max(1 - r, 0)", "dim": 2})["verdict"]
'refuted'
"""
