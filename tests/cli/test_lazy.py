# SPDX-License-Identifier: Apache-2.0
"""belay starts without libcurl, libcrypto and SQLite, which take longer to load than a call to
belayd does, and loads them where it needs them."""

import contextlib
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import unittest

BELAY = sys.argv[1]


class Late(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="belay-test.")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("BELAY_")}
        self.env.update(
            BELAY_HOME=self.dir,
            BELAY_SOCKET=self.dir + "/none",
            LD_DEBUG="files",
            LD_DEBUG_OUTPUT=self.dir + "/loaded",
        )

    def belay(self, *words, **env):
        """Runs belay; also returns which of the three libraries it loaded."""
        done = subprocess.run(
            [BELAY, *(words or ("list",))],
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
        text = ""
        for name in os.listdir(self.dir):
            if name.startswith("loaded."):
                with open(os.path.join(self.dir, name), errors="replace") as f:
                    text += f.read()
                os.unlink(os.path.join(self.dir, name))
        self.assertIn("libc.so", text)
        return done, {
            name for name in ("libcurl", "libcrypto", "libsqlite3") if name + ".so" in text
        }

    def server(self):
        """A port without a listener."""
        for name in "token", "ca":
            with open(os.path.join(self.dir, name), "w") as f:
                f.write("text\n")
            os.chmod(os.path.join(self.dir, name), 0o600)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        return {
            "BELAY_SERVER": "https://127.0.0.1:%d" % port,
            "BELAY_TOKEN_FILE": self.dir + "/token",
            "BELAY_CA_FILE": self.dir + "/ca",
        }

    def test_nothing_of_it_is_linked(self):
        text = subprocess.run(
            ["readelf", "--dynamic", "--wide", BELAY], stdout=subprocess.PIPE, check=True, text=True
        ).stdout
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
        self.assertIn("libc.so.6", needed)
        for name in needed:
            self.assertFalse(
                name.startswith(("libcurl", "libcrypto", "libssl", "libgnutls", "libsqlite3")),
                "belay is linked with %s: does cli/*_lazy.c lack a function?" % name,
            )

    def test_a_socket_needs_none(self):
        done, loaded = self.belay()
        self.assertIn("no belayd answers at %s/none" % self.dir, done.stderr)
        self.assertEqual(loaded, set())

    def test_a_server_does(self):
        done, loaded = self.belay(**self.server())
        self.assertIn("no belayd answers at https://127.0.0.1", done.stderr)
        self.assertIn("libcurl", loaded)

    def test_a_database_does(self):
        with contextlib.closing(sqlite3.connect(self.dir + "/belay.db")) as db:
            db.execute("CREATE TABLE t (i INTEGER)")
        example = os.path.join(
            os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "simulate"
        )
        done, loaded = self.belay(
            "simulate", "--pools", example + "/pools.yaml", "--jobs", self.dir + "/belay.db"
        )
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("belay.db", done.stderr)
        self.assertIn("libsqlite3", loaded)

    def test_a_library_that_cannot_be_loaded_is_reported(self):
        os.mkdir(self.dir + "/lib")
        with open(self.dir + "/lib/libcurl.so.4", "w") as f:
            f.write("none\n")
        done, _ = self.belay(LD_LIBRARY_PATH=self.dir + "/lib", **self.server())
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("cannot load a library (%s/lib/libcurl.so.4: " % self.dir, done.stderr)
        self.assertIn("install the package that has libcurl.so.4", done.stderr)


unittest.main(argv=sys.argv[:1], verbosity=2)
