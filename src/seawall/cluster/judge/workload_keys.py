# SPDX-License-Identifier: Apache-2.0
"""How a workload is known again after it was renamed: four keys, from its owner to its images.

A new name or hash changes the first key, never the third.  Images alone are the coarsest.
"""

import json
import re
from dataclasses import dataclass
from typing import Final

from seawall.cluster.judge.node_death import WorkloadKey

_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.ASCII)
_DIGITS: Final = re.compile(r"\d+", re.ASCII)
# k8s.io/apimachinery/pkg/util/rand: names are made of these letters, which spell no word; five of
# generateName, eight to ten of a pod template's hash.
_GENERATED: Final = re.compile(r"-(?:[bcdfghjklmnpqrstvwxz2456789]{5}|"
                               r"[bcdfghjklmnpqrstvwxz2456789]{8,10})$", re.ASCII)  # fmt: skip
_DIGEST_LETTERS: Final = 16
_WORDS_MOST: Final = 65536
"""Of one pod's commands: what is longer is cut before it is compared."""


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """What of a pod its keys are made of; all of it is written by its owner, and hostile."""

    namespace: str
    root_owner_uid: str
    """Of what has no owner above it: Deployment, CronJob, JobSet, or the pod itself."""
    root_owner_name: str
    image_digests: tuple[str, ...] = ()
    """By container, from ``imageID``: a tag may move."""
    commands: tuple[tuple[str, ...], ...] = ()
    """Command and arguments of each container."""
    environment_names: tuple[str, ...] = ()
    """No values: they hold secrets."""
    volume_kinds: tuple[str, ...] = ()
    resources: tuple[tuple[str, str], ...] = ()
    service_account: str = ""


def keys_of(
    pod: PodIdentity, common_digests: frozenset[str] = frozenset()
) -> tuple[WorkloadKey, ...]:
    """Fine to coarse; ``common_digests`` are sidecars that 30 % of a stratum's pods carry."""
    keys = []
    if pod.root_owner_uid:
        keys.append(WorkloadKey(1, pod.root_owner_uid))
    if pod.root_owner_name:
        keys.append(WorkloadKey(2, f"{pod.namespace}/{stable_name(pod.root_owner_name)}"))
    digests = sorted(set(pod.image_digests) - common_digests)
    if digests:  # without a digest the image was never there, and nothing of it ran
        template = [
            digests, [_stable_words(words) for words in pod.commands],
            sorted(set(pod.environment_names)), sorted(set(pod.volume_kinds)),
            sorted(pod.resources), pod.service_account,
        ]  # fmt: skip
        keys += [
            WorkloadKey(3, f"{pod.namespace}/{_digest(template)}"),
            WorkloadKey(4, f"{pod.namespace}/{_digest(digests)}"),
        ]
    return tuple(keys)


def stable_name(name: str) -> str:
    """Without what is generated: ``train-20261128-x7k2p`` and ``train-20261129-b9fzq`` are one."""
    name = _UUID.sub("#", name)
    while (shorter := _GENERATED.sub("", name)) and shorter != name:
        name = shorter
    return _DIGITS.sub("#", name)


def _stable_words(words: tuple[str, ...]) -> list[str]:
    return [_DIGITS.sub("#", _UUID.sub("#", word)) for word in _cut(words)]


def _cut(words: tuple[str, ...]) -> list[str]:
    left, short = _WORDS_MOST, []
    for word in words:
        if left <= 0:
            break
        short.append(word[:left])
        left -= len(word) + 1
    return short


def _digest(value: object) -> str:
    import hashlib  # noqa: PLC0415 - the self-contained file's Python has half of it, and no cluster

    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:_DIGEST_LETTERS]
