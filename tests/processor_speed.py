"""Marks in seconds of processor time, on machines and at hours of unequal speed.

A core that its hypervisor shares, or whose other thread works, takes up to twice the processor
time for the same work: a mark that a quiet machine keeps was missed on a busy one.  So the mark is
given for a reference machine, and stretched by what a fixed piece of work costs here and now.
"""

import time
import zlib

_REFERENCE_SECONDS = 0.045
"""Of ``_reference_work`` on the quiet machine for which the marks are given."""
_STRETCH_MOST = 3.0
"""Slower than that and the mark is missed: what is quadratic takes a hundred times as long."""


def processor_stretch() -> float:
    """How many times the reference's processor time work takes now: 1.0 to 3.0."""
    costs = []
    for _ in range(2):
        began = time.process_time()
        _reference_work()
        costs.append(time.process_time() - began)
    return min(max(min(costs) / _REFERENCE_SECONDS, 1.0), _STRETCH_MOST)


def _reference_work() -> None:
    """What parsers do: lines, words, numbers, dictionaries, and a checksum."""
    text = "\n".join(f"name{number}: {number * 4096} kB" for number in range(40_000))
    table = {}
    for line in text.split("\n"):
        name, _, rest = line.partition(":")
        table[name] = int(rest.split()[0]) * 1024
    zlib.crc32(text.encode())
    assert len(table) == 40_000
