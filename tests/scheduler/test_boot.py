# SPDX-License-Identifier: Apache-2.0
"""The first boot of a machine without belay: its user data, run against a real belayd.

The machine is a directory with the programs of a small image, and one that can download.
"""

import contextlib
import hashlib
import http.server
import os
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

from belayd import BUILD, WAIT_S, Belayd

ARCH = os.uname().machine
BUNDLE = os.path.join(BUILD, "bundle", "agent-%s.tar.gz" % ARCH)
TOOLS = (
    "sh mkdir rm cat sed od tr gzip tar mv sleep sha256sum cut uname head dd wc printf grep setsid"
).split()
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
VERSION = subprocess.run(
    [BUILD + "/agent/belay-agent", "--version"],
    stdout=subprocess.PIPE,
    check=True,
    universal_newlines=True,
).stdout.split()[1]


class Machine:
    """Its directory, PATH and processes."""

    def __init__(self, *tools):
        self.dir = tempfile.mkdtemp(prefix="belay-boot.")
        os.chmod(self.dir, 0o755)  # other users run jobs below it
        self.node = self.path("node")
        self.bin = self.path("bin")
        os.mkdir(self.bin)
        for name in (*TOOLS, *tools):
            os.symlink(shutil.which(name, path=PATH), os.path.join(self.bin, name))
        self.shell = "/bin/sh"
        self.process = None

    def path(self, name):
        return os.path.join(self.dir, name)

    def stub(self, name, text):
        path = os.path.join(self.bin, name)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        with open(path, "w") as f:
            f.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)

    def take_from(self, busybox):
        """Makes its shell and tools, including wget, those of busybox."""
        for name in (*TOOLS, "wget"):
            path = os.path.join(self.bin, name)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            os.symlink(busybox, path)
        self.shell = os.path.join(self.bin, "sh")

    def boot(self, script, emulated=True, inside=()):
        path = self.path("user-data")
        with open(path, "w") as f:
            f.write(script)
        sanitizer = "log_path=%s/sanitizer" % self.dir
        env = {
            "PATH": self.bin,
            "ASAN_OPTIONS": "malloc_context_size=6:" + sanitizer,
            "UBSAN_OPTIONS": sanitizer,
            "HOME": self.dir,
        }
        if emulated:
            env["BELAY_NODE_DIR"] = self.node
        self.console = open(self.path("console"), "w")
        self.process = subprocess.Popen(
            [*inside, self.shell, path],
            cwd=self.dir,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=self.console,
            stderr=self.console,
            start_new_session=True,
        )

    def wait(self):
        return self.process.wait(WAIT_S)

    def said(self):
        return self.read("console")

    def read(self, name):
        with open(self.path(name), errors="replace") as f:
            return f.read()

    def end(self):
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(WAIT_S)
            self.console.close()
        shutil.rmtree(self.dir)


class Liar(http.server.BaseHTTPRequestHandler):
    """Announces the bundle's hash, and sends half of the bundle."""

    def do_GET(self):
        self.server.asked += 1
        if "sha256" in self.path:
            body = hashlib.sha256(self.server.content).hexdigest().encode() + b"\n"
        else:
            body = self.server.content[: len(self.server.content) // 2]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Cloud(http.server.BaseHTTPRequestHandler):
    """A provider's API and its metadata service. The first deletion is answered with 503, the next
    with 200.
    """

    TOKEN = "ya29.a0AfB_by-secret"
    NODE = (
        "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/belay-lab-17"
    )
    METADATA = {
        "/computeMetadata/v1/project/project-id": "my-project",
        "/computeMetadata/v1/instance/zone": "projects/4711/zones/us-central1-a",
        "/computeMetadata/v1/instance/name": "belay-lab-17",
        "/computeMetadata/v1/instance/service-accounts/default/token": "TOKEN",
        "/metadata/instance/compute/resourceId?api-version=2021-02-01&format=text": NODE,
        "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https://management.azure.com/": "TOKEN",
    }

    def answer(self, status, text=""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        text = self.METADATA.get(self.path)
        flavor = (self.headers.get("Metadata-Flavor"), self.headers.get("Metadata"))
        if not text or flavor != (
            ("Google", None) if self.path.startswith("/computeM") else (None, "true")
        ):
            self.answer(404)
        elif text != "TOKEN":
            self.answer(200, text)
        elif not self.server.gives_tokens:
            self.answer(404)
        else:
            self.answer(
                200, '{"access_token":"%s","expires_in":3599,"token_type":"Bearer"}' % self.TOKEN
            )

    def do_DELETE(self):
        self.server.deleted.append(self.path)
        if self.headers.get("Authorization") != "Bearer " + self.TOKEN or is_seen(self.TOKEN):
            self.server.deleted.append("with a token that is wrong, or that others see")
        self.answer(503 if len(self.server.deleted) == 1 else 200)

    def log_message(self, *args):
        pass


def is_seen(secret):
    """Whether others can see it in the arguments or environment of a process."""
    for pid in os.listdir("/proc"):
        for name in "cmdline", "environ":
            with contextlib.suppress(OSError):
                with open("/proc/%s/%s" % (pid, name), "rb") as f:
                    if secret.encode() in f.read():
                        return True
    return False


class Boot(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.d = Belayd()
        cls.d.start()
        cls.ca = os.path.join(cls.d.state, "ca.pem")

    @classmethod
    def tearDownClass(cls):
        cls.d.__exit__(None, None, None)

    def machine(self, *tools):
        m = Machine(*tools)
        self.addCleanup(m.end)
        return m

    def script(self, token, server=None, ca=None, boot_s=60, cloud=()):
        return subprocess.run(
            [
                BUILD + "/tests/scheduler/print_userdata",
                server or self.d.url,
                ca or self.ca,
                token,
                str(boot_s),
                *cloud,
            ],
            stdout=subprocess.PIPE,
            check=True,
            universal_newlines=True,
        ).stdout

    def token(self):
        return self.d.token(kind="join", pool="base")

    def nodes(self):
        return self.d.call("GET", "/api/v1/nodes")[1]["nodes"]

    def wait_joined(self, m, before):
        end = time.monotonic() + WAIT_S
        while len(self.nodes()) == before:
            if m.process.poll() is not None or time.monotonic() > end:
                self.fail("the machine does not join:\n" + m.said())
            self.d.call(
                "GET",
                "/api/v1/events?after=%d&wait_ms=1000"
                % self.d.call("GET", "/api/v1/events")[1]["last"],
            )

    def check_secret(self, m, token):
        """The token is in nothing that other users can see."""
        self.assertNotIn(token, m.said())
        self.assertFalse(is_seen(token))

    def check_joins(self, m, token):
        before = len(self.nodes())
        m.boot(self.script(token))
        self.wait_joined(m, before)
        self.check_secret(m, token)
        home = m.path("node.opt/" + VERSION)
        self.assertTrue(os.access(home + "/bin/belay", os.X_OK))
        self.assertEqual(os.stat(home).st_mode & 0o777, 0o755)
        self.assertEqual(os.stat(m.path("node/agent.yaml")).st_mode & 0o777, 0o600)
        self.assertEqual(
            sorted(n for n in os.listdir(m.dir) if n.startswith("node")), ["node", "node.opt"]
        )
        return home

    def test_with_curl(self):
        m, token = self.machine("curl"), self.token()
        home = self.check_joins(m, token)
        # The agent's end by a signal of its own is the machine's; a token that was used is no more
        # use to another.
        agents = [
            p for p in os.listdir("/proc") if p.isdigit() and exe(p) == home + "/bin/belay-agent"
        ]
        self.assertEqual(len(agents), 1)
        os.kill(int(agents[0]), signal.SIGTERM)
        self.assertEqual(m.wait(), 0)
        other = self.machine("curl")
        other.boot(self.script(token))
        self.assertEqual(other.wait(), 1)
        self.assertIn("used already", other.said())
        self.assertEqual(os.listdir(other.dir).count("node"), 0)
        # After a reboot the machine no longer needs the token.
        m.console.close()
        m.boot(self.script(token))
        end = time.monotonic() + WAIT_S
        while not [
            p for p in os.listdir("/proc") if p.isdigit() and exe(p) == home + "/bin/belay-agent"
        ]:
            self.assertIsNone(m.process.poll(), m.said())
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)  # there is no event to wait for
        self.assertNotIn("trying again", m.said())

    def test_with_wget(self):
        self.check_joins(self.machine("wget"), self.token())
        other = self.machine("wget")
        other.boot(self.script("i1." + 64 * "0"))
        self.assertEqual(other.wait(), 1)
        self.assertIn("used already", other.said())

    def test_with_python(self):
        self.check_joins(self.machine("python3"), self.token())
        other = self.machine("python3")
        other.boot(self.script("i1." + 64 * "0"))
        self.assertEqual(other.wait(), 1)
        self.assertIn("used already", other.said())

    def test_with_the_tools_of_busybox(self):
        """With curl installed as well: busybox's wget verifies nothing."""
        busybox = shutil.which("busybox", path=PATH)
        if not busybox:
            self.skipTest("there is no busybox (Debian: busybox-static)")
        m, other = self.machine("curl"), self.machine()
        m.take_from(busybox)
        other.take_from(busybox)
        self.check_joins(m, self.token())
        other.boot(self.script(self.token()))
        self.assertEqual(other.wait(), 1)
        self.assertIn("neither curl nor GNU wget nor python3", other.said())

    def test_with_bash(self):
        m = self.machine("curl")
        m.shell = shutil.which("bash", path=PATH)
        self.check_joins(m, self.token())

    def test_with_nothing_to_fetch_with(self):
        m = self.machine()
        m.stub("wget", "echo 'wget: unrecognized option'; exit 1\n")  # busybox's
        m.boot(self.script(self.token()))
        self.assertEqual(m.wait(), 1)
        self.assertIn("neither curl nor GNU wget nor python3", m.said())

    def test_another_authority_is_not_trusted(self):
        with Belayd() as other:
            wrong = os.path.join(other.state, "ca.pem")
            for tool in "curl", "wget", "python3":
                with self.subTest(tool):
                    m, token = self.machine(tool), self.token()
                    m.boot(self.script(token, ca=wrong, boot_s=5))
                    self.assertEqual(m.wait(), 1, m.said())
                    self.assertIn("trying again", m.said())
                    self.assertIn("within 5 s", m.said())
                    self.assertEqual([n for n in os.listdir(m.dir) if n.startswith("node")], [])
                    self.assertEqual(
                        self.d.call("GET", "/agent/v1/bundle/sha256?arch=" + ARCH, token=token)[0],
                        200,
                    )

    def test_the_systems_authorities_are_not_trusted_either(self):
        """On a machine whose own store trusts an authority that signs for belayd's name."""
        if (
            os.geteuid() != 0
            or subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode
        ):
            self.skipTest("a store of its own needs root and a mount namespace")
        store = tempfile.mkdtemp(prefix="belay-store.")
        self.addCleanup(shutil.rmtree, store)
        name = self.d.keys.run("x509", "-in", self.ca, "-noout", "-hash").strip() + ".0"
        for name in "ca-certificates.crt", name:
            shutil.copy(self.ca, os.path.join(store, name))
        unshare, mount = (shutil.which(name, path=PATH) for name in ("unshare", "mount"))
        inside = [
            unshare,
            "--mount",
            "/bin/sh",
            "-c",
            '%s --bind %s /etc/ssl/certs && exec "$@"' % (mount, store),
            "sh",
        ]
        subprocess.run(
            [*inside, "curl", "-sSf", self.d.url + "/healthz"],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        subprocess.run(
            [*inside, "wget", "-q", "-O", "/dev/null", self.d.url + "/healthz"], check=True
        )
        with Belayd() as other:
            wrong = os.path.join(other.state, "ca.pem")
            for tool in "curl", "wget", "python3":
                with self.subTest(tool):
                    m = self.machine(tool)
                    m.boot(self.script(self.token(), ca=wrong, boot_s=1), inside=inside)
                    self.assertEqual(m.wait(), 1, m.said())
                    self.assertIn("within 1 s", m.said())

    def test_half_a_bundle_is_refused(self):
        keys = self.d.keys
        key, cert = keys.path("liar.key"), keys.path("liar.pem")
        keys.run(
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-keyout",
            key,
            "-out",
            cert,
            "-subj",
            "/CN=liar",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-days",
            "2",
        )
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.asked = 0
        with open(BUNDLE, "rb") as f:
            server.content = f.read()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            m = self.machine("curl")
            m.boot(
                self.script(
                    "i1.00", server="https://127.0.0.1:%d" % server.server_port, ca=cert, boot_s=3
                )
            )
            self.assertEqual(m.wait(), 1)
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
        self.assertIn("is not belayd's bundle", m.said())
        self.assertGreaterEqual(server.asked, 4)  # the agent tried again
        self.assertEqual([n for n in os.listdir(m.dir) if n.startswith("node")], [])

    def real(self, m, script):
        """The script for a real machine, in a directory."""
        for path in (
            "/var/lib/belay-agent",
            "/opt/belay",
            "/run/systemd/system",
            "/etc/systemd/system",
            "/var/log",
        ):
            self.assertIn(path, script)
            script = script.replace(path, m.dir + path)
            os.makedirs(os.path.dirname(m.dir + path), exist_ok=True)
        os.mkdir(m.dir + "/var/log")
        return script

    def test_a_real_machine_powers_off_when_it_cannot_become_a_node(self):
        m = self.machine("curl")
        m.stub("shutdown", 'echo "$@" >%s/off\n' % m.dir)
        m.boot(self.real(m, self.script("i1." + 64 * "0")), emulated=False)
        self.assertEqual(m.wait(), 1)
        self.assertEqual(m.read("off"), "-h now\n")
        self.assertEqual(os.listdir(m.path("var/lib")), [])

    def boot_with_account(self, has):
        """Boots an image whose account ann has this number; "" if it has none."""
        m = self.machine("curl")
        for name, text in (
            ("id", 'echo "$@" >>%s/asked; [ -z "%s" ] || echo %s' % (m.dir, has, has)),
            ("groupadd", 'echo "$@" >>%s/added' % m.dir),
            ("useradd", 'echo "$@" >>%s/added' % m.dir),
            ("shutdown", 'echo "$@" >%s/off' % m.dir),
            ("setsid", ":"),
        ):
            m.stub(name, text + "\n")
        account = ("none", "http://127.0.0.1:9", "ann", "2001")
        m.boot(self.real(m, self.script(self.token(), cloud=account)), emulated=False)
        return m, m.wait()

    def test_accounts_that_the_image_lacks_are_created(self):
        m, code = self.boot_with_account("")
        self.assertEqual(code, 0, m.said())
        self.assertEqual(m.read("asked"), "-u ann\n")
        self.assertEqual(m.read("added"), "-g 2001 ann\n-m -g 2001 -u 2001 -s /bin/sh ann\n")
        m, code = self.boot_with_account("2001")
        self.assertEqual(code, 0, m.said())
        self.assertFalse(os.path.exists(m.path("added")))

    def test_an_account_of_the_image_with_another_number_is_not_taken(self):
        m, code = self.boot_with_account("1000")
        self.assertEqual(code, 1)
        self.assertIn("the account ann has the number 1000 in the image", m.said())
        self.assertEqual(m.read("off"), "-h now\n")
        self.assertFalse(os.path.exists(m.path("added")))

    @unittest.skipIf(os.geteuid() != 0, "only root can mount")
    def test_a_real_useradd_creates_them(self):
        m = self.machine("curl", "id", "groupadd", "useradd")
        m.stub("setsid", ":\n")
        shutil.copytree("/etc", m.path("etc"), symlinks=True)
        os.mkdir(m.path("home"))
        mount = shutil.which("mount", path=PATH)
        mounts = " && ".join("%s --bind %s/%s /%s" % (mount, m.dir, n, n) for n in ("etc", "home"))
        unshare = shutil.which("unshare", path=PATH)
        inside = [unshare, "--mount", "/bin/sh", "-ec", mounts + ' && exec "$@"', "sh"]
        account = ("none", "http://127.0.0.1:9", "belay-test-ann", "54321")
        script = self.script(self.token(), cloud=account)
        m.boot(self.real(m, script), emulated=False, inside=inside)
        self.assertEqual(m.wait(), 0, m.said())
        passwd = m.read("etc/passwd")
        self.assertRegex(passwd, r"(?m)^belay-test-ann:x:54321:54321::/home/", m.said())
        self.assertRegex(m.read("etc/shadow"), r"(?m)^belay-test-ann:!")  # nobody can log in
        self.assertEqual(os.stat(m.path("home/belay-test-ann")).st_uid, 54321)

    def test_the_emulator_creates_none_on_its_owners_machine(self):
        m = self.machine("curl")
        for name in "id", "useradd", "adduser":
            m.stub(name, "echo %s >>%s/called\n" % (name, m.dir))
        before = len(self.nodes())
        account = ("none", "http://127.0.0.1:9", "ann", "2001")
        m.boot(self.script(self.token(), cloud=account))
        self.wait_joined(m, before)
        self.assertFalse(os.path.exists(m.path("called")))

    def cloud(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cloud)
        server.deleted, server.gives_tokens = [], True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        return server

    def test_where_off_is_not_the_end_it_deletes_itself_and_tries_again(self):
        gcp, azure = (
            "/compute/v1/projects/my-project/zones/us-central1-a/instances/belay-lab-17",
            Cloud.NODE,
        )
        for provider, tool, path in (
            ("gcp", "curl", gcp),
            ("gcp", "wget", gcp),
            ("gcp", "python3", gcp),
            ("azure", "curl", azure + "?api-version=2022-08-01"),
            ("azure", "python3", azure + "?api-version=2022-08-01"),
        ):
            for gives_tokens in True, False:
                with self.subTest(provider + " " + tool, gives_tokens=gives_tokens):
                    m, server = self.machine(tool, "mktemp"), self.cloud()
                    server.gives_tokens = gives_tokens
                    m.stub("shutdown", 'echo "$@" >%s/off\n' % m.dir)
                    m.boot(
                        self.real(
                            m,
                            self.script(
                                "i1." + 64 * "0",
                                cloud=(provider, "http://127.0.0.1:%d" % server.server_port),
                            ),
                        ),
                        emulated=False,
                    )
                    self.assertEqual(m.wait(), 1)
                    self.assertEqual(server.deleted, [path, path] if gives_tokens else [])
                    self.assertEqual(m.read("off"), "-h now\n")
                    self.assertNotIn(Cloud.TOKEN, m.said())
                    self.assertIn(
                        "is being deleted" if gives_tokens else "cannot delete itself", m.said()
                    )
                    self.assertEqual("trying again in" in m.said(), gives_tokens)

    def test_a_script_that_breaks_down_powers_off_too(self):
        m = self.machine("curl")
        m.stub("shutdown", 'echo "$@" >%s/off\n' % m.dir)
        m.stub("sed", "exit 1\n")
        m.boot(self.real(m, self.script(self.token())), emulated=False)
        self.assertNotEqual(m.wait(), 0)
        self.assertEqual(m.read("off"), "-h now\n")
        self.assertIn("ended early", m.said())

    def test_systemd_keeps_the_agent_running(self):
        m = self.machine("curl")
        os.makedirs(m.path("run/systemd/system"))
        os.makedirs(m.path("etc/systemd/system"))
        m.stub("systemctl", 'echo "$@" >>%s/systemctl.log\n' % m.dir)
        m.boot(self.real(m, self.script(self.token())), emulated=False)
        self.assertEqual(m.wait(), 0, m.said())
        self.assertEqual(
            m.read("systemctl.log"),
            "daemon-reload\nenable belay-agent\nstart --no-block belay-agent\n",
        )
        unit = m.read("etc/systemd/system/belay-agent.service")
        self.assertIn(
            "\nExecStart=%s/opt/belay/%s/bin/belay-agent --config %s/var/lib/belay-agent/agent.yaml\n"
            % (m.dir, VERSION, m.dir),
            unit,
        )
        self.assertIn("\nKillMode=process\n", unit)
        # A shutdown: stopped before the network and shared file systems go, with time for saves.
        self.assertRegex(unit, r"\nAfter=network\.target network-online\.target remote-fs\.target ")
        self.assertIn("\nTimeoutStopSec=150\n", unit)
        self.assertNotIn("@", unit.split("[Unit]")[1])
        analyze = shutil.which("systemd-analyze", path=PATH)
        if analyze:  # its exit status is 0 whatever it finds
            done = subprocess.run(
                [analyze, "verify", "--man=no", m.path("etc/systemd/system/belay-agent.service")],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                universal_newlines=True,
            )
            self.assertNotIn("belay-agent.service", done.stdout)
        self.assertIn(
            "\npower_off: \"sh '%s/var/lib/belay-agent/power-off'\"\n" % m.dir,
            m.read("var/lib/belay-agent/agent.yaml"),
        )
        m.stub("shutdown", 'echo "$@" >%s/off\n' % m.dir)
        subprocess.run(
            [m.shell, m.path("var/lib/belay-agent/power-off")], env={"PATH": m.bin}, check=True
        )
        self.assertEqual(m.read("off"), "-h now\n")

    def test_without_systemd_it_runs_in_a_session_of_its_own(self):
        m = self.machine("curl")
        m.stub("setsid", 'echo "$4" "$5" >%s/kept\n' % m.dir)
        m.boot(self.real(m, self.script(self.token())), emulated=False)
        self.assertEqual(m.wait(), 0, m.said())
        end = time.monotonic() + WAIT_S
        while not os.path.exists(m.path("kept")) or not m.read("kept"):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)  # no event: the script has ended
        self.assertEqual(
            m.read("kept"),
            "%s/opt/belay/%s/bin/belay-agent %s/var/lib/belay-agent/agent.yaml\n"
            % (m.dir, VERSION, m.dir),
        )

    def test_what_a_former_node_has_left_in_the_image_goes(self):
        m = self.machine("curl")
        os.mkdir(m.node)
        for name in "agent.yaml", "node.json":
            with open(os.path.join(m.node, name), "w") as f:
                f.write("old\n")
        self.check_joins(m, self.token())
        self.assertNotEqual(m.read("node/agent.yaml"), "old\n")
        with contextlib.suppress(FileNotFoundError):  # the file may not exist yet
            self.assertNotEqual(m.read("node/node.json"), "old\n")

    def test_an_agent_of_the_image_is_used_if_it_is_of_the_same_version(self):
        for version, fetched in (VERSION, False), ("0.0.1", True):
            with self.subTest(version):
                m = self.machine("curl")
                m.stub(
                    "belay-agent",
                    '[ $1 = --version ] && echo belay-agent %s && exit\necho "$@" >%s/started\n'
                    % (version, m.dir),
                )
                before = len(self.nodes())
                m.boot(self.script(self.token()))
                if fetched:
                    self.wait_joined(m, before)
                else:
                    self.assertEqual(m.wait(), 0, m.said())
                self.assertEqual(os.path.exists(m.path("started")), not fetched)
                self.assertEqual(os.path.exists(m.path("node.opt")), fetched)


def exe(pid):
    with contextlib.suppress(OSError):
        return os.readlink("/proc/%s/exe" % pid)
    return None


if __name__ == "__main__":
    unittest.main(verbosity=2)
