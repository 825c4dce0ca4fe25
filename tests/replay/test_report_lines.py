# SPDX-License-Identifier: Apache-2.0
"""Journals as they may come: forged, cut, huge.  Nothing but a count comes of what is not ours."""

import gzip
import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.films.scripts import random_film, rings_fast
from tests.replay.report_nodes import lines_of, watched

from seawall.problems import UsageProblem
from seawall.replay import report_all_nodes, report_files
from seawall.replay.journal_lines import line_of, names_in
from seawall.replay.report_files import read
from seawall.replay.report_names import kind_of

BOOT = "5eed0000-1111-2222-3333-444455556666"
UNIX = 1_790_000_000.0


@pytest.fixture(scope="module")
def journal() -> list[bytes]:
    return lines_of(watched(random_film(7, rings_fast, "burstable")), BOOT, UNIX)


def test_a_line_comes_back_as_it_was_written(journal: list[bytes]) -> None:
    said = [line_of(line) for line in journal]
    verdict = next(one for one in said if one.kind == "verdict" and one.aims)
    document = json.loads(next(line for line in journal if b'"kind":"verdict"' in line))
    order = document["orders"][0]
    assert verdict.aims[0][:4] == (order["step"], order["name"], order["cgroup"], order["inode"])
    assert verdict.sentence == document["sentence"]
    names = {row["cgroup"]: row["name"] for row in document["ranking"]}
    assert names_in(verdict.ranking) == names
    assert sum(one.kernel_kills for one in said) > 0
    assert any(one.done and one.done.is_observed for one in said)


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):  # the words are Python's or ours
        line_of(data)


@pytest.mark.parametrize("seed", range(40))
def test_values_of_a_wrong_kind(journal: list[bytes], seed: int) -> None:
    """Each field in turn becomes something else: taken, or a ValueError."""
    chance = random.Random(seed)
    strange = [None, True, -1, 10**30, 1e308, "x" * 10_000, "\x1b[2J", [], {}, [[]], [{}]]
    for line in journal:
        document = json.loads(line)
        document[chance.choice(list(document))] = chance.choice(strange)
        try:
            line_of(json.dumps(document).encode())
        except ValueError:
            continue


@pytest.mark.parametrize(
    "at", ["9999-12-31T00:00:00Z", "0001-01-01T00:00:00Z", "2026-13-01T00:00:00Z",
           "2026-02-30T00:00:00Z", "now", "2026-11-23T10:00:00+1", ""],
)  # fmt: skip
def test_absurd_times(journal: list[bytes], at: str) -> None:
    document = {**json.loads(journal[0]), "at": at}
    with pytest.raises(ValueError, match=r"."):  # the words are Python's or ours
        line_of(json.dumps(document).encode())


def test_hostile_files_are_counted(journal: list[bytes], tmp_path: Path) -> None:
    """A line of 20 MB, nesting, and half a line; the good ones are read."""
    bad = [b'{"a":"' + b"x" * (20 << 20) + b'"}\n', b"[" * 100_000 + b"\n", journal[0][:100]]
    (tmp_path / "decisions.jsonl").write_bytes(b"".join([*journal, *bad]))
    (source,) = read([str(tmp_path)])
    assert source.malformed == len(bad)
    assert len(source.stories[BOOT].decision_lines) == len({line_of(line).mark for line in journal})


def test_twice_is_once(journal: list[bytes], tmp_path: Path) -> None:
    """The same lines in both files, as text and packed, of one node."""
    data = b"".join(journal)
    (tmp_path / "n").mkdir()
    (tmp_path / "n/decisions.jsonl").write_bytes(data)
    (tmp_path / "n/decisions.jsonl.1").write_bytes(data)
    (tmp_path / "copy.jsonl.gz").write_bytes(gzip.compress(data))
    (source,) = read([str(tmp_path)])
    assert len(source.stories[BOOT].decision_lines) == len({line_of(line).mark for line in journal})
    assert len(source.stories) == 1


@pytest.mark.parametrize("data", [b"\x00" * 9000, b"SWbb" * 4000, b"\x1f\x8b\x08broken", b"{}\n"])
def test_what_is_none_of_ours(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "blackbox").write_bytes(data)
    with pytest.raises(UsageProblem, match="expected decision journals"):
        read([str(tmp_path / "blackbox")])
    with pytest.raises(UsageProblem, match="No such file"):
        read([str(tmp_path / "absent")])


def test_a_line_without_end_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: list[bytes]
) -> None:
    """A megabyte of gzip holds a line of a gigabyte."""
    monkeypatch.setattr(report_files, "JOURNAL_MOST_BYTES", 1 << 20)
    data = b"".join(journal[:1]) + b"{" * (8 << 20)
    (tmp_path / "decisions.jsonl.gz").write_bytes(gzip.compress(data))
    (source,) = read([str(tmp_path)])
    assert source.malformed == 1
    assert "the rest" in source.problems[0]


def test_a_folder_that_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: list[bytes]
) -> None:
    for name in ("good", "locked"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "decisions.jsonl").write_bytes(b"".join(journal))
    scandir = report_files.os.scandir

    def refuse(path: str) -> object:
        if path.endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(report_files.os, "scandir", refuse)
    sources = read([str(tmp_path)])
    assert [source.node for source in sources] == ["good", "locked"]
    assert str(tmp_path / "locked") in sources[1].problems[0]


def test_too_many_files_are_refused_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: list[bytes]
) -> None:
    monkeypatch.setattr(report_files, "FILES_MOST", 3)
    for number in range(4):
        (tmp_path / f"node-{number}.jsonl").write_bytes(journal[0])
    with pytest.raises(UsageProblem, match="more than 3 files"):
        read([str(tmp_path)])


def test_a_node_does_not_boot_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: list[bytes]
) -> None:
    monkeypatch.setattr(report_all_nodes, "BOOTS_MOST", 3)
    document = json.loads(journal[0])
    lines = [json.dumps({**document, "boot_id": str(number)}) for number in range(5)]
    (tmp_path / "decisions.jsonl").write_text("\n".join(lines) + "\n")
    (source,) = read([str(tmp_path)])
    assert (len(source.stories), source.malformed) == (3, 2)


def test_pods_of_one_workload_have_one_name() -> None:
    assert kind_of("ns/web-7d4b9c6f5d-x2x9z/c") == "ns/web-*/c"
    assert kind_of("ns/agent-x2x9z/c") == "ns/agent-*/c"
    assert kind_of("ns/web-0/c") == "ns/web-0/c"
    assert kind_of("unit:a-x2x9z.service") == "unit:a-x2x9z.service"
