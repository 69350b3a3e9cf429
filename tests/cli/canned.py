# SPDX-License-Identifier: Apache-2.0
"""A belayd for tests of what the command line makes of an answer."""

import http.server
import json
import socketserver
import threading


class Canned(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """A belayd that answers each path, with or without its query, with what `replies` has."""

    daemon_threads = True
    replies = {}

    class Answer(http.server.BaseHTTPRequestHandler):
        def address_string(self):
            return "belay"

        def log_message(self, *_):
            pass

        def do_GET(self):
            replies = self.server.replies
            path = self.path if self.path in replies else self.path.partition("?")[0]
            data = json.dumps(replies[path]).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.05,)).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
