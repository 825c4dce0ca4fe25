# SPDX-License-Identifier: Apache-2.0
"""What the sieve keeps of files about devices, and nothing else of them.

Configs of containers hold environments, arguments of hooks and names of volumes; units hold
commands and environments (``systemd-run -E``); a device plugin's answer in the kubelet's checkpoint
holds an environment too (deviceplugin/v1beta1/api.proto, ContainerAllocateResponse).
"""

import binascii
import json
from collections.abc import Callable
from typing import Final

from seawall.formats.protobuf_wire import field, fields, messages
from seawall.formats.strict_base64 import strict_base64
from seawall.problems import ParseProblem

_ENVS: Final = 1
_ANNOTATIONS: Final = 4
_KEPT: Final = frozenset({_ENVS, 2, 3, _ANNOTATIONS, 5})
_CDI: Final = b"cdi.k8s.io/"
_HOOKS: Final = ("prestart", "createRuntime", "createContainer", "startContainer")
_BUNDLE: Final = "bundle="
_DOCKER: Final = ("DeviceCgroupRules", "Runtime", "Privileged")
_UNIT_KEYS: Final = (b"DevicePolicy", b"DeviceAllow")


def device_facts(config: dict[str, object]) -> dict[str, object]:
    """Of an OCI or Docker config, in its own shape: programs of hooks without their arguments,
    bind mounts below /dev without their sources, and Docker's words on devices.
    """
    kept: dict[str, object] = {name: config[name] for name in _DOCKER if name in config}
    hooks = config.get("hooks")
    if isinstance(hooks, dict):
        kept["hooks"] = {
            when: [{"path": row.get("path")} for row in rows if isinstance(row, dict)]
            for when in _HOOKS
            if isinstance(rows := hooks.get(when), list)
        }
    return kept


def device_mount(mount: dict[str, object]) -> dict[str, object]:
    """Where a mount below /dev is; empty for any other."""
    target = mount.get("destination")
    if not isinstance(target, str) or not target.startswith("/dev/"):
        return {}
    return {key: mount[key] for key in ("destination", "type", "options") if key in mount}


def state_facts(config: object) -> dict[str, object]:
    """Of ``config`` in runc's state.json the devices, the rules, programs of hooks without their
    arguments, and where its bundle is.
    """
    if not isinstance(config, dict):
        return {}
    kept: dict[str, object] = {"devices": config["devices"]} if "devices" in config else {}
    labels = config.get("labels")
    if isinstance(labels, list):
        kept["labels"] = [x for x in labels if isinstance(x, str) and x.startswith(_BUNDLE)]
    if hooks := device_facts({"hooks": config.get("Hooks")}):
        kept["Hooks"] = hooks["hooks"]
    cgroups = config.get("cgroups")
    if isinstance(cgroups, dict) and "devices" in cgroups:
        kept["cgroups"] = {"devices": cgroups["devices"]}
    return kept


def keep_unit_devices(unit: bytes) -> bytes:
    """Of a systemd unit or drop-in the names of sections and the lines about devices."""
    kept = []
    is_continued = False
    for raw in unit.split(b"\n"):
        line = raw.strip()
        if line[:1] in (b"#", b";"):
            continue
        name = line.partition(b"=")[0].strip()
        if not is_continued and (line[:1] == b"[" or name in _UNIT_KEYS):
            kept.append(line.removesuffix(b"\\"))
        is_continued = line.endswith(b"\\")
    return b"\n".join([*kept, b""])


def keep_answers(checkpoint: bytes, is_kept: Callable[[bytes], object]) -> bytes:
    """The checkpoint without variables whose names are not kept, and without annotations but
    CDI's; an answer that is none stands as it is, without its bytes.
    """
    try:
        document = json.loads(checkpoint)
    except (ValueError, RecursionError):
        return b""
    inner = document.get("Data") if isinstance(document, dict) else None
    rows = inner.get("PodDeviceEntries") if isinstance(inner, dict) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and "AllocResp" in row:
            row["AllocResp"] = _kept(row["AllocResp"], is_kept)
    return json.dumps(document, sort_keys=True).encode()


def _kept(text: object, is_kept: Callable[[bytes], object]) -> object:
    if not isinstance(text, str):
        return None if text is None else False
    try:
        message = strict_base64(text)
        found = [
            field(number, value)
            for number, value in fields(message)
            if isinstance(value, bytes) and _may_stay(number, value, is_kept)
        ]
    except (ValueError, ParseProblem):
        return False  # no base64 of a message: malformed to whoever reads it, too
    return binascii.b2a_base64(b"".join(found), newline=False).decode()


def _may_stay(number: int, value: bytes, is_kept: Callable[[bytes], object]) -> bool:
    if number not in _KEPT:
        return False
    if number not in (_ENVS, _ANNOTATIONS):
        return True
    name = [b"", *messages(value, 1)][-1]
    return bool(is_kept(name)) if number == _ENVS else name.startswith(_CDI)
