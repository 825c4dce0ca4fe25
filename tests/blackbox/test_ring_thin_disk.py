"""A disk that promised more than it has: the box was made, and then a write finds no room."""

import contextlib
import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.blackbox.boxes import box_at, packed, ring_at, sequences

from seawall.blackbox.ring import RingFile

pytestmark = pytest.mark.system
MISSING = next((tool for tool in ("mkfs.ext4", "losetup") if not shutil.which(tool)), "")


def run(*command: object) -> str:
    return subprocess.check_output([str(word) for word in command], text=True).strip()


@pytest.fixture
def thin(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A mounted ext4 of 60 MiB, and the tmpfs of 12 MiB that holds its image."""
    if os.geteuid() or MISSING:
        pytest.skip(f"needs {MISSING or 'root'}: a loop device (e2fsprogs, mount)")
    below, above = tmp_path / "below", tmp_path / "above"
    below.mkdir()
    above.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=12m", "none", below)
    loop = ""
    try:
        with (below / "image").open("wb") as image:
            image.truncate(60 << 20)
        # No journal: it would go read-only before the box is asked.
        run("mkfs.ext4", "-q", "-O", "^has_journal", below / "image")
        loop = run("losetup", "-f", "--show", below / "image")
        run("mount", loop, above)
        yield above, below
    finally:
        subprocess.run(["umount", str(above)], check=False, stderr=subprocess.DEVNULL)
        if loop:
            run("losetup", "-d", loop)
        run("umount", below)


def test_a_thin_disk_that_is_full_is_an_os_error_and_the_box_stays_readable(
    thin: tuple[Path, Path],
) -> None:
    above, below = thin
    path = above / "seawall" / "blackbox"
    with ring_at(path) as ring:
        for number in range(1, 11):
            ring.write(packed(number, 3000))
        # The image loses the room under the ring, as after a discard, and others take it.
        punched = run("filefrag", "-b4096", "-e", path).splitlines()
        place = int(next(line for line in punched if line.strip().startswith("0:")).split()[3][:-2])
        run("fallocate", "-p", "-o", (place + 64) * 4096, "-l", 128 << 12, below / "image")
        fill(below / "others")
        with pytest.raises(OSError) as caught:  # noqa: PT011 - the errno is what is asked
            write_on(ring)
        assert caught.value.errno in (errno.ENOSPC, errno.EIO)
        number = ring.next_sequence
        assert sequences(path)[: number - 1] == list(range(1, number))
        (below / "others").unlink()
        ring.write(packed(number, 3000))
    with box_at(path) as box:
        assert [head.sequence for head in box.heads][:number] == list(range(1, number + 1))
        for head in box.heads:
            assert box.frame(head).body["n"] == head.sequence


def write_on(ring: RingFile) -> None:
    for _ in range(200):
        ring.write(packed(ring.next_sequence, 3000))


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
