# SPDX-License-Identifier: Apache-2.0
"""One name for the pods of one workload, on whichever node each of them runs."""

import re
from typing import Final

# Kubernetes' own letters for what it adds to names (k8s.io/apimachinery util/rand): no vowels.
_LETTERS: Final = "[bcdfghjklmnpqrstvwxz2456789]"
_MADE: Final = re.compile(rf"-(?:{_LETTERS}{{6,10}}-)?{_LETTERS}{{5}}\Z")
_NAME_MOST: Final = 512


def kind_of(name: str) -> str:
    """The name without what differs from pod to pod of one workload."""
    parts = name[:_NAME_MOST].split("/")
    if len(parts) != 3:
        return name
    parts[1] = _MADE.sub("-*", parts[1])
    return "/".join(parts)
