"""The kept inputs once more, and small changes of each: always the same ones."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.fuzz.targets import CORPUS, TARGETS, tried

REPOSITORY = Path(__file__).parents[2]
CHANGES = 40
SECONDS_MOST = 2.0


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_of_the_corpus_escapes(name: str) -> None:
    inputs = sorted((CORPUS / name).iterdir())
    assert inputs, "a target without a corpus tries nothing"
    chance = random.Random(name)
    for path in inputs:
        data = path.read_bytes()
        for changed in (data, *(_changed(data, chance) for _ in range(CHANGES))):
            began = time.thread_time()
            tried(TARGETS[name], changed)
            assert time.thread_time() - began < SECONDS_MOST, path


def _changed(data: bytes, chance: random.Random) -> bytes:
    text = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(text) + 1)
        how = chance.randrange(4)
        if how == 0:
            del text[at : at + chance.randint(1, 16)]
        elif how == 1:
            text[at:at] = text[: chance.randint(0, 64)]
        elif how == 2:
            text[at : at + 1] = bytes([chance.randrange(256)])
        else:
            text[at:at] = chance.choice([b"\0", b"\n", b'"', b"{", b"-1", b"9" * 5000, b"\xff" * 4])
    return bytes(text)


def test_without_atheris_it_is_skipped_by_name() -> None:
    """``-S``: nothing that was installed is seen."""
    done = subprocess.run(
        [sys.executable, "-S", "-m", "tests.fuzz", "1"],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("atheris is not installed: `make fuzz` does, on Linux on x86-64")
    assert done.stdout.endswith("fuzzing is skipped.\n")
