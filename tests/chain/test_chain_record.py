"""What the chain's record shows of the rows: one line for what happened at once, never too many."""

from typing import Any

from tests.chain.chain_record import LETTERS_MOST, LINES_MOST, record


def row(at: float, what: str, subject: str, words: str = "") -> dict[str, Any]:
    return {"at": at, "what": what, "subject": subject, "words": words}


def test_pods_of_one_deployment_that_move_together_are_one_line() -> None:
    rows = [
        row(60.0, "pod deleted", "web-5d9c7bd4b8-abcde", "on n1"),
        row(60.4, "pod deleted", "web-5d9c7bd4b8-fghij", "on n1"),
        row(61.0, "pod placed", "hog-7c9c4d5f6b-klmno", "on n2"),
    ]
    assert record("moves", rows).splitlines() == [
        "moves",
        "    60 s  pod deleted  web x2  on n1",
        "    61 s  pod placed   hog  on n2",
    ]


def test_the_same_later_is_a_line_of_its_own() -> None:
    rows = [row(1.0, "node", "n1", "Unknown"), row(9.0, "node", "n1", "Unknown")]
    assert len(record("nodes", rows).splitlines()) == 3


def test_a_long_phase_says_how_much_it_leaves_out() -> None:
    rows = [row(float(10 * at), "node", f"n{at}", "True " + "x" * 200) for at in range(100)]
    lines = record("long", rows, "figures").splitlines()
    assert len(lines) == LINES_MOST
    assert lines[-2:] == ["  ... 63 more lines in the journal", "figures"]
    assert max(map(len, lines)) <= LETTERS_MOST
