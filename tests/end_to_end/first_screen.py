"""Both forms of one answer of `why`: the first screen, and its JSON, while an incident goes on."""

import json
from dataclasses import dataclass
from typing import Any

LINES = 24
COLUMNS = 80


@dataclass(frozen=True)
class FirstScreen:
    """What was said."""

    firing: list[dict[str, Any]]
    """In the order of the answer."""
    text: str
    cgroup: str
    """Name of the cgroup that the incident is in."""

    def first(self) -> str:
        """The first cause of the screen, in one line."""
        blocks: list[list[str]] = []
        for line in self.text.splitlines():
            if line.startswith(("CRITICAL ", "WARNING ", "INFO ")):
                blocks.append([])
            elif line[:1].strip():
                continue
            if blocks:
                blocks[-1].append(line.strip())
        assert blocks, self.text
        return " ".join(" ".join(blocks[0]).split())

    def of(self, rule: str) -> dict[str, Any]:
        """The rule's finding about it."""
        rows = [
            row for row in self.firing
            if row["id"] == rule and self.cgroup in str(row["workload"])
        ]  # fmt: skip
        assert len(rows) == 1, [(row["key"], row["severity"]) for row in self.firing]
        return rows[0]

    def assert_stands_first(self, rule: str, severity: str) -> None:
        """In both forms, with its severity and whose it is."""
        assert self.of(rule)["severity"] == severity
        assert self.firing[0]["id"] == rule, [(row["key"], row["severity"]) for row in self.firing]
        first = self.first()
        assert first.startswith(severity.upper()), first
        assert f"[{rule}]" in first
        assert f"who .../{self.cgroup}" in first


def first_screen(page: dict[str, Any], text: str, cgroup: str) -> FirstScreen:
    """Of both forms, after what holds for every screen."""
    # A busy machine gets what is certain after 10 s, then the whole.
    text = text.rpartition("The whole, after ")[2]
    assert len(text.splitlines()) < LINES, text
    assert max(map(len, text.splitlines())) <= COLUMNS, text
    place = {key: number for number, key in enumerate(page["order"])}
    firing = sorted(
        (row for row in page["findings"] if row["verdict"] == "fires"),
        key=lambda row: place[row["key"]],
    )
    for row in firing:
        # A stream that is larger than its limit fills it with cache; that is all that is told.
        is_cache = row["id"] == "SW201" and row["severity"] == "info"
        assert is_cache or "/reader" not in json.dumps(row), row
        assert "/worker" not in json.dumps(row), row
    return FirstScreen(firing, text, cgroup)
