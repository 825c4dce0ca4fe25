"""A finding as text, at leisure and on a node where each line costs a second."""

from seawall.findings.finding import Evidence, Judged, fires
from seawall.views.terminal import Paper
from seawall.views.why_text import finding_lines

PAPER = Paper(width=80, colour=False)
ITEM = Judged(
    id="SW111",
    title="Code is read back",
    finding=fires(
        "critical",
        "1,863 major faults a second: the node drops the code that it runs",
        [Evidence(f"row {number}", number, "count", "/proc/vmstat") for number in range(5)],
        outlook="Every program slows down.",
    ),
    confirm=("grep pgmajfault /proc/vmstat",),
    remedy=("end what grows",),
)


def _text(*, hurried: bool) -> str:
    return "\n".join(finding_lines(ITEM, PAPER, hurried=hurried))


def test_at_leisure_all_evidence_and_how_to_confirm_are_told() -> None:
    text = _text(hurried=False)
    assert all(f"row {number}" in text for number in range(5))
    assert "grep pgmajfault /proc/vmstat" in text
    assert "slow here" not in text


def test_hurried_keeps_what_is_needed_to_act_and_says_where_the_rest_is() -> None:
    text = _text(hurried=True)
    for kept in ("1,863 major faults", "Every program slows down.", "row 0", "row 1", "end what"):
        assert kept in text
    assert "row 2" not in text
    assert "grep pgmajfault" not in text
    assert "--whole" in text
    assert "rules show SW111" in text
    assert max(map(len, text.split("\n"))) <= 80
