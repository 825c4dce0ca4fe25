"""Access that systemd takes away, on Debian's 6.1 under cgroup v2 with systemd as the manager.

runc tells systemd of no device whose /dev/char link is missing (1.1.3 to 1.1.6), and allows it in
the kernel all the same: it works until the next daemon-reload.  One boot: three containers, a
reload, and what is said before and after.
"""

import errno
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from tests.containers.gpu_node import MAJORS, NODES, Wanted, config_of, mknod
from tests.containers.test_gpu_runc import told
from tests.kernels import guard_peers, runc_in_guest
from tests.kernels.vm import Image, Outcome, build_image, missing, run_job

from seawall.formats.iso_time import iso_datetime

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(900)]
UID = "5ea0a11d-0700-4000-8000-{:012x}"
RELOAD = "the next daemon-reload"
LATE, TOLD = "/dev/acme0", "/dev/acme1"
CONTAINERS = {
    "no-links": dict(NODES),
    "link-came-late": {LATE: (240, 7)},
    "told": {TOLD: (240, 8)},
}
NUMBERS = {name: number for number, name in enumerate(CONTAINERS, start=1)}
BEFORE = r"""
cp $JOB/runc /bin/runc # systemd brought libseccomp along: written over, it would die of it
mkdir -p /dev/char /var/log/containers
sed "s/^Block/@DRIVERS@\nBlock/" /proc/devices > /run/devices
mount --bind /run/devices /proc/devices
@NODES@
ln -s @TOLD@ /dev/char/240:8
for unit in scope cri-.scope cri-containerd-.scope docker-.scope; do
    mkdir -p /run/systemd/system/$unit.d
    for name in 70-$unit 80-same; do
        printf '[Scope]\nIOWeight=100\n' > /run/systemd/system/$unit.d/$name.conf
    done
done
"""
AROUND = r"""
try() { # opens each device from inside the container's cgroup: who refuses?
    for pair in @TRIED@; do
        sh -c 'echo $$ > $0/cgroup.procs; exec 3<>$1' /sys/fs/cgroup/${pair%%=*} ${pair#*=} 2>&1
    done > $OUT/open-$1.txt
}
see() {
    try $1
    seawall gpu --json > $OUT/$1.json 2> $OUT/$1.err
    seawall gpu > $OUT/$1.txt 2>> $OUT/$1.err
    seawall why --json --timeout 90 > $OUT/why-$1.json 2>> $OUT/$1.err
}
ln -s @LATE@ /dev/char/240:7
runc --version > $OUT/versions; systemctl --version >> $OUT/versions
see before
seawall gpu --watch --json --for 120 > $OUT/watch.jsonl 2> $OUT/watch.err & watch=$!
wait_for() { for i in $(seq 100); do grep -q "$1" $OUT/watch.jsonl && break; sleep 0.2; done; }
wait_for '"stands"'; sleep 2
date +%s > $OUT/reload; systemctl daemon-reload; date +%s >> $OUT/reload
wait_for '"EPERM"'; sleep 2; kill -INT $watch; wait $watch; echo "watch $?" >> $OUT/watch.err
see after
systemctl show -p DropInPaths cri-containerd-@TOLD_KEY@.scope > $OUT/drop-ins
"""


def key_of(name: str) -> str:
    return f"{NUMBERS[name]:064x}"


def cgroup_of(name: str) -> str:
    uid = UID.format(NUMBERS[name]).replace("-", "_")
    folder = f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice"
    return f"{folder}/cri-containerd-{key_of(name)}.scope"


def config(name: str) -> bytes:
    """As containerd gives it where the kubelet's cgroup driver is systemd."""
    uid = UID.format(NUMBERS[name]).replace("-", "_")
    place = f"kubepods-burstable-pod{uid}.slice:cri-containerd:{key_of(name)}"
    made = config_of(Wanted(name=name, nodes=CONTAINERS[name]), place)
    made["root"]["readonly"] = False
    made["mounts"] = [m for m in made["mounts"] if m["type"] not in ("cgroup", "mqueue")]
    return json.dumps(made).encode()


def start(name: str) -> str:
    """Lines that start one of them."""
    home, key = f"/root/bundles/{name}", key_of(name)
    log = f"/var/log/containers/{name}_shop_app-{key}.log"
    return f"""
mkdir -p {home}/rootfs/bin {home}/rootfs/proc {home}/rootfs/dev {home}/rootfs/sys
cp /bin/busybox {home}/rootfs/bin/; ln -s busybox {home}/rootfs/bin/sh
cp $JOB/config-{name}.json {home}/config.json
ln -s /var/log/pods/shop_{name}_{UID.format(NUMBERS[name])}/app/0.log {log}
runc --systemd-cgroup run -d -b {home} {key} < /dev/null > /run/{name}.log 2>&1 ||
    cat /run/{name}.log
"""


def job() -> str:
    nodes = {path: number for made in CONTAINERS.values() for path, number in made.items()}
    tried = " ".join(
        f"{cgroup_of(name)}={path}" for name in CONTAINERS for path in CONTAINERS[name]
    )
    text = BEFORE + "".join(start(name) for name in CONTAINERS) + AROUND
    for mark, words in {
        "DRIVERS": r"\n".join(f"{major} {name}" for name, major in MAJORS.items()),
        "NODES": "\n".join(mknod(path, number) for path, number in nodes.items()),
        "TOLD_KEY": key_of("told"), "LATE": LATE, "TOLD": TOLD, "TRIED": tried,
    }.items():  # fmt: skip
        text = text.replace(f"@{mark}@", words)
    return text


@pytest.fixture(scope="module")
def with_systemd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    why = missing() or runc_in_guest.missing() or guard_peers.missing(guard_peers.SYSTEMD)
    if why:
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("gpu-node")
    yield build_image(folder, guard_peers.add_systemd)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def node(with_systemd: Image, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    files = runc_in_guest.files()
    files |= {f"config-{name}.json": config(name) for name in CONTAINERS}
    return run_job(
        with_systemd, job(), tmp_path_factory.mktemp("gpu"), files=files, memory_mib=1024,
        kernel_words="node.init=systemd", timeout_seconds=400,
    )  # fmt: skip


def page(node: Outcome, moment: str) -> dict[str, Any]:
    text = node.text(f"{moment}.json")
    assert text, node.text(f"{moment}.err")
    found: dict[str, Any] = json.loads(text)
    return found


def forgets_rules() -> bool:
    """Whether this runc leaves out what has no link."""
    said = subprocess.run(["runc", "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"version 1\.1\.(\d+)", said)
    return found is not None and 3 <= int(found[1]) <= 6


needs_old_runc = pytest.mark.skipif(
    not shutil.which("runc") or not forgets_rules(), reason="runc is not one of 1.1.3 to 1.1.6"
)


@needs_old_runc
def test_before_all_works_and_the_end_is_foretold(node: Outcome) -> None:
    before = page(node, "before")
    for name in CONTAINERS:
        row = told(before, name)
        assert row["diagnosis"] is None, row["diagnosis"]
        assert {one["errno"] for one in row["devices"]} == {0}
    soon = {(row["workload"], row["device"]): row["when"] for row in before["about_to_break"]}
    expected = {("shop/no-links/app", path) for path in NODES} | {("shop/link-came-late/app", LATE)}
    assert soon == dict.fromkeys(expected, RELOAD)
    assert "Operation not permitted" not in node.text("open-before.txt")


@needs_old_runc
def test_f4_after_the_reload(node: Outcome) -> None:
    row = told(page(node, "after"), "no-links")
    assert row["diagnosis"]["mode"] == "F4"
    assert "/dev/char/" in row["diagnosis"]["cause"]
    for one in row["devices"]:
        assert one["broken_at"] == "systemd"
        assert one["errno"] == errno.EPERM
        layers = {name: answer["says"] for name, answer in one["layers"].items()}
        assert layers == {"promised": "none", "configured": "yes", "systemd": "no", "kernel": "no",
                          "access": "no"}  # fmt: skip


@needs_old_runc
def test_f3_where_the_link_is_there_now(node: Outcome) -> None:
    row = told(page(node, "after"), "link-came-late")
    assert row["diagnosis"]["mode"] == "F3"
    assert [one["broken_at"] for one in row["devices"]] == ["systemd"]


def test_what_systemd_was_told_of_stays(node: Outcome) -> None:
    after = page(node, "after")
    row = told(after, "told")
    assert row["diagnosis"] is None
    assert [one["errno"] for one in row["devices"]] == [0]
    assert row["workload"] not in {soon["workload"] for soon in after["about_to_break"]}


@needs_old_runc
@pytest.mark.parametrize("name", ["no-links", "link-came-late"])
def test_since_the_reload_as_the_kernel_tells(node: Outcome, name: str) -> None:
    """bpf_prog_info.load_time, and systemd's own word of when it loaded its units."""
    since = told(page(node, "after"), name)["diagnosis"]["since"]
    began, ended = map(float, node.text("reload").split())
    at = iso_datetime(since["at"]).timestamp()
    assert began - 2 <= at <= ended + 1
    assert "the last daemon-reload put systemd's own device program there" in since["how"]
    text = node.text("after.txt")
    assert f"since   {since['at'][:10]} {since['at'][11:19]} UTC" in text


@needs_old_runc
def test_the_runc_that_did_it_is_named(node: Outcome) -> None:
    version = re.search(r"runc version (\S+)", node.text("versions"))
    assert version is not None
    cause = told(page(node, "after"), "no-links")["diagnosis"]["cause"]
    assert f"Here: runc {version[1]}" in cause
    why = [row["why"] for row in page(node, "before")["about_to_break"]]
    assert any(f"runc {version[1]}" in words for words in why), why
    found = json.loads(node.text("why-after.json"))["findings"]
    (rule,) = [row for row in found if row["id"] == "SW401" and row["verdict"] == "fires"]
    assert "refused since" in " ".join(one["name"] for one in rule["evidence"])


@needs_old_runc
def test_a_watch_sees_it_go(node: Outcome) -> None:
    """No writer is named: on v2 the kernel tells of none."""
    lines = [json.loads(line) for line in node.text("watch.jsonl").splitlines()]
    assert node.text("watch.err") == "watch 0\n"
    assert [lines[0]["event"], lines[-1]["event"]] == ["started", "ended"]
    gone = {(line["workload"], line["device"]): line for line in lines if line["event"] == "access"}
    lost = {("shop/no-links/app", path) for path in NODES} | {("shop/link-came-late/app", LATE)}
    assert set(gone) == lost
    began, ended = map(float, node.text("reload").split())
    for line in gone.values():
        assert (line["from"], line["to"], line["layer"]) == ("allowed", "EPERM", "kernel")
        assert line["writer"] is None
        at = iso_datetime(line["at"]).timestamp()
        assert began - 1 <= at <= ended + 2


def test_systemd_looks_for_drop_ins_where_we_do(node: Outcome) -> None:
    """Of all scopes and of a truncated name; the most special of one name hides the others."""
    known = node.text("drop-ins").strip().removeprefix("DropInPaths=").split()
    ours = [path for path in known if path.startswith("/run/systemd/system/")]
    assert ours == [
        f"/run/systemd/system/{unit}.d/{name}"
        for unit, name in (
            ("cri-.scope", "70-cri-.scope.conf"),
            ("cri-containerd-.scope", "70-cri-containerd-.scope.conf"),
            ("scope", "70-scope.conf"),
            ("cri-containerd-.scope", "80-same.conf"),
        )
    ]


@needs_old_runc
def test_open_says_the_same(node: Outcome) -> None:
    """Nobody but the kernel: five of six are refused after the reload."""
    said = node.text("open-after.txt").splitlines()
    assert sum("Operation not permitted" in line for line in said) == 5, said


@needs_old_runc
def test_why_says_it_before_and_after(node: Outcome) -> None:
    found = {}
    for moment in ("before", "after"):
        rows = json.loads(node.text(f"why-{moment}.json"))["findings"]
        found[moment] = {row["id"] for row in rows if row["verdict"] == "fires"}
    assert "SW404" in found["before"]
    assert "SW401" not in found["before"]
    assert "SW401" in found["after"]
    assert "SW404" not in found["after"]
