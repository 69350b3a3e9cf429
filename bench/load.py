# SPDX-License-Identifier: Apache-2.0
"""Sends requests through bench_load as fast as the server answers, so that the client does not
dominate the measurement.
"""
import os
import subprocess


def post_all(path, requests, connections):
    """Sends POSTs of (target, body) over this many connections to a UNIX socket; returns the
    seconds it took. Exits at the first answer that is not a success.
    """
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
