"""SW404 tells links that are missing apart from CDI files, and SW401 since when."""

from tests.accounts.device_worlds import STARTED, unit, versions
from tests.accounts.test_device_diagnosis import RELOADED, under_systemd

from seawall.accounts.devices.reasons.since import moment
from seawall.findings.rules.devices import access_will_end, device_refused


def test_links_are_no_cdi_file() -> None:
    table = under_systemd(versions=versions("runc version 1.1.5")).table()
    (found,) = access_will_end.judge(table)
    assert found.verdict == "fires"
    assert found.headline.startswith("3 devices are without the link in /dev/char that runc needs")
    assert "CDI" not in found.headline


def test_since_when_is_evidence() -> None:
    table = under_systemd(scopes=unit("char-pts rwm"), kernel=RELOADED).table()
    (found,) = device_refused.judge(table)
    cause, first = found.evidence[:2]
    assert cause.name == "cause for train/job-0/main"
    assert first.name == "train/job-0/main refused since"
    assert first.value == moment(STARTED)
    assert first.source.startswith("at the earliest")
