import pytest
from tests.readings.kernel_files import VM_6_18, case, this_machine, tree
from tests.readings.oom_logs import expected, log, wanted, without_lines

from seawall.host.host import Unread
from seawall.readings import kernel_log
from seawall.readings.kernel_log import KernelLog

NAME = "memcg-v1-6.18.44-kmsg"


def test_the_reports_of_a_real_kernel() -> None:
    [report] = kernel_log.parse(log(NAME)).reports
    assert without_lines(report) == wanted(expected(NAME)[0])


def test_refused_is_not_empty() -> None:
    refused = kernel_log.read(case("=== /dev/kmsg !refused\n"))
    assert isinstance(refused, Unread)
    assert refused.why == "refused"


def test_an_empty_log_has_no_report() -> None:
    assert kernel_log.parse(b"") == KernelLog(())
    assert kernel_log.parse(b"6,1,2,-;usb 1-1: new device\n") == KernelLog(())


def test_a_tree_of_files_has_no_log() -> None:
    with tree(VM_6_18) as host:
        found = kernel_log.read(host)
    assert isinstance(found, Unread)
    assert found.why == "absent"


def test_this_machine() -> None:
    with this_machine() as host:
        found = kernel_log.read(host)
    if isinstance(found, Unread):
        pytest.skip(f"{found.path}: {found.why}; needs CAP_SYSLOG: sudo make test")
    assert all(report.first_line for report in found.reports)
