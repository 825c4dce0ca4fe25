import pytest
from tests.readings.kernel_files import (
    DEBIAN_6_1,
    EL8,
    EL8_64K,
    UBUNTU_3_2,
    VM_6_18,
    case,
    content,
)

from seawall.problems import ParseProblem
from seawall.readings import vmstat
from seawall.readings.vmstat import Vmstat, parse

WITH_VMSTAT = (UBUNTU_3_2, EL8, EL8_64K, DEBIAN_6_1, VM_6_18)


@pytest.mark.parametrize("kernel", WITH_VMSTAT)
def test_every_line_is_read(kernel: str) -> None:
    data = content(kernel, "/proc/vmstat")
    expected = dict(line.split() for line in data.decode().splitlines())
    assert parse(data).counters == {name: int(number) for name, number in expected.items()}


def test_names_come_and_go_and_none_says_so() -> None:
    old, new = parse(content(UBUNTU_3_2, "/proc/vmstat")), parse(content(EL8, "/proc/vmstat"))
    assert old.counters.get("allocstall") == 0
    assert new.counters.get("allocstall") is None
    assert new.counters["allocstall_normal"] == 0
    assert old.counters.get("oom_kill") is None


def test_more_than_32_bits() -> None:
    assert parse(content(EL8_64K, "/proc/vmstat")).counters["pgfault"] == 183606093635


def test_the_first_of_two_lines_with_one_name_counts() -> None:
    assert parse(b"nr_free_pages 1\nnr_free_pages 2\n").counters == {"nr_free_pages": 1}


def test_a_counter_that_is_no_number_is_malformed_and_not_missing() -> None:
    with pytest.raises(ParseProblem) as problem:
        parse(b"nr_free_pages 1\npgfault -2\n")
    assert problem.value.line == 2
    with pytest.raises(ParseProblem):
        parse(b"")


def test_read() -> None:
    value = vmstat.read(case("=== /proc/vmstat\npgfault 7\n"))
    assert value == Vmstat({"pgfault": 7})
