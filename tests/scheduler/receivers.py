# SPDX-License-Identifier: Apache-2.0
"""Receivers of notifications: a web server and an SMTP server."""

import http.server
import queue
import socketserver
import threading


class Receivers:
    """A scripted web server and an SMTP server; both record what they receive."""

    def __init__(self):
        self.posts, self.mails, self.answers = queue.Queue(), queue.Queue(), {}
        receivers = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = receivers.answers.get(self.path, [200])
                self.send_response(status.pop(0) if len(status) > 1 else status[0])
                self.send_header("Content-Length", "0")
                self.end_headers()
                receivers.posts.put((self.path, self.headers, body))

            def log_message(self, *args):
                pass

        class Mail(socketserver.StreamRequestHandler):
            def handle(self):
                said, text = [], b""
                self.wfile.write(b"220 here\r\n")
                while line := self.rfile.readline():
                    said.append(line.strip().decode())
                    if line.upper().startswith(b"DATA"):
                        self.wfile.write(b"354 go on\r\n")
                        while (line := self.rfile.readline()) != b".\r\n":
                            text += line
                        receivers.mails.put((said, text))
                    self.wfile.write(
                        b"221 bye\r\n" if line.upper().startswith(b"QUIT") else b"250 ok\r\n"
                    )

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.smtp = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mail)
        for server in (self.http, self.smtp):
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d" % self.http.server_port

    def close(self):
        for server in (self.http, self.smtp):
            server.shutdown()
            server.server_close()
