"""A filesystem whose files never answer: ``fuse_server.py MOUNTPOINT FILE...`` (as root).

Speaks just enough of /dev/fuse (linux/fuse.h, protocol 7.31) for folders to be listed and
files to be found and opened.  A READ is taken and never answered, so its caller sleeps in
state D and cannot be killed until this server ends.
"""

import ctypes
import errno
import os
import stat
import struct
import sys

HEAD = struct.Struct("=IIQQIIIHH")
ATTRIBUTES = struct.Struct("=6Q10I")
LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH = 1, 2, 3, 14, 15, 17, 18, 25
INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET = 26, 27, 28, 29, 36, 42
FILE_SIZE = 1 << 20


class Tree:
    """Nodes by number: a folder is a dict of names, a file is None.  The root is 1."""

    def __init__(self, files: list[str]) -> None:
        self.nodes: list[dict[str, int] | None] = [None, {}]
        for path in files:
            at = 1
            *folders, last = path.strip("/").split("/")
            for name in folders:
                at = self._add(at, name, {})
            self._add(at, last, None)

    def _add(self, folder: int, name: str, node: dict[str, int] | None) -> int:
        inside = self.nodes[folder]
        assert inside is not None
        if name not in inside:
            self.nodes.append(node)
            inside[name] = len(self.nodes) - 1
        return inside[name]

    def attributes(self, number: int) -> bytes:
        is_folder = self.nodes[number] is not None
        mode = stat.S_IFDIR | 0o755 if is_folder else stat.S_IFREG | 0o644
        size = 0 if is_folder else FILE_SIZE
        return ATTRIBUTES.pack(number, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def answer(self, operation: int, number: int, body: bytes) -> bytes | int | None:
        """Bytes to reply with, an errno, or None for silence."""
        if operation == INIT:
            return struct.pack("=IIIIHHIIHHII24x", 7, 31, 65536, 1, 12, 9, 65536, 1, 0, 0, 0, 0)
        if operation in (READ, FORGET, BATCH_FORGET, INTERRUPT):
            return None
        if operation == LOOKUP:
            child = (self.nodes[number] or {}).get(body.rstrip(b"\0").decode())
            if child is None:
                return errno.ENOENT
            return struct.pack("=QQQQII", child, 0, 60, 60, 0, 0) + self.attributes(child)
        if operation == GETATTR:
            return struct.pack("=QII", 60, 0, 0) + self.attributes(number)
        if operation in (OPEN, OPENDIR):
            return struct.pack("=QII", 0, 0, 0)
        if operation == READDIR:
            return self._listing(number, int.from_bytes(body[8:16], "little"))
        if operation in (RELEASE, RELEASEDIR, FLUSH):
            return b""
        return errno.ENOSYS

    def _listing(self, number: int, offset: int) -> bytes:
        rows = list((self.nodes[number] or {}).items())
        out = b""
        for at, (name, child) in enumerate(rows[offset:], start=offset + 1):
            kind = 4 if self.nodes[child] is not None else 8
            row = struct.pack("=QQII", child, at, len(name), kind) + name.encode()
            out += row + b"\0" * (-len(row) % 8)
        return out


def serve(mountpoint: str, files: list[str]) -> None:
    tree = Tree(files)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"seawall-test", mountpoint.encode(), b"fuse", 0, options):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), mountpoint)
    os.write(1, b"mounted\n")
    while True:
        try:
            request = os.read(device, 1 << 20)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR):
                continue
            return  # ENODEV: unmounted
        _, operation, unique, number, *_ = HEAD.unpack_from(request)
        answer = tree.answer(operation, number, request[HEAD.size :])
        if answer is None:
            continue
        code, body = (answer, b"") if isinstance(answer, int) else (0, answer)
        os.write(device, struct.pack("=IiQ", 16 + len(body), -code, unique) + body)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2:])
