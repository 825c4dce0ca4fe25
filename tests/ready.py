"""A child of the test's own: at work once it has printed ``ready``, killed at the end."""

import contextlib
import subprocess
from collections.abc import Iterator, Sequence


@contextlib.contextmanager
def ready(command: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """The process while the block runs; its stdin has no end till then."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()
