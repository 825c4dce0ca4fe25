import pytest
from tests.case_host import parse_case

from seawall.host.host import Unread
from seawall.problems import UsageProblem

TEXT = rb"""why: an example
verdict: fires
=== /proc/1/stat
1 (init) S
=== /proc/slabinfo !refused
=== /a\x1b\n/b
=== /proc/1/exe -> /sbin/init
=== ?page_size
65536
=== round 2 +2.5
=== /proc/1/stat !absent
"""


def test_case_answers_like_a_host() -> None:
    case = parse_case(TEXT)
    assert case.expect == {"why": "an example", "verdict": "fires"}
    first, second = case.rounds
    assert first.read("/proc/1/stat") == b"1 (init) S\n"
    assert first.read("/a\x1b\n/b") == b""
    assert first.read("/proc/slabinfo") == Unread("/proc/slabinfo", "refused", "in this case")
    assert first.link("/proc/1/exe") == "/sbin/init"
    assert first.ask("page_size") == 65536
    names = first.names("/proc")
    assert isinstance(names, tuple)
    assert {"1/", "slabinfo", "uptime"} <= set(names)
    gone = second.read("/proc/1/stat")
    assert isinstance(gone, Unread)
    assert gone.why == "absent"
    assert isinstance(second.names("/nowhere"), Unread)


@pytest.mark.parametrize(
    "text", [b"no colon here", b"=== round two", b"=== /x !nonsense\n", b"=== ?page_size\nx\n"]
)
def test_malformed_case_is_told_with_its_line(text: bytes) -> None:
    with pytest.raises(UsageProblem, match="line"):
        parse_case(text)
