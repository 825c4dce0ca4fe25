import json

import pytest
from tests.readings.kernel_files import case

from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.readings import base
from seawall.readings.base import Base, document_of, parse

BASE = Base(
    boot_id="aaaa",
    residual_bytes=-4096,
    residual_error_bytes=1 << 40,
    learned_at_unix_seconds=1_700_000_000.5,
    how="no tenant",
)


def test_what_is_written_is_read_back() -> None:
    assert parse(document_of(BASE)) == BASE


def in_boot(boot_id: str) -> Base | Unread:
    text = f"=== {base.PATH}\n{document_of(BASE).decode()}\n=== {base.BOOT_ID}\n{boot_id}\n"
    return base.read(case(text))


def test_a_base_counts_for_its_own_boot_only() -> None:
    assert in_boot("aaaa") == BASE
    other = in_boot("bbbb")
    assert isinstance(other, Unread)
    assert other.why == "absent"
    assert "another boot" in other.detail


def test_no_file_and_an_unknown_boot() -> None:
    assert isinstance(base.read(case("why: none\n")), Unread)
    text = f"=== {base.PATH}\n{document_of(BASE).decode()}\n=== {base.BOOT_ID} !refused\n"
    value = base.read(case(text))
    assert isinstance(value, Unread)
    assert value.why == "refused"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schema", "seawall.base/2"), ("boot_id", ""), ("boot_id", 3), ("how", "guessed"),
        ("residual_bytes", True), ("residual_bytes", "1"), ("residual_bytes", 1 << 70),
        ("residual_error_bytes", None), ("learned_at_unix_seconds", float("inf")),
        ("how", ["asked"]),
    ],
)  # fmt: skip
def test_malformed(key: str, value: object) -> None:
    document = json.loads(document_of(BASE))
    with pytest.raises(ParseProblem):
        parse(json.dumps(document | {key: value}).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff\xfe", b"[" * 100_000, b"9" * 5000])
def test_not_a_document(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse(data)
