"""Files by which a person or the agent asks the guard: only root's alone are believed."""

import json
import os
import time
from pathlib import Path

import pytest

from seawall.guard.order_files import RESCUE_MOST_BYTES, OrderFiles, read_object

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="files of root's are root's to make")
BOOT = "5eedb007-0000"


@pytest.fixture
def files(tmp_path: Path) -> OrderFiles:
    tmp_path.chmod(0o700)
    found = OrderFiles(str(tmp_path))
    found.prepare()
    assert not found.look()
    return found


def put(folder: Path, name: str, text: str = "", mode: int = 0o600) -> Path:
    part = folder / f".{name}"
    part.write_text(text)
    part.chmod(mode)
    path = folder / name
    os.rename(part, path)
    return path


def order(**changes: object) -> str:
    known = {"order": "uid-1", "boot_id": BOOT, "pods": ["a-b"], "by": "ops",
             "until_unix_seconds": time.time() + 60}  # fmt: skip
    return json.dumps(known | changes)


@pytest.mark.parametrize("name", ["brake", "orders/brake"])
def test_a_brake_is_seen_with_its_time_and_taken_off(
    files: OrderFiles, tmp_path: Path, name: str
) -> None:
    path = put((tmp_path / name).parent, "brake")
    os.utime(path, (1000, 1000))
    assert files.look()
    assert (files.brake_since, files.brake_path) == (1000.0, str(path))
    assert not files.look()
    path.unlink()
    assert files.look()
    assert files.brake_since is None
    assert not files.problems


def test_of_two_brakes_one_is_enough(files: OrderFiles, tmp_path: Path) -> None:
    own, agents = put(tmp_path, "brake"), put(tmp_path / "orders", "brake")
    assert files.look()
    own.unlink()
    assert not files.look()
    assert files.brake_path == str(agents)


@pytest.mark.parametrize("what", ["others", "group", "owner", "link", "folder", "fifo"])
def test_what_is_not_roots_alone_is_ignored_with_words(
    files: OrderFiles, tmp_path: Path, what: str
) -> None:
    path = tmp_path / "orders/brake"
    if what == "link":
        put(tmp_path, "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    elif what == "fifo":
        os.mkfifo(path)
    else:
        put(path.parent, "brake", mode={"others": 0o602, "group": 0o660}.get(what, 0o600))
    if what == "owner":
        os.chown(path, 65534, 0)
    if what == "folder":
        path.parent.chmod(0o777)
    assert not files.look()
    assert files.brake_since is None
    assert len(files.problems) == 1
    assert "is ignored" in files.problems[0]
    path.parent.chmod(0o700)
    path.unlink()
    files.look()
    assert not files.problems


def test_an_order_is_read_once_and_bounded_in_time(files: OrderFiles, tmp_path: Path) -> None:
    put(tmp_path / "orders", "rescue", order(until_unix_seconds=1e11, by="eve\x1b[31m"))
    files.look()
    assert files.is_order_new
    found = files.order
    assert found is not None
    assert (found.order, found.boot_id, found.pods) == ("uid-1", BOOT, ("a-b",))
    assert found.until_unix_seconds <= time.time() + 601
    assert found.by.isprintable()
    files.look()
    assert not files.is_order_new
    (tmp_path / "orders/rescue").unlink()
    files.look()
    assert files.is_order_new
    assert files.order is None


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "null", "[" * 5000, '{"order": 1}', order(pods=[]), order(pods=["a"] * 9),
     order(pods="a"), order(order=""), order(until_unix_seconds="soon"),
     order(by="x" * RESCUE_MOST_BYTES)],
    ids=range(12),
)  # fmt: skip
def test_what_is_no_order_is_none(files: OrderFiles, tmp_path: Path, text: str) -> None:
    path = put(tmp_path / "orders", "rescue", text)
    files.look()
    assert files.order is None
    assert files.problems == [next(iter(files.problems))]
    assert str(path) in files.problems[0]


def test_the_list_of_pods_is_bounded_and_leaves_out_what_is_none(
    files: OrderFiles, tmp_path: Path
) -> None:
    ends = time.time() + 3600
    rows = [{"name": f"q{n}", "pods": [f"{n}-{pod}" for pod in range(40)],
             "until_unix_seconds": ends} for n in range(20)]  # fmt: skip
    rows[3:3] = [7, {"name": 1}, {"name": "x", "pods": "y"}, {"name": "x", "pods": ["y"]}]
    put(tmp_path / "orders", "quarantine", json.dumps({"quarantines": rows}))
    files.look()
    assert files.is_list_new
    assert files.quarantined is not None
    assert len(files.quarantined.pods) == 256
    assert files.quarantined.pods["0-0"] == "q0"


def test_nothing_is_read_through_a_link_or_beyond_its_bound(tmp_path: Path) -> None:
    path = put(tmp_path, "whole", json.dumps({"a": "b" * 100}))
    assert read_object(str(path), 1000)
    with pytest.raises(ValueError, match="longer"):
        read_object(str(path), 50)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match="symbolic"):
        read_object(str(tmp_path / "link"), 1000)
