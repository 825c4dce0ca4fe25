"""What a document of ``seawall memory`` or ``pods`` charges to whom, for the tests of the marks."""

from collections.abc import Iterable
from typing import Any

from tests.end_to_end.innocents import NOT_BLAMED_BYTES

TOLERANCE = 0.02


def claimed(page: dict[str, Any], cgroup: str, field: str = "bytes") -> int:
    """All that is claimed for a cgroup and is in no charge of it."""
    return sum(c[field] for c in _claims(page, cgroup) if not c["counted"])


def _claims(page: dict[str, Any], cgroup: str) -> list[dict[str, Any]]:
    return [c for c in page["claims"] if c["cgroup"] == cgroup]


def assert_held(page: dict[str, Any], cgroup: str, expected: int, name: str | None = None) -> None:
    """Attributed to that workload within 2 %, and the workload is named."""
    found = claimed(page, cgroup)
    assert abs(found - expected) <= TOLERANCE * expected, (
        f"{cgroup}: {found / 2**20:.1f} MiB claimed of {expected / 2**20:.1f}: {shown(page)}"
    )
    if name is not None:
        assert {c["workload"] for c in _claims(page, cgroup)} == {name}


def assert_none_blamed(page: dict[str, Any], cgroups: Iterable[str]) -> None:
    """No innocent is charged with more than 64 MiB."""
    for cgroup in cgroups:
        found = claimed(page, cgroup)
        assert found <= NOT_BLAMED_BYTES, f"{cgroup}: {found / 2**20:.1f} MiB: {shown(page)}"


def assert_only(page: dict[str, Any], culprits: Iterable[str], *, most: int) -> None:
    """Nobody but these is charged with more than ``most``."""
    known = set(culprits)
    for cgroup in {c["cgroup"] for c in page["claims"] if c["cgroup"]} - known:
        assert claimed(page, cgroup) <= most, f"{cgroup}: {shown(page)}"


def shown(page: dict[str, Any]) -> str:
    """Claims in short, for messages."""
    rows = [
        f"{c['bytes'] / 2**20:.1f} MiB ({c['least_bytes'] / 2**20:.1f} to "
        f"{c['most_bytes'] / 2**20:.1f}) {c['class']} {c['cgroup'] or c['holder']} by {c['source']}"
        for c in page["claims"]
    ]
    return "\n".join(["", *rows, f"unread: {page['unread']}"])
