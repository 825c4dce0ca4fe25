"""What a node remembers of its drains: whole, bounded, and nothing of a file that is not ours."""

import json
from pathlib import Path

import pytest

from seawall.actions.drain_record import SCHEMA, DrainRecord, OwnDrain, load, path_of, save

NOW = 1_800_000_000.0


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = str(tmp_path / "n1.json")
    record = DrainRecord(
        drain=OwnDrain("seawall: gpu: x", 1000, ["gpu"], "boot"), lifts=[NOW], seen={"gpu": NOW},
        well_since=NOW, yielded=["shm 5"],
    )  # fmt: skip
    record.note(NOW, "drained: seawall: gpu: x")
    record.note(NOW + 1, "drained: seawall: gpu: x")
    save(path, record)
    assert load(path) == record
    assert len(record.decisions) == 1, "the same words once more are no new decision"


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"{}", b"{", b"\xff", b'{"schema": "seawall.slurm-drains/2"}', b" " * 300_000,
        json.dumps({"schema": SCHEMA, "drain": {"reason": "disk", "unix_seconds": 5, "keys": []},
                    "lifts": ["x", True], "seen": [1], "decisions": [[1]]}).encode(),
        json.dumps({"schema": SCHEMA, "drain": {"reason": "seawall: x"}, "lifts": 7}).encode(),
        b'{"schema": ' + b"[" * 50_000,
    ],
)  # fmt: skip
def test_of_a_strange_file_nothing_is_believed(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "n1.json"
    path.write_bytes(data)
    assert load(str(path)) == DrainRecord()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    save(str(tmp_path / "other"), DrainRecord(lifts=[NOW]))
    (tmp_path / "n1.json").symlink_to(tmp_path / "other")
    assert load(str(tmp_path / "n1.json")) == DrainRecord()


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".x", "a\nb"])
def test_a_name_that_is_no_files_is_refused(name: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the name is all it says
        path_of("/var/lib", name)


def test_what_was_gone_for_a_look_begins_anew() -> None:
    record = DrainRecord()
    record.see({"shm 5"}, NOW)
    record.see({"shm 5", "gpu"}, NOW + 30)
    assert (record.age("shm 5", NOW + 30), record.age("gpu", NOW + 30)) == (30, 0)
    record.see({"gpu"}, NOW + 60)
    record.see({"shm 5", "gpu"}, NOW + 90)
    assert record.age("shm 5", NOW + 90) == 0


def test_a_clock_that_was_set_back_makes_nothing_old() -> None:
    record = DrainRecord()
    record.see({"gpu"}, NOW)
    record.see({"gpu"}, NOW - 5000)
    assert record.age("gpu", NOW - 5000) == 0


def test_whoever_was_yielded_to_is_forgotten_when_it_ends() -> None:
    record = DrainRecord(yielded=["gpu"])
    record.see({"gpu"}, NOW)
    assert record.yielded == ["gpu"]
    record.see(set(), NOW + 60)
    assert record.yielded == []
