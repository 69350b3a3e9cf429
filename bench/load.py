# SPDX-License-Identifier: Apache-2.0
"""Requests as fast as a server takes them. Raw sockets and prepared bytes: the client must not be what is measured."""
import contextlib
import socket
import threading
import time


def post_all(path, requests, connections):
    """POSTs of (target, body) over so many connections to a UNIX socket; seconds. Ends the program at the first answer that is no success."""
    texts = [b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
             % (target.encode(), len(body), body) for target, body in requests]
    failed = []

    def run(mine):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(60)
        s.connect(path)
        with contextlib.closing(s), s.makefile("rb") as f:
            for text in mine:
                s.sendall(text)
                status, length = f.readline(), 0
                while True:
                    line = f.readline().lower()
                    if line in (b"\r\n", b""):
                        break
                    if line.startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                said = f.read(length)
                if b" 20" not in status:
                    failed.append((status, said[:300]))
                    return

    clients = [threading.Thread(target=run, args=(texts[i::connections],)) for i in range(connections)]
    began = time.monotonic()
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    if failed:
        raise SystemExit("bench: %r" % (failed[0],))
    return time.monotonic() - began
