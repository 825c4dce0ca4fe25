"""``seawall version``: which one it is, by which Python."""

import platform

from tests.end_to_end.warm_verbs import seawall

from seawall.version import VERSION


def test_it_says_what_a_report_needs() -> None:
    lines = seawall("version").answered().text.splitlines()
    assert lines[0] == f"seawall {VERSION}"
    assert any(platform.python_version() in line for line in lines)
    assert all(len(line) <= 80 for line in lines)


def test_as_a_document() -> None:
    document = seawall("version", "--json").answered().document
    assert document["schema"] == "seawall.version/1"
    assert document["tool_version"] == VERSION
    assert document["python"] == platform.python_version()
    assert document["machine"] == platform.machine()
    assert document["is_one_file"] is False
