"""What a watcher asks its reader is in memory before that is forked: a spare that begins on a node
without memory reads no file for it.
"""

import subprocess
import sys

from tests.end_to_end.verbs import SOURCES

_PROGRAM = """
import fcntl, json, sys
from seawall.watcher.watcher_reader import import_probes
from seawall.host.slow_probes import SLOW_PROBES
import_probes()
before = set(sys.modules)
for probe, argument in (("packet_rings", ""), ("packet_ring_maps", "1:1|"), ("driver_files", ""),
                        ("driver_mappings", "1")):
    try:
        SLOW_PROBES[probe].answer(argument)
    except (OSError, ValueError):
        pass
print(sorted(set(sys.modules) - before))
"""


def test_a_probe_imports_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({str(SOURCES)!r})"
         + _PROGRAM],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "[]\n", done.stdout + done.stderr
