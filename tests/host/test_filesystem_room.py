"""Room of a file system, and one look at a time at each."""

import os
from errno import EBUSY
from pathlib import Path
from zlib import crc32

import pytest

from seawall.host import filesystem_room as room
from seawall.proc.file_lock import try_lock


def test_what_df_says(tmp_path: Path) -> None:
    found = room.filesystem_room(str(tmp_path), str(tmp_path / "locks"))
    told = os.statvfs(tmp_path)
    assert isinstance(found, dict)
    assert (found["blocks"], found["files"]) == (told.f_blocks, told.f_files)


def test_while_an_earlier_look_hangs_no_other_one_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_WAIT_SECONDS", 0.1)
    fd = os.open(tmp_path / f"mount-{crc32(b'/scratch'):08x}.lock", os.O_RDWR | os.O_CREAT)
    assert try_lock(fd)
    with pytest.raises(OSError, match="earlier look") as caught:
        room.filesystem_room("/scratch", str(tmp_path))
    assert caught.value.errno == EBUSY
    os.close(fd)
    with pytest.raises(FileNotFoundError):
        room.filesystem_room("/scratch-that-is-not-there", str(tmp_path))
