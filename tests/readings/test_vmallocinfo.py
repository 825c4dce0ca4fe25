import pytest
from tests.readings.kernel_files import DEBIAN_6_1, EL8, VM_6_18, content

from seawall.problems import ParseProblem
from seawall.readings.vmallocinfo import VmallocArea, parse

START = b"0x0000000030087f39-0x00000000dd1c76a8 "


def area(rest: bytes) -> VmallocArea:
    (found,) = parse(START + rest + b"\n").areas
    return found


@pytest.mark.parametrize("kernel", [EL8, DEBIAN_6_1, VM_6_18])
def test_every_area_is_read(kernel: str) -> None:
    data = content(kernel, "/proc/vmallocinfo")
    areas = parse(data).areas
    assert [a.size_bytes for a in areas] == [int(line.split()[1]) for line in data.splitlines()]
    for found in areas:
        if found.pages is not None:
            assert found.pages == sum(found.node_pages.values())
            assert found.pages * 4096 < found.size_bytes, "the guard page is in the size"
            assert "vmalloc" in found.kinds
        else:
            assert found.kinds & {"ioremap", "vmap"}


def test_caller_module_and_kinds() -> None:
    areas = parse(content(EL8, "/proc/vmallocinfo")).areas
    assert areas[0] == VmallocArea(
        size_bytes=8192,
        caller="acpi_os_map_iomem",
        module=None,
        pages=None,
        kinds=frozenset({"ioremap"}),
        node_pages={},
    )
    assert areas[2].kinds == {"vmalloc", "vpages"}
    assert areas[3].caller == "_do_fork"
    assert (areas[5].caller, areas[5].module) == ("netvsc_device_add [hv_netvsc]", "hv_netvsc")
    assert areas[5].node_pages == {0: 8}


def test_pages_on_two_nodes() -> None:
    areas = parse(content(DEBIAN_6_1, "/proc/vmallocinfo")).areas
    large = next(a for a in areas if a.caller == "alloc_large_system_hash")
    assert (large.pages, large.node_pages) == (128, {0: 64, 1: 64})


def test_areas_that_have_no_caller() -> None:
    assert area(b"262144 vm_map_ram").kinds == {"vm_map_ram"}
    assert area(b"8192 unpurged vm_area").kinds == {"unpurged", "vm_area"}
    assert area(b"8192").kinds == frozenset()
    for words in (b"262144 vm_map_ram", b"8192 unpurged vm_area", b"8192", b"8192 pages=1 vmalloc"):
        assert area(words).caller is None


def test_addresses_of_every_fashion() -> None:
    """Plain, hashed, not hashed yet, and hidden."""
    for start in (b"0xffffc90000000000", b"0x(____ptrval____)", b"0x0000000000000000"):
        line = start + b"-" + start + b"    8192 hpet_enable+0x2d/0x279 phys=fed00000 ioremap\n"
        assert parse(line).areas[0].caller == "hpet_enable"
    assert area(b"8192 0xffffffff81234567 pages=1 vmalloc").caller == "0xffffffff81234567"


@pytest.mark.parametrize(
    "data", [b"", b"nothing\n", START + b"x\n", START + b"8192 f+0x1/0x2 pages=y vmalloc\n",
             START + b"8192 f+0x1/0x2 pages=1 vmalloc N0=z\n"]
)  # fmt: skip
def test_malformed(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse(data)
