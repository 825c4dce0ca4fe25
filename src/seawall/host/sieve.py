# SPDX-License-Identifier: Apache-2.0
"""What may hold a secret, and the little of it that Seawall keeps.

Applied once, where a live file is read: what is not on the allow-list never enters the
process, a bundle, a view or a log.  Recorded data therefore equals live data.
"""

import re
from collections.abc import Callable
from typing import Final

from seawall import kubelet_folders

ENVIRONMENT_NAMES: Final = re.compile(
    rb"(?:(?:NVIDIA|CUDA|ROCR?|HIP|HSA|GPU|AMD|ZE|ONEAPI)_[A-Z0-9_]+|PASS_DEVICE_SPECS)\Z"
)
# Of processes alone: what tells a job from another, and whose it is.
_JOB_NAMES: Final = re.compile(rb"SLURM_(?:JOB_(?:ID|UID|USER|ACCOUNT)|ARRAY_(?:JOB|TASK)_ID)\Z")
# Each by its name: io.kubernetes.cri-o.Annotations, for one, holds whatever users wrote.
ANNOTATION_NAMES: Final = re.compile(
    r"(?:io\.kubernetes\.cri\.(?:container-type|container-name|image-name"
    r"|sandbox-(?:id|name|namespace|uid|memory|cpu-(?:period|quota|shares)))"
    r"|io\.kubernetes\.cri-o\.(?:Container(?:Type|ID|Name)|Sandbox(?:ID|Name)|KubeName|Namespace"
    r"|Name|CgroupParent|ImageName)"
    r"|io\.kubernetes\.(?:pod\.(?:name|namespace|uid)|container\.name|docker\.type|sandbox\.id)"
    r"|io\.container\.manager|nerdctl/(?:name|namespace)"
    r"|com\.docker\.compose\.(?:project|service)|cdi\.k8s\.io/[A-Za-z0-9._-]+)\Z"
)
# Of the host's folders that a container was given, those that only daemons of the node get: they
# tell a device plugin, a CSI or CNI driver, a storage daemon.  Volumes have names of users.
# The kubelet's are ``kubelet_folders.FOLDER``.
GIVEN_FOLDERS: Final = re.compile(
    r"(?:/(?:etc|opt)/cni(?:/[a-z.]+)?|/run/nvidia(?:/driver|/validations)?"
    r"|/var/lib/(?:rook(?:/[^/]+)?|ceph|longhorn|osd|glusterd)|/etc/(?:pwx|iscsi))/?\Z"
)
_URL_USER: Final = re.compile(rb"://[^/ ]*@")
MOUNT_OPTIONS_KEPT: Final = frozenset(
    {"cgroup", "cgroup2", "tmpfs", "ramfs", "overlay", "hugetlbfs", "proc", "sysfs", "bpf"}
)


def first_word(cmdline: bytes) -> bytes:
    """argv[0] alone: secrets are passed in the words after it."""
    # A process that rewrote its title may have put everything into one word.
    return cmdline.split(b"\0", 1)[0].split(b" ", 1)[0]


def keep_environment(environ: bytes) -> bytes:
    """Only variables whose names are on the allow-list, values included."""
    kept = []
    for word in environ.split(b"\0"):
        name = word.partition(b"=")[0]
        if ENVIRONMENT_NAMES.match(name) or _JOB_NAMES.match(name):
            kept.append(word)
    return b"\0".join(kept)


def keep_user_names(users: bytes) -> bytes:
    """/etc/passwd: names and numbers; no passwords, full names or folders."""
    kept = []
    for line in users.split(b"\n"):
        words = line.split(b":")
        if len(words) > 2:
            kept.append(b":".join((words[0], b"x", words[2])) + b"\n")
    return b"".join(kept)


_READ_ONLY: Final = frozenset({b"ro", b"emergency_ro", b"shutdown"})


def keep_mount_options(mountinfo: bytes) -> bytes:
    """Mountinfo without the super options of filesystems whose options can hold credentials, but
    for the words that say that nothing can be written, and without user and password in the source (``https://user:password@host``).
    """
    lines = []
    for line in mountinfo.split(b"\n"):
        head, dash, tail = line.partition(b" - ")
        words = tail.split(b" ")
        if dash and len(words) >= 3 and words[0].decode("latin-1") not in MOUNT_OPTIONS_KEPT:
            source = _URL_USER.sub(b"://", words[1])
            flags = [word for word in words[2].split(b",") if word in _READ_ONLY]
            line = head + dash + b" ".join([words[0], source, b",".join(flags) or b"-"])
        lines.append(line)
    return b"\n".join(lines)


def keep_container_config(config: bytes) -> bytes:
    """An OCI or Docker container config: names, cgroup path, limits, devices; no environment."""
    import json  # noqa: PLC0415 - only hosts with containers need it

    try:
        document = json.loads(config)
    except (ValueError, RecursionError):
        return b""
    return json.dumps(_container_facts(document), sort_keys=True).encode()


def keep_runtime_state(state: bytes) -> bytes:
    """A runc or crun state.json: its id, the folders of its cgroups, of its config the devices."""
    import json  # noqa: PLC0415 - as above

    from seawall.host.device_sieve import state_facts  # noqa: PLC0415 - as above

    try:
        document = json.loads(state)
    except (ValueError, RecursionError):
        return b""
    kept: dict[str, object] = {}
    if isinstance(document, dict):
        if isinstance(document.get("id"), str):
            kept["id"] = document["id"]
        paths = document.get("cgroup_paths")
        if isinstance(paths, dict):
            kept["cgroup_paths"] = {k: v for k, v in paths.items() if isinstance(v, str)}
        if facts := state_facts(document.get("config")):
            kept["config"] = facts
    return json.dumps(kept, sort_keys=True).encode()


def keep_kernel_log(records: bytes) -> bytes:
    """Of /dev/kmsg the records of OOM reports alone."""
    from seawall.host.kmsg import keep_oom_records  # noqa: PLC0415 - few verbs read it

    return keep_oom_records(records)


def _container_facts(document: object) -> dict[str, object]:
    """The allow-listed part of a container's configuration, in its own shape."""
    from seawall.host.device_sieve import device_facts  # noqa: PLC0415 - as above

    if not isinstance(document, dict):
        return {}
    kept: dict[str, object] = device_facts(document)
    for name in ("ociVersion", "Name", "ID", "HostnamePath", "Image", "CgroupParent"):
        if isinstance(document.get(name), str):
            kept[name] = document[name]
    annotations = document.get("annotations")
    if isinstance(annotations, dict):
        kept["annotations"] = _allowed(annotations)
    linux = document.get("linux")
    if isinstance(linux, dict):
        kept["linux"] = {k: linux[k] for k in ("cgroupsPath", "resources", "devices") if k in linux}
    if config := _docker_config(document.get("Config")):
        kept["Config"] = config
    for name in ("Memory", "MemorySwap", "MemoryReservation", "Devices", "DeviceRequests"):
        if name in document:
            kept[name] = document[name]
    kept.update(_mounts(document.get("mounts")))
    process = document.get("process")
    if isinstance(process, dict) and (given := variables(process, "env")):
        kept["process"] = given
    return kept


def _docker_config(config: object) -> dict[str, object]:
    """``Config`` of a config.v2.json: labels and variables on the allow-lists."""
    if not isinstance(config, dict):
        return {}
    labels, kept = config.get("Labels"), variables(config, "Env")
    if isinstance(labels, dict):
        kept["Labels"] = _allowed(labels)
    return kept


def variables(holder: dict[str, object], key: str) -> dict[str, object]:
    """A list of ``NAME=value`` with the names on the allow-list, in its own shape."""
    words = holder.get(key)
    if not isinstance(words, list):
        return {}
    names = (
        (w, w.partition("=")[0].encode("utf-8", "replace")) for w in words if isinstance(w, str)
    )
    given = [word for word, name in names if ENVIRONMENT_NAMES.match(name)]
    return {key: given} if given else {}


def _mounts(mounts: object) -> dict[str, object]:
    """Sources of mounts that are on the allow-list, and which mounts are below /dev."""
    from seawall.host.device_sieve import device_mount  # noqa: PLC0415 - as above

    given = []
    for row in mounts if isinstance(mounts, list) else ():
        if not isinstance(row, dict):
            continue
        source, kept = row.get("source"), device_mount(row)
        if isinstance(source, str) and _is_daemons(source):
            kept["source"] = source
        if kept:
            given.append(kept)
    return {"mounts": given} if given else {}


def _is_daemons(source: str) -> bool:
    return bool(GIVEN_FOLDERS.match(source) or kubelet_folders.FOLDER.match(source))


def _allowed(labels: dict[object, object]) -> dict[str, object]:
    """The labels and annotations whose names are on the allow-list."""
    return {k: v for k, v in labels.items() if isinstance(k, str) and ANNOTATION_NAMES.match(k)}


def keep_checkpoint(checkpoint: bytes) -> bytes:
    """The kubelet's device checkpoint: of environments the names on the allow-list."""
    from seawall.host.device_sieve import keep_answers  # noqa: PLC0415 - as above

    return keep_answers(checkpoint, ENVIRONMENT_NAMES.match)


def keep_unit(unit: bytes) -> bytes:
    """A systemd unit file or drop-in: what it says of devices."""
    from seawall.host.device_sieve import keep_unit_devices  # noqa: PLC0415 - as above

    return keep_unit_devices(unit)


def sieve_for(path: str, *, with_cmdline: bool = False) -> Callable[[bytes], bytes] | None:
    """What must be done to the content of ``path`` before anyone sees it; None for nothing."""
    name = path.rpartition("/")[2]
    if name == "cmdline" and path.startswith("/proc/"):
        return None if with_cmdline else first_word
    if name == "environ" and path.startswith("/proc/"):
        return keep_environment
    if name == "passwd":
        return keep_user_names
    if name == "mountinfo":
        return keep_mount_options
    if name in ("config.json", "config.v2.json", "hostconfig.json"):
        return keep_container_config
    if name == "state.json":
        return keep_runtime_state
    if name == "kmsg":
        return keep_kernel_log
    if name == "kubelet_internal_checkpoint":
        return keep_checkpoint
    if path.startswith(UNIT_FOLDERS):
        return keep_unit
    return None


UNIT_FOLDERS: Final = (
    "/run/systemd/transient/", "/run/systemd/system.control/", "/etc/systemd/system.control/",
    "/etc/systemd/system/", "/run/systemd/system/", "/usr/local/lib/systemd/system/",
    "/usr/lib/systemd/system/", "/lib/systemd/system/",
)  # fmt: skip
SIEVED_NAMES: Final = frozenset(
    {
        "cmdline", "environ", "passwd", "mountinfo", "kmsg", "kubelet_internal_checkpoint",
        "config.json", "config.v2.json", "hostconfig.json", "state.json",
    }
)  # fmt: skip


def is_sieved(path: str) -> bool:
    """Whether ``sieve_for`` may have something to do: asked for every file that is read."""
    return path.rpartition("/")[2] in SIEVED_NAMES or path.startswith(UNIT_FOLDERS)
