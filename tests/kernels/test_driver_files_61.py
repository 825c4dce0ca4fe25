"""Pages of a real driver, mapped, shared, forgotten: the test module on Debian's 6.1."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.kernels import built_modules
from tests.kernels.vm import Image, Outcome, run_job

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(900)]
MIB = 1 << 20

HOLDER = rb"""
import fcntl, mmap, os, struct, sys
node, size, mode, what = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
with open(f"/sys/fs/cgroup/{sys.argv[5]}/cgroup.procs", "w") as procs:
    procs.write("0")
device = os.open(node, os.O_RDWR)
fcntl.ioctl(device, 0x40105301, struct.pack("QII", size, 0, mode))  # SW_TAKE
held = [mmap.mmap(device, size)] if what != "unmapped" else []
if what == "forked":
    for _ in range(2):
        if os.fork() == 0:
            break
if what == "closed":
    for name in os.listdir("/proc/self/fd"):  # mmap keeps a copy of its own
        if os.path.realpath(f"/proc/self/fd/{name}") == os.path.realpath(node):
            os.close(int(name))
os.write(1, b"ready\n")
sys.stdin.read()
"""
# A buffer of vgem's, a graphics driver without a device, exported as a dma-buf: two pods hold it.
EXPORTER = rb"""
import fcntl, os, socket, struct, sys
with open(f"/sys/fs/cgroup/{sys.argv[2]}/cgroup.procs", "w") as procs:
    procs.write("0")
card = os.open(sys.argv[1], os.O_RDWR)
buffer = bytearray(struct.pack("IIIIIIQ", 1024, 1024, 32, 0, 0, 0, 0))
fcntl.ioctl(card, 0xC02064B2, buffer)  # DRM_IOCTL_MODE_CREATE_DUMB
handle = struct.unpack("IIIIIIQ", buffer)[4]
prime = bytearray(struct.pack("IIi", handle, os.O_RDWR, -1))
fcntl.ioctl(card, 0xC00C642D, prime)  # DRM_IOCTL_PRIME_HANDLE_TO_FD
os.dup(struct.unpack("IIi", prime)[2])
if os.fork() == 0:
    os.close(card)
    os.mkdir("/sys/fs/cgroup/handed")
    with open("/sys/fs/cgroup/handed/cgroup.procs", "w") as procs:
        procs.write("0")
os.write(1, b"ready\n")
sys.stdin.read()
"""
LOOK = rb"""
import dataclasses, json, sys
from seawall.accounts.claim_sources import driver_mapping_claims, driver_suspects
from seawall.accounts.claims.claims import ask_source
from seawall.accounts.drivers.driver_holders import DriverHolders
from seawall.host.live import LiveHost
from seawall.readings.driver_files import DriverFiles
from seawall.readings.driver_modules import DriverModules
from seawall.readings.snapshot import Snapshot
host = LiveHost()
snapshot = Snapshot(host)
mapped = ask_source(driver_mapping_claims.claims, snapshot)
suspects = ask_source(driver_suspects.claims, snapshot)
holders, files = snapshot.get(DriverHolders), snapshot.get(DriverFiles)
host.close()
print(json.dumps({
    "claims": [[c.cgroup, c.driver, c.least_bytes, c.bytes, c.most_bytes, c.source]
               for c in mapped.claims],
    "unseen": [*mapped.unseen, *suspects.unseen],
    "suspects": [[s.cgroup, s.driver, len(s.pids), s.why] for s in suspects.suspects],
    "holders": sorted(holders.by_driver), "complete": holders.is_complete,
    "left_out": files.left_out,
    "dmabufs": {open(f"/proc/{pid}/cgroup").read().strip()[3:]: holder.dmabufs
                for pid, holder in files.by_pid.items() if holder.dmabufs},
    "nodes": [[f.driver, f.major, f.minor, f.descriptors]
              for holder in files.by_pid.values() for f in holder.devices],
}))
"""
JOB = f"""
insmod $JOB/seawall_pages.ko && insmod $JOB/nvidia.ko || exit 1
look() {{ python3.11 $JOB/look.py > $OUT/$1.json 2> $OUT/$1.err; }}
hold() {{ mkdir -p /sys/fs/cgroup/$5; mkfifo /run/in-$5-$4
          sleep 1000 > /run/in-$5-$4 & python3.11 $JOB/holder.py "$@" < /run/in-$5-$4 \\
              > /run/out-$5-$4 2>&1 &
          tries=0; until grep -q ready /run/out-$5-$4 || [ $((tries += 1)) -gt 400 ]
          do sleep 0.1; done; cat /run/out-$5-$4; }}
end() {{ while read pid; do kill -9 $pid; done < /sys/fs/cgroup/$1/cgroup.procs; sleep 1; }}
mkdir /run/dev
python3.11 -c 'import os, stat
os.mknod("/run/dev/null\\nx", 0o600 | stat.S_IFCHR, os.stat("/dev/seawall_pages").st_rdev)'
look before
hold /dev/seawall_pages {48 * MIB} 0 forked one
hold "/run/dev/null
x" {32 * MIB} 0 mapped two
hold /dev/nvidia0 {16 * MIB} 0 unmapped three
look held
end one; end two; end three
look after
hold /dev/seawall_pages {8 * MIB} 0 closed four
look closed; cat /sys/module/seawall_pages/refcnt > $OUT/closed.refcnt
end four
hold /dev/nvidia0 {8 * MIB} 1 unmapped five; end five
look forgotten
insmod $JOB/drm.ko && insmod $JOB/drm_shmem_helper.ko && insmod $JOB/vgem.ko || exit 1
mkdir /sys/fs/cgroup/six; mkfifo /run/in-six; sleep 1000 > /run/in-six &
python3.11 $JOB/exporter.py /dev/dri/card0 six < /run/in-six > /run/out-six 2>&1 &
tries=0; until [ "$(grep -c ready /run/out-six)" = 2 ] || [ $((tries += 1)) -gt 400 ]
do sleep 0.1; done; cat /run/out-six
look exported
"""


@pytest.fixture(scope="module")
def node(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    if why := built_modules.missing():
        pytest.skip(why)
    scripts = {"holder.py": HOLDER, "look.py": LOOK, "exporter.py": EXPORTER}
    files = {**built_modules.built(), **scripts, **graphics_modules(image)}
    folder = tmp_path_factory.mktemp("drivers")
    return run_job(image, JOB, folder, files=files)


def graphics_modules(image: Image) -> dict[str, bytes]:
    """Debian's own, of the kernel that boots."""
    release = Path(image.kernel).name.removeprefix("vmlinuz-")
    folder = Path(f"/lib/modules/{release}/kernel/drivers/gpu/drm")
    names = ("drm.ko", "drm_shmem_helper.ko", "vgem/vgem.ko")
    return {Path(name).name: (folder / name).read_bytes() for name in names}


def seen(node: Outcome, name: str) -> dict[str, Any]:
    text = node.text(f"{name}.json")
    assert text, node.text(f"{name}.err") + node.console[-2000:]
    page: dict[str, Any] = json.loads(text)
    assert page["left_out"] == 0
    return page


def test_nobody_holds_anything_at_first(node: Outcome) -> None:
    page = seen(node, "before")
    assert (page["claims"], page["suspects"], page["unseen"]) == ([], [], [])
    assert page["complete"]


def test_each_page_of_a_forked_family_counts_once(node: Outcome) -> None:
    """Three processes map the same 48 MiB: Pss is rounded down by less than a kB in each."""
    claims = {claim[0]: claim for claim in seen(node, "held")["claims"]}
    assert set(claims) == {"/one", "/two"}
    _, driver, least, likely, most, source = claims["/one"]
    assert driver == "the seawall_pages driver"
    assert 48 * MIB - 3 * 1024 <= likely <= 48 * MIB
    assert least == likely
    assert most == 3 * 48 * MIB
    assert "3 processes" in source


def test_a_node_under_another_name_hides_nothing(node: Outcome) -> None:
    _, driver, least, likely, most, _ = {c[0]: c for c in seen(node, "held")["claims"]}["/two"]
    assert driver == "the seawall_pages driver"
    assert least == likely == most == 32 * MIB


def test_who_maps_nothing_is_a_suspect_and_no_more(node: Outcome) -> None:
    page = seen(node, "held")
    rows = {cgroup: (driver, pids) for cgroup, driver, pids, _ in page["suspects"]}
    assert rows == {
        "/one": ("the seawall_pages driver", 3),
        "/two": ("the seawall_pages driver", 1),
        "/three": ("the NVIDIA driver", 1),
    }
    assert page["suspects"][0][0] == "/one", "most processes first"
    assert page["suspects"][0][3].startswith("3 processes have /dev/seawall_pages open")


def test_memory_given_back_is_nobodys_claim(node: Outcome) -> None:
    page = seen(node, "after")
    assert (page["claims"], page["suspects"]) == ([], [])


def test_mapping_whose_descriptor_is_closed_keeps_the_module_in_use(node: Outcome) -> None:
    """The one that is missed; nobody may say then that the driver has no user."""
    page = seen(node, "closed")
    assert page["suspects"] == []
    assert int(node.text("closed.refcnt")) == 1


def test_what_a_driver_forgot_names_nobody(node: Outcome) -> None:
    page = seen(node, "forgotten")
    assert (page["claims"], page["suspects"], page["holders"]) == ([], [], [])


def test_graphics_node_and_its_dma_buf_with_both_who_hold_it(node: Outcome) -> None:
    page = seen(node, "exported")
    assert ["drm", 226, 0, 1] in page["nodes"]
    assert [row[:3] for row in page["suspects"]] == [["/six", "the drm driver", 1]]
    rows = page["dmabufs"]
    assert set(rows) == {"/six", "/handed"}
    # Each process has it twice, and it is one: the inode is the buffer's.
    assert [len(one) for one in rows.values()] == [1, 1]
    ((inode, _),) = rows["/six"]
    assert rows["/handed"][0][0] == inode
    assert inode > 0
