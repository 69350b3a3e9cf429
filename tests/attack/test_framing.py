# SPDX-License-Identifier: Apache-2.0
"""Requests whose end a proxy and belayd could place differently: each must be refused, and the
connection closed, so that an attacker's bytes after it are never taken for a request. Over TLS and
the UNIX socket."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scheduler"))
from belayd import Belayd  # noqa: E402

POST = b"POST /api/v1/jobs/estimate HTTP/1.1\r\nHost: x\r\n"
SMUGGLED = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
HELLO = b"5\r\nhello\r\n0\r\n\r\n"

# Sent before the smuggled request.
HOSTILE = {
    "both framings": POST + b"Content-Length: 15\r\n" + CHUNKED + HELLO,
    "both, the other way round": POST + CHUNKED[:-2] + b"Content-Length: 15\r\n\r\n" + HELLO,
    "two lengths": POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "the same length twice": POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "a list of lengths": POST + b"Content-Length: 5, 5\r\n\r\nhello",
    "a sign": POST + b"Content-Length: +5\r\n\r\nhello",
    "a length with a blank": POST + b"Content-Length: 5 0\r\n\r\nhello",
    "a length of 2^64 + 5": POST + b"Content-Length: 18446744073709551621\r\n\r\nhello",
    "a blank before the colon": POST + b"Content-Length : 5\r\n\r\nhello",
    "a folded line": POST + b"X-A: b\r\n Content-Length: 5\r\n\r\n",
    "a folded coding": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + HELLO,
    "a lone CR": POST + b"X-A: b\rContent-Length: 5\r\n\r\n",
    "a lone LF": POST + b"X-A: b\nContent-Length: 5\r\n\r\nhello",
    "a NUL": POST + b"X-A: b\0c\r\nContent-Length: 5\r\n\r\nhello",
    "another coding": POST + b"Transfer-Encoding: xchunked\r\n\r\n" + HELLO,
    "two codings": POST + CHUNKED[:-2] + b"Transfer-Encoding: identity\r\n\r\n" + HELLO,
    "a list of codings": POST + b"Transfer-Encoding: identity, chunked\r\n\r\n" + HELLO,
    "a coding in HTTP/1.0": POST.replace(b"1.1", b"1.0")
    + b"Connection: keep-alive\r\n"
    + CHUNKED
    + HELLO,
    "a chunk of no hex digits": POST + CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n",
    "a negative chunk": POST + CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n",
    "a chunk of 2^64 + 5": POST + CHUNKED + b"10000000000000005\r\nhello\r\n0\r\n\r\n",
    "a chunk without its end": POST + CHUNKED + b"5\r\nhelloXX0\r\n\r\n",
    "a chunk line with LF": POST + CHUNKED + b"5\nhello\r\n0\r\n\r\n",
    "a request line for a trailer": POST + CHUNKED + b"0\r\nGET / HTTP/1.1\r\n\r\n",
    "a trailer without a colon": POST + CHUNKED + b"0\r\nContent-Length\r\n\r\n",
    "two hosts": POST + b"Host: y\r\nContent-Length: 5\r\n\r\nhello",
    "two tokens": POST + b"Authorization: a\r\nAuthorization: b\r\nContent-Length: 5\r\n\r\nhello",
}


class Framing(unittest.TestCase):
    def test_doubtful_ends_are_refused(self):
        with Belayd() as d:
            for tls in (True, False):
                good = d.raw(SMUGGLED, tls=tls)
                self.assertTrue(good.startswith(b"HTTP/1.1 200 "), good)
                for name, request in HOSTILE.items():
                    with self.subTest(name, tls=tls):
                        answer = d.raw(request + SMUGGLED, tls=tls)
                        self.assertEqual(answer.count(b"HTTP/1.1 "), 1, answer)
                        self.assertIn(answer[9:12], (b"400", b"501"), answer)
                        self.assertIn(b"\r\nConnection: close\r\n", answer)
                        self.assertIn(b"not valid HTTP/1.1", answer)
            self.assertGreaterEqual(d.metric("belay_http_malformed_total"), 2 * len(HOSTILE))


if __name__ == "__main__":
    unittest.main()
