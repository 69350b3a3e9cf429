# SPDX-License-Identifier: Apache-2.0
"""Requests as fast as a server takes them, by bench_load: the client must not be what is
measured."""
import os
import subprocess


def post_all(path, requests, connections):
    """POSTs of (target, body) over so many connections to a UNIX socket; seconds. Ends the program
    at the first answer that is no success."""
    texts = [
        b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
        % (target.encode(), len(body), body)
        for target, body in requests
    ]
    load = os.path.join(os.environ["BELAY_BUILD"], "bench", "bench_load")
    said = subprocess.run(
        [load, path, str(connections)],
        input=b"".join(b"%d\n%s" % (len(text), text) for text in texts),
        stdout=subprocess.PIPE,
    )
    if said.returncode != 0:
        raise SystemExit("bench: not all requests were answered")
    return float(said.stdout)
