import json

from seawall.host.sieve import (
    SIEVED_NAMES,
    first_word,
    keep_container_config,
    keep_environment,
    keep_mount_options,
    sieve_for,
)


def test_first_word_only() -> None:
    assert first_word(b"mysqld\0--password=x\0") == b"mysqld"
    assert first_word(b"postgres: user pw [local]\0") == b"postgres:"
    assert first_word(b"") == b""


def test_environment_is_an_allow_list() -> None:
    kept = b"CUDA_VISIBLE_DEVICES=0,1\0NVIDIA_DRIVER_CAPABILITIES=all"
    environ = b"PATH=/x\0" + kept + b"\0XCUDA_A=1\0CUDA_lower=1\0"
    assert keep_environment(environ) == kept


def test_mount_options_that_can_hold_credentials_are_dropped() -> None:
    kept = b"30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate"
    lines = kept + b"\n40 23 0:50 / /mnt rw shared:1 - cifs //srv/x rw,username=bob,password=pw\n"
    sieved = keep_mount_options(lines)
    assert kept in sieved
    assert b"password" not in sieved
    assert b"/mnt rw shared:1 - cifs //srv/x -" in sieved


def test_container_config_keeps_names_and_limits_only() -> None:
    config = {
        "ociVersion": "1.0.2",
        "process": {"env": ["SECRET=1", "NVIDIA_VISIBLE_DEVICES=GPU-1"], "args": ["--token=x"]},
        "annotations": {"io.kubernetes.cri.sandbox-name": "web", "my.secret/x": "hidden"},
        "linux": {"cgroupsPath": "/a", "resources": {"memory": {"limit": 5}}},
        "mounts": [{"source": "/secret"}],
    }
    sieved = json.loads(keep_container_config(json.dumps(config).encode()))
    assert sieved["annotations"] == {"io.kubernetes.cri.sandbox-name": "web"}
    assert sieved["linux"]["resources"]["memory"]["limit"] == 5
    assert sieved["process"] == {"env": ["NVIDIA_VISIBLE_DEVICES=GPU-1"]}
    assert "mounts" not in sieved
    for hostile in (b"", b"[", b"[" * 100_000, b'"x"', b'{"annotations": 7, "linux": []}'):
        assert b"secret" not in keep_container_config(hostile)


def test_every_sieved_name_has_its_sieve() -> None:
    assert all(sieve_for(f"/proc/7/{name}") or name == "x" for name in SIEVED_NAMES)
    assert sieve_for("/proc/7/cmdline", with_cmdline=True) is None
    assert sieve_for("/proc/7/environ", with_cmdline=True) is keep_environment
    assert sieve_for("/proc/meminfo") is None


def test_credentials_in_a_mount_source_are_cut() -> None:
    line = b"40 23 0:50 / /mnt rw - %s %s rw,x=1"
    sieved = keep_mount_options(line % (b"fuse.davfs", b"https://bob:p@ss@dav.example/share"))
    assert sieved == b"40 23 0:50 / /mnt rw - fuse.davfs https://dav.example/share -"
    # What follows the first slash is a path, and an @ in it no password.
    for source in (b"https://dav.example/a@b", b"//srv/x@y", b"bob@host:/folder"):
        assert source in keep_mount_options(line % (b"fuse.x", source))
