"""RFC 6902 as far as the writer of changes uses it: test, add and remove in objects."""

import copy
from typing import Any


class PatchRefused(Exception):
    """A test failed, or there is nothing to remove."""


def patched(document: dict[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
    """All operations or none; empty maps of annotations and labels go, as in the API."""
    whole = copy.deepcopy(document)
    for one in operations:
        *parents, last = [
            word.replace("~1", "/").replace("~0", "~") for word in one["path"].split("/")[1:]
        ]
        place = whole
        for word in parents:
            place = place[word]
        if one["op"] == "test":
            if place.get(last) != one["value"] or type(place[last]) is not type(one["value"]):
                raise PatchRefused(one["path"])
        elif one["op"] == "remove":
            if last not in place:
                raise PatchRefused(one["path"])
            del place[last]
        else:
            place[last] = copy.deepcopy(one["value"])
    for name in ("annotations", "labels"):
        if not whole["metadata"].get(name, True):
            del whole["metadata"][name]
    return whole
