"""CHANGELOG.md: a change is a sentence or two, in a group of its version."""

import re

from tests.architecture.page_commands import REPOSITORY

from seawall.version import VERSION

TEXT = (REPOSITORY / "CHANGELOG.md").read_text()
LONGEST, GROUPS = 300, ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")


def test_versions_stand_newest_first_and_one_is_open() -> None:
    heads = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
    assert heads[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", head) for head in heads[1:])
    assert heads[1].startswith(f"[{VERSION}]")


def test_groups_are_those_of_the_form() -> None:
    for version in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]:
        groups = re.findall(r"^### (.+)$", version, re.MULTILINE)
        assert len(groups) == len(set(groups))
        assert set(groups) <= set(GROUPS)


def test_a_change_is_short_and_stands_once() -> None:
    changes = re.findall(r"^- (.+(?:\n  .+)*)$", TEXT, re.MULTILINE)
    assert len(changes) == len(set(changes)) > 50
    for change in changes:
        assert len(" ".join(change.split())) <= LONGEST, change[:80]
