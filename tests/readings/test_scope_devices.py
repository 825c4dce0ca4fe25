"""DeviceAllow= of transient units, put together as systemd does."""

from tests.case_host import CaseHost
from tests.readings.device_samples import SCOPE

from seawall.host.host import Unread
from seawall.host.recording import Round
from seawall.host.sieve import is_sieved, sieve_for
from seawall.readings import scope_devices
from seawall.readings.cgroup import Cgroups
from seawall.readings.scope_devices import ScopeDevices, UnitDevices, parse

TRANSIENT = "/run/systemd/transient"
CONTROL = "/run/systemd/system.control"
LASTING = "/etc/systemd/system.control"
UNIT = "cri-containerd-abc.scope"


def read(files: dict[str, bytes | Unread], *containers: str) -> ScopeDevices:
    """``containers``: cgroups that are one."""
    cgroups = within(*containers)
    found = scope_devices.read(
        CaseHost(Round(files={"/run/systemd/system/x": b"", **files})), cgroups
    )
    assert isinstance(found, ScopeDevices)
    return found


def within(*paths: str) -> Cgroups:
    return Cgroups(None, paths, "/sys/fs/cgroup", dict.fromkeys(paths, (1,)), ())  # type: ignore[arg-type]


def allow(*rows: str) -> bytes:
    return b"[Scope]\n" + b"".join(b"DeviceAllow=%s\n" % row.encode() for row in rows)


def test_a_scope_of_runc() -> None:
    found = read({f"{TRANSIENT}/{UNIT}": SCOPE})
    assert found.is_systemd
    assert found.by_unit == {
        UNIT: UnitDevices(
            "strict",
            (("/dev/char/10:200", "rwm"), ("/dev/char/195:255", "rw"), ("char-pts", "rwm"),
             ("char-*", "m"), ("block-*", "m")),
            (f"{TRANSIENT}/{UNIT}",),
        )
    }  # fmt: skip


def test_a_machine_without_systemd() -> None:
    """Others write into /run/systemd as well: /run/systemd/system is systemd's."""
    for files in ({"/run/utmp": b""}, {"/run/systemd/notify": b"", f"{TRANSIENT}/{UNIT}": SCOPE}):
        found = scope_devices.read(CaseHost(Round(files=dict(files))), within())
        assert found == ScopeDevices({}, is_systemd=False)


def test_old_systemd_has_one_drop_in_for_each_property() -> None:
    folder = f"{TRANSIENT}/{UNIT}.d"
    found = read({
        f"{TRANSIENT}/{UNIT}": b"# Transient stub\n",
        f"{folder}/50-DevicePolicy.conf": b"[Scope]\nDevicePolicy=strict\n",
        f"{folder}/50-DeviceAllow.conf": allow("", "/dev/null rwm"),
        f"{folder}/50-MemoryLimit.conf": b"never asked",
        f"{folder}/README": allow("/dev/zero"),
    })  # fmt: skip
    unit = found.by_unit[UNIT]
    assert (unit.policy, unit.allow) == ("strict", (("/dev/null", "rwm"),))
    assert len(unit.sources) == 3


def test_an_empty_assignment_resets_and_drop_ins_come_after_the_unit() -> None:
    found = read({
        f"{TRANSIENT}/{UNIT}": allow("/dev/zero rw"),
        f"{TRANSIENT}/{UNIT}.d/10-a.conf": allow("/dev/full", "", "/dev/random r"),
        f"{TRANSIENT}/{UNIT}.d/20-b.conf": allow("char-nvidia mw"),
    })  # fmt: skip
    assert found.by_unit[UNIT].allow == (("/dev/random", "r"), ("char-nvidia", "wm"))


def test_set_property_hides_the_drop_in_of_the_same_name() -> None:
    name = "50-DeviceAllow.conf"
    files: dict[str, bytes | Unread] = {
        f"{TRANSIENT}/{UNIT}.d/{name}": allow("/dev/null rwm"),
        f"{CONTROL}/{UNIT}.d/{name}": allow("", "/dev/nvidiactl rw"),
        f"{CONTROL}/other.service.d/{name}": allow("/dev/kvm"),
    }  # fmt: skip
    assert read(files).by_unit[UNIT].allow == (("/dev/nvidiactl", "rw"),)
    files[f"{LASTING}/{UNIT}.d/{name}"] = allow("/dev/fuse")
    assert read(files).by_unit == {
        UNIT: UnitDevices("auto", (("/dev/fuse", "rwm"),), (f"{LASTING}/{UNIT}.d/{name}",))
    }


def test_only_scopes_and_services() -> None:
    found = read({
        f"{TRANSIENT}/run-1.service": b"[Service]\nDevicePolicy=closed\n",
        f"{TRANSIENT}/a.timer": b"[Timer]\n",
        f"{TRANSIENT}/a.slice": b"[Slice]\nDevicePolicy=strict\n",
        f"{TRANSIENT}/x.mount.d/50-DeviceAllow.conf": allow("/dev/null"),
    })  # fmt: skip
    assert found.by_unit == {
        "run-1.service": UnitDevices("closed", (), (f"{TRANSIENT}/run-1.service",))
    }


def test_a_unit_whose_file_is_refused_is_not_one_without_rules() -> None:
    bad = f"{TRANSIENT}/{UNIT}.d/50-DeviceAllow.conf"
    found = read({f"{TRANSIENT}/{UNIT}": SCOPE, bad: Unread(bad, "refused")})
    assert found.by_unit == {}
    assert [(one.path, one.why) for one in found.unread] == [(bad, "refused")]


def test_a_folder_that_is_refused_is_told() -> None:
    host = CaseHost(Round(
        files={"/run/systemd/system/x": b"", f"{TRANSIENT}/{UNIT}": SCOPE},
        names={CONTROL: Unread(CONTROL, "refused")},
    ))  # fmt: skip
    found = scope_devices.read(host, within())
    assert isinstance(found, ScopeDevices)
    assert [(one.path, one.why) for one in found.unread] == [(CONTROL, "refused")]


def test_files_without_run_do_not_tell_whether_systemd_is_there() -> None:
    """A report that holds /proc and /sys alone: what was not captured is not "not so"."""
    found = scope_devices.read(
        CaseHost(Round(files={"/proc/meminfo": b"MemTotal: 1 kB"})), within()
    )
    assert isinstance(found, Unread)
    assert (found.path, found.why) == (scope_devices.BOOTED, "not_captured")


def test_what_systemd_ignores() -> None:
    lines = (
        b"[Unit]\nDeviceAllow=/dev/zero\n[Scope]\n#DeviceAllow=/dev/zero\nDevicePolicy=open\n"
        b"DeviceAllow=zero rw\nDeviceAllow=/dev/zero rx\nDeviceAllow = /dev/null  r \n"
        b"DeviceAllow=/etc/passwd\nDeviceAllow=\\\n/dev/full rw\n; x\nDeviceAllow=/dev/a\x1bb\n"
    )
    assert parse(lines) == (("DeviceAllow", "/dev/null r"), ("DeviceAllow", "/dev/full rw"))


def test_five_thousand_units_and_no_more() -> None:
    class Many(CaseHost):
        def names(self, path: str) -> tuple[str, ...] | Unread:
            if path == TRANSIENT:
                return tuple(f"a{n}.scope" for n in range(scope_devices.UNITS_MOST + 7))
            return () if path == scope_devices.BOOTED else Unread(path, "absent")

    found = scope_devices.read(Many(Round()), within())
    assert isinstance(found, ScopeDevices)
    assert [one.why for one in found.unread] == ["too_big"]


def test_units_leave_their_secrets_behind() -> None:
    path = f"{TRANSIENT}/run-1.service"
    keep = sieve_for(path)
    assert keep is not None
    assert is_sieved(path)
    secret = (
        b"[Service]\nEnvironment=TOKEN=hunter2\nExecStart=/bin/x \\\nDeviceAllow=hunter2\n"
        b"# DeviceAllow=hunter2\nDeviceAllow=/dev/null r\n"
    )
    assert keep(secret) == b"[Service]\nDeviceAllow=/dev/null r\n"
    assert parse(keep(SCOPE)) == parse(SCOPE)
    for folder in scope_devices.FOLDERS:
        assert is_sieved(f"{folder}/x.service")
    assert not is_sieved("/etc/systemd/journald.conf")


POD = "kubepods-besteffort-pod5ea0a11d_0700_4000_8000_000000000001.slice"
CONTAINER = f"/kubepods.slice/kubepods-besteffort.slice/{POD}/cri-containerd-{'ab' * 32}.scope"
LIB = "/usr/lib/systemd/system"
ETC = "/etc/systemd/system"


def test_drop_ins_for_a_prefix_and_for_all_scopes() -> None:
    """Debian's 252: ``systemctl cat`` of such a scope lists them in this order."""
    found = read({
        f"{TRANSIENT}/{UNIT}": allow("/dev/zero rw"),
        f"{ETC}/scope.d/10-all.conf": allow("/dev/full r"),
        f"{LIB}/cri-.scope.d/30-prefix.conf": allow("/dev/random r"),
        f"{ETC}/cri-containerd-.scope.d/20-long.conf": allow("/dev/urandom r"),
        f"{ETC}/docker-.scope.d/40-other.conf": allow("/dev/kvm"),
        f"{ETC}/cri-containerd.scope.d/40-other.conf": allow("/dev/kvm"),
    })  # fmt: skip
    unit = found.by_unit[UNIT]
    assert [what for what, _ in unit.allow] == [
        "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random"]  # fmt: skip
    assert unit.sources[1:] == (
        f"{ETC}/scope.d/10-all.conf", f"{ETC}/cri-containerd-.scope.d/20-long.conf",
        f"{LIB}/cri-.scope.d/30-prefix.conf",
    )  # fmt: skip


def test_the_most_special_drop_in_hides_those_of_its_name() -> None:
    files: dict[str, bytes | Unread] = {
        f"{TRANSIENT}/{UNIT}": allow("/dev/zero"),
        f"{ETC}/scope.d/50.conf": allow("/dev/full"),
        f"{LIB}/cri-.scope.d/50.conf": allow("/dev/random"),
    }
    assert read(files).by_unit[UNIT].allow == (("/dev/zero", "rwm"), ("/dev/random", "rwm"))
    files[f"{ETC}/cri-.scope.d/50.conf"] = allow("/dev/urandom")
    assert read(files).by_unit[UNIT].allow == (("/dev/zero", "rwm"), ("/dev/urandom", "rwm"))
    files[f"{LIB}/cri-containerd-.scope.d/50.conf"] = allow("/dev/kvm")
    assert read(files).by_unit[UNIT].allow == (("/dev/zero", "rwm"), ("/dev/kvm", "rwm"))


def test_what_a_container_is_in() -> None:
    """A lasting service (Podman's), and slices; what lies below is the container's own."""
    podman = f"/system.slice/train.service/libpod-{'ab' * 32}"
    files: dict[str, bytes | Unread] = {
        f"{LIB}/train.service": b"[Service]\nDevicePolicy=closed\nDeviceAllow=/dev/nvidia0\n",
        f"{ETC}/train.service": b"[Service]\nDevicePolicy=strict\n",
        f"{ETC}/kubepods.slice.d/10-no.conf": b"[Slice]\nDevicePolicy=closed\n",
        f"{TRANSIENT}/{POD}": b"[Slice]\nCPUWeight=1\n",
        f"{ETC}/other.service": b"[Service]\nDevicePolicy=closed\n",
        f"{ETC}/init.scope": b"[Scope]\nDevicePolicy=closed\n",
    }
    found = read(files, podman, f"{CONTAINER}/init.scope", "/system.slice/other.service")
    assert {name: unit.policy for name, unit in found.by_unit.items()} == {
        "train.service": "strict", "kubepods.slice": "closed", POD: "auto"}  # fmt: skip


def test_an_instance_has_its_templates_file() -> None:
    files: dict[str, bytes | Unread] = {
        f"{ETC}/job@.service": b"[Service]\nDevicePolicy=closed\n",
        f"{ETC}/job@.service.d/x.conf": b"[Service]\nDeviceAllow=/dev/kfd\n",
    }
    found = read(files, f"/system.slice/system-job.slice/job@1.service/libpod-{'ab' * 32}")
    assert found.by_unit["job@1.service"].policy == "closed"
    assert found.by_unit["job@1.service"].allow == (("/dev/kfd", "rwm"),)
