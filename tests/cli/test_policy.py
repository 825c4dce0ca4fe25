import datetime as dt

import pytest

from seawall.cli.policy_file import load_policy, parse_policy
from seawall.problems import UsageProblem

TODAY = dt.date(2027, 1, 31)


def test_mute_needs_reason_and_end_and_ends_by_itself() -> None:
    text = b'[SW108]\nmute = true\nreason = "lab"\nuntil = 2027-01-31\nworkload = "lab/*"\n'
    policy = parse_policy(text, "x", TODAY)
    assert policy.muted_reason("SW108", "lab/a") == "lab (until 2027-01-31)"
    assert policy.muted_reason("SW108", "web/a") is None
    assert policy.muted_reason("SW101", "lab/a") is None
    expired = parse_policy(text, "x", TODAY + dt.timedelta(days=1))
    assert expired.muted_reason("SW108", "lab/a") is None
    assert len(expired.expired) == 1


def test_threshold_moves() -> None:
    policy = parse_policy(b"[SW108.thresholds]\nunused_fraction = 0.5\n", "x", TODAY)
    assert policy.thresholds_for("SW108") == {"unused_fraction": 0.5}
    assert policy.thresholds_for("SW101") == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[SW999]\nmute = true\n", "no such rule"),
        (b"SW108 = 1\n", "expected a section"),
        (b"[SW108]\nmut = true\n", "mut: no such key"),
        (b"[SW108]\nmute = 1\n", "expected true or false"),
        (b"[SW108]\nmute = true\nuntil = 2027-01-31\n", "reason"),
        (b'[SW108]\nmute = true\nreason = "x"\n', "until"),
        (b'[SW108]\nmute = true\nreason = "x"\nuntil = "soon"\n', "until"),
        (b"[SW108.thresholds]\nnope = 1\n", "it has unused_fraction"),
        (b"[SW108.thresholds]\nunused_fraction = true\n", "a number"),
        (b"[SW108.thresholds]\nunused_fraction = nan\n", "a number"),
        (b"[SW108.thresholds]\nunused_fraction = -1\n", "a number"),
        (b"[[[", "not TOML"),
        (b"a=" + b"[" * 5000, "not TOML"),
        (b"a=" + b"9" * 5000, "not TOML"),
        (b"[SW108]\nthresholds = 5\n", "expected"),
        (b"\xff", "not TOML"),
    ],
)
def test_bad_file_names_place_and_mend(text: bytes, words: str) -> None:
    with pytest.raises(UsageProblem, match=words) as caught:
        parse_policy(text, "rules.toml", TODAY)
    assert "rules.toml" in str(caught.value)


def test_named_file_must_exist_the_default_need_not() -> None:
    with pytest.raises(UsageProblem, match="no such file"):
        load_policy("/nonexistent/rules.toml")
    assert load_policy(None).mutes == ()
