"""What holds memory of the network, or a dma-buf, in the VM: ``network_holders.py NAME``.

Prints what it holds and waits to be killed.
"""

import fcntl
import json
import os
import socket
import struct
import sys
import threading
import time

CREATE_DUMB = 0xC02064B2
HANDLE_TO_FD = 0xC00C642D
MIB = 1 << 20


def waiting() -> int:
    """Data that nobody reads: returns how much."""
    server = socket.create_server(("127.0.0.1", 0))
    held, sent = [server], 0
    while sent < 64 * MIB:
        one = socket.create_connection(server.getsockname())
        held += [one, server.accept()[0]]
        one.setblocking(False)
        try:
            while True:
                sent += one.send(bytes(65536))
        except BlockingIOError:
            pass
    globals()["held"] = held
    return sent


def flowing() -> int:
    """Data that is read as fast as it comes."""
    server = socket.create_server(("127.0.0.1", 0))
    one = socket.create_connection(server.getsockname())
    other = server.accept()[0]

    def read() -> None:
        while other.recv(1 << 20):
            pass

    def send() -> None:
        while True:
            one.sendall(bytes(1 << 20))

    for task in (read, send):
        threading.Thread(target=task, daemon=True).start()
    return 0


def dumb_buffer() -> int:
    """A dma-buf of a graphics driver without hardware (vgem)."""
    card = os.open("/dev/dri/card0", os.O_RDWR)
    made = bytearray(struct.pack("=IIIIIIQ", 2048, 4096, 32, 0, 0, 0, 0))
    fcntl.ioctl(card, CREATE_DUMB, made)
    *_, handle, _, size = struct.unpack("=IIIIIIQ", made)
    told = bytearray(struct.pack("=IIi", handle, os.O_RDWR | os.O_CLOEXEC, -1))
    fcntl.ioctl(card, HANDLE_TO_FD, told)
    fd = struct.unpack("=IIi", told)[2]
    globals()["fd"] = fd
    with open("/run/out/fdinfo", "w") as out, open(f"/proc/self/fdinfo/{fd}") as info:
        out.write(info.read())
    with open("/run/out/dmabuf.json", "w") as out:
        json.dump({"inode": os.fstat(fd).st_ino, "link": os.readlink(f"/proc/self/fd/{fd}")}, out)
    return int(size)


if __name__ == "__main__":
    sys.stdout.write(f"{globals()[sys.argv[1]]()}\n")
    sys.stdout.flush()
    time.sleep(300)
