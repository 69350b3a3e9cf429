# SPDX-License-Identifier: Apache-2.0
"""belayd --check reports every error that a start would report, and those that would appear only
later; it changes nothing.
"""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import unittest

from bare import BARE, CLEAN, bare
from belayd import BUILD, CONFIG, WAIT_S, Belayd

AWS = """\
listen: 0.0.0.0:0
server: https://%(server)s:7443
pools:
  burst:
    provider: aws
    region: us-east-1
    zones: [%(zones)s]
    types: [%(types)s]
    image: ami-1
    credentials: %(keys)s
    max_nodes: 4
"""
USUAL = {"server": "192.0.2.1", "zones": "us-east-1a", "types": "m6i.xlarge"}


class Check(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="belay-test.")
        self.addCleanup(shutil.rmtree, self.dir)
        self.keys = self.file(
            "credentials", "[default]\naws_access_key_id = A\naws_secret_access_key = B\n"
        )

    def file(self, name, text, mode=0o600):
        path = os.path.join(self.dir, name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    def check(self, text, state=None, prefix=(), check=("--check",), env=None):
        """Returns the exit code and the output."""
        config = self.file("belayd.yaml", text)
        done = subprocess.run(
            [
                *prefix,
                BUILD + "/scheduler/belayd",
                *check,
                "--config",
                config,
                "--state",
                state or os.path.join(self.dir, "state"),
            ],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            stdin=subprocess.DEVNULL,
            env=env,
        )
        return done.returncode, done.stdout + done.stderr

    def host(self, hosts):
        """A prefix that runs a program on a host named lab-host, with this /etc/hosts and without a
        network.
        """
        if (
            os.geteuid() != 0
            or subprocess.run(
                ["unshare", "--uts", "--mount", "--net", "true"], capture_output=True
            ).returncode
            != 0
        ):
            self.skipTest("only root, with namespaces, can be another host")
        script = (
            'mount --bind %s /etc/hosts; mount --bind %s /etc/nsswitch.conf; echo lab-host >/proc/sys/kernel/hostname; exec "$@"'
            % (
                self.file("hosts", "127.0.0.1 localhost\n" + hosts, 0o644),
                self.file("nsswitch", "hosts: files\n", 0o644),
            )
        )
        return ["unshare", "--uts", "--mount", "--net", "sh", "-ec", script, "sh"]

    def aws(self, **more):
        return AWS % {**USUAL, "keys": self.keys, **more}

    def test_what_is_fine_is_fine_and_nothing_is_made(self):
        before = set(os.listdir("/tmp"))
        self.assertEqual(self.check(self.aws()), (0, "the configuration is fine: 1 pool\n"))
        self.assertFalse(os.path.exists(os.path.join(self.dir, "state")))
        self.assertFalse(
            [name for name in set(os.listdir("/tmp")) - before if name.startswith("belayd-check.")]
        )

    def test_what_a_start_would_refuse_or_never_carry_out(self):
        secret = self.file("secret", "x", 0o644)
        for text, *words in (
            (
                'windows:\n  night: {tz: Mars/Phobos, from: "22:00", to: "06:00"}\n' + CONFIG,
                "Mars/Phobos",
            ),
            ("budgets:\n  all: {usd_per_month: 5, tz: Mars/Phobos}\n" + CONFIG, "Mars/Phobos"),
            (
                self.aws(zones="us-west-2a"),
                "pool burst",
                "us-west-2a is not a zone of region us-east-1",
            ),
            (
                self.aws(types="m6i.xlarge, c7g.4xlarge"),
                "c7g.4xlarge is aarch64",
                "make a pool for each",
            ),
            (self.aws(server="localhost"), "pool burst", "server"),
            (self.aws(server="no-such-host.invalid"), "no-such-host.invalid", "not known here"),
            (self.aws().replace("0.0.0.0:0", "127.0.0.1:7443"), "listens at 127.0.0.1"),
            (self.aws(keys=os.path.join(self.dir, "none")), "pool burst", "none"),
            (
                CONFIG
                + "mail: {smtp: 'smtps://mail.example', user: a, password_file: %s/none}\n"
                % self.dir,
                "password_file",
            ),
            (
                CONFIG + "mail: {smtp: 'smtps://mail.example', user: a}\n",
                "belayd.yaml:6: mail: user and password_file belong together",
                "add password_file",
            ),
            (
                CONFIG + "mail: {smtp: 'smtps://mail.example', password_file: %s}\n" % self.keys,
                "belayd.yaml:6: mail: user and password_file belong together",
                "add user",
            ),
            (
                CONFIG + "mail: {sendmail: /nonexist/sendmail}\n",
                "mail: sendmail: /nonexist/sendmail cannot be run: No such file",
            ),
            (
                CONFIG + "mail: {smtp: 'smtps://nosuch.host.invalid:465'}\n",
                "mail: smtp: nosuch.host.invalid is not known here",
            ),
            (
                CONFIG + "webhooks:\n  a: {url: 'https://nosuch.host.invalid/x'}\n",
                "webhooks: a: url: nosuch.host.invalid is not known here",
            ),
            (CONFIG + "lease: 0.2s\n", "lease: expected a duration in whole numbers", "0.2s"),
            (CONFIG + "orphan_timeout: 1.5h\n", "in whole numbers, as 90m for 1.5h"),
            (
                CONFIG + "server: https://nosuch.host.invalid:17443\n",
                "server: agents and users dial nosuch.host.invalid, which is not known here",
            ),
            (
                CONFIG + "webhooks:\n  a: {url: 'https://h.example/', secret_file: %s}\n" % secret,
                "secret_file",
                "secret",
            ),
            (CONFIG + "encryption: client\nkey_file: %s\n" % secret, "key_file"),
            (self.aws().replace("region: us-east-1", "foo: 1"), 'belayd.yaml:6: unknown key "foo"'),
            (self.aws().replace("image:", "imge:"), 'unknown key "imge"; did you mean "image"?'),
        ):
            code, said = self.check(text)
            self.assertEqual(code, 2, (text, said))
            for word in words:
                self.assertIn(word, said)

    def test_a_host_name_that_is_loopback_is_refused_at_the_check_at_the_start_and_as_pools_are_applied(
        self,
    ):
        """As Debian's installer has it in /etc/hosts: machines of a cloud would dial themselves."""
        host = self.host("127.0.1.1 lab-host\n")
        text = self.aws().replace("server: https://192.0.2.1:7443\n", "")
        said = "pool burst: its machines would dial lab-host, which resolves to loopback here"
        for how, code in ((("--check",), 2), ((), 1)):
            found, words = self.check(text, None, host, how)
            self.assertEqual(found, code, words)
            self.assertEqual(words.count(said), 1, words)
            self.assertIn("set server:", words)
        with Belayd(
            "listen: 0.0.0.0:0\n" + CONFIG.replace("listen: 127.0.0.1:0\n", ""), prefix=host
        ) as d:
            status, body, _ = d.call(
                "POST", "/api/v1/pools", {"file": "p", "text": text[text.index("pools:") :]}
            )
            self.assertEqual((status, said in body["error"]["text"]), (400, True), body)

    def test_a_host_name_that_is_not_known_here_is_warned_of(self):
        """Machines may know the name, so a start warns. --check, after which nothing runs, refuses
        it.
        """
        host = self.host("")
        text = self.aws().replace("server: https://192.0.2.1:7443\n", "")
        said = "pool burst: its machines would dial lab-host, which is not known here"
        code, words = self.check(text, None, host)
        self.assertEqual((code, words.count(said)), (2, 1), words)
        with Belayd(text, prefix=host) as d:
            self.assertEqual(d.log().count(said), 1)
        with Belayd(
            "listen: 0.0.0.0:0\n" + CONFIG.replace("listen: 127.0.0.1:0\n", ""), prefix=host
        ) as d:
            applied = text[text.index("pools:") :] + "  base: {}\n  spare: {}\n"
            status, body, _ = d.call("POST", "/api/v1/pools", {"file": "p", "text": applied})
            self.assertEqual(status, 200, body)
            self.assertEqual(d.log().count(said), 1)

    def test_it_is_done_beside_a_belayd_that_runs(self):
        with Belayd(CONFIG) as d:
            self.assertEqual(self.check(CONFIG, d.state)[0], 0)
            applied = "pools:\n  base: {}\n  spare: {}\n"
            self.assertEqual(
                d.call("POST", "/api/v1/pools", {"file": "p", "text": applied})[0], 200
            )
            code, said = self.check(CONFIG, d.state)
            self.assertEqual(code, 0, said)
            status, body, _ = d.call(
                "POST",
                "/api/v1/pools",
                {
                    "file": "p",
                    "text": applied + "  b: {provider: aws, region: us-east-1, "
                    "zones: [eu-west-1a], types: [m6i.xlarge], image: i, max_nodes: 0, credentials: %s}\n"
                    % self.keys,
                },
            )
            self.assertEqual((status, "eu-west-1a" in body["error"]["text"]), (400, True), body)

    def tree(self):
        return sorted((d, tuple(sorted(names + files))) for d, names, files in os.walk(self.dir))

    def test_what_a_start_could_not_make_or_write_is_named_and_nothing_is_made(self):
        plain, none = self.file("plain", ""), os.path.join(self.dir, "none")
        half = os.path.join(self.dir, "half")
        os.makedirs(os.path.join(half, "belay.db"))
        lone = os.path.join(self.dir, "lone")
        os.mkdir(lone)
        self.file("lone/ca.pem", "")
        self.file("belayd.yaml", "")
        before = self.tree()
        for text, state, *words in (
            (CONFIG, plain + "/state", "state: ", plain, "Not a directory"),
            (CONFIG, plain, "state: ", plain, "Not a directory"),
            (CONFIG, "/proc/x/y", "state: /proc/x/y cannot be made", "/proc"),
            (CONFIG, "/proc/self", "state: /proc/self cannot be written"),
            (CONFIG, "/sys/x", "state: /sys/x cannot be made"),
            (
                CONFIG + "store: file://%s\n" % plain,
                None,
                "store: %s cannot be used by user" % plain,
                "Not a directory",
            ),
            (CONFIG, half, "state: ", "belay.db is not a regular file"),
            (CONFIG, lone, "ca.pem", "without its key"),
            (CONFIG + "socket: %s/belayd.sock\n" % none, None, "socket: ", none, "No such file"),
            (CONFIG + "socket: %s\n" % plain, None, "socket: ", "is not a socket"),
            (
                CONFIG + "encryption: client\nkey_file: %s/keys\n" % none,
                None,
                "key_file: ",
                none,
                "No such file",
            ),
            (
                CONFIG + "store: file://%s/store\n" % plain,
                None,
                "store: ",
                plain,
                "Not a directory",
            ),
        ):
            code, said = self.check(text, state)
            self.assertEqual(code, 2, (text, state, said))
            for word in words:
                self.assertIn(word, said)
        self.assertEqual(self.tree(), before)

    def test_what_the_own_user_may_not_write_is_said_with_the_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root can check as another user")
        os.chmod(self.dir, 0o755)
        config = self.file("belayd.yaml", CONFIG, 0o644)
        done = subprocess.run(
            [
                BUILD + "/scheduler/belayd",
                "--check",
                "--config",
                config,
                "--state",
                os.path.join(self.dir, "state"),
            ],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            stdin=subprocess.DEVNULL,
            user=65534,
            group=65534,
            extra_groups=[],
        )
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("cannot be made by user nobody: Permission denied", done.stderr)
        state = os.path.join(self.dir, "state")
        os.mkdir(state)
        os.chown(state, 65534, 65534)
        code, said = self.check(CONFIG, state)
        self.assertEqual(code, 0, said)
        self.assertIn("check as that user", said)

    def store(self, path, **owner):
        """A store with this marker of cluster "lab"."""
        os.makedirs(os.path.join(path, "lab", "owner"))
        with open(os.path.join(path, "lab", "owner", "0000000001"), "w") as f:
            json.dump({"format": 1, "cluster": "lab", "created_at_ms": 1, **owner}, f)

    def files(self, path):
        return sorted(os.path.join(d, f) for d, _, names in os.walk(path) for f in names)

    def test_another_clusters_store_is_refused_as_at_a_start(self):
        place = os.path.join(self.dir, "store")
        text = CONFIG + "store: file://%s\n" % place
        self.assertEqual(self.check(text)[0], 0)  # a start creates it
        self.assertFalse(os.path.exists(place))
        os.mkdir(place, 0o700)
        self.assertEqual(self.check(text)[0], 0)  # a start writes the marker
        self.assertEqual(os.listdir(place), [])
        self.store(place, uid="0123456789abcdef")
        before = self.files(self.dir)
        code, said = self.check(text)
        self.assertEqual(code, 2, said)
        self.assertIn("another cluster (uid 0123456789abcdef", said)
        self.assertIn("belay checkpoint adopt", said)
        self.assertEqual(said.count("another cluster"), 1, said)
        self.assertEqual(
            [f for f in self.files(self.dir) if not f.endswith("belayd.yaml")],
            [f for f in before if not f.endswith("belayd.yaml")],
        )
        started = subprocess.run(
            [
                BUILD + "/scheduler/belayd",
                "--config",
                self.file("belayd.yaml", text),
                "--state",
                os.path.join(self.dir, "state"),
            ],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            stdin=subprocess.DEVNULL,
        )
        self.assertEqual(started.returncode, 1, started.stderr)
        self.assertIn("another cluster (uid 0123456789abcdef", started.stderr)

    def test_a_store_that_belayd_could_not_use_is_refused(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "GOOGLE_"))}
        env.update(AWS_EC2_METADATA_DISABLED="true", HOME=self.dir)
        code, said = self.check(CONFIG + "store: s3://bucket\n", env=env)
        self.assertEqual(code, 2, said)
        self.assertIn("store: s3://bucket cannot be used", said)
        self.assertIn("credentials for the store: no AWS credentials: not in the environment", said)
        self.assertEqual((said.count("credentials for the store"), "fine" in said), (1, False))
        env.update(AWS_ACCESS_KEY_ID="A", AWS_SECRET_ACCESS_KEY="B")
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen(1)  # and never accepts: connections get no answer
            text = "store: s3://bucket?endpoint=http://127.0.0.1:%d\n" % silent.getsockname()[1]
            code, said = self.check(CONFIG + text, env=env)
        self.assertEqual(code, 2, said)
        self.assertIn("would wait: the store of checkpoints does not answer", said)

    def test_few_open_files_are_noted_and_too_few_are_refused(self):
        def limited(n):
            return ["sh", "-c", 'ulimit -n %d; exec "$0" "$@"' % n]

        code, said = self.check(CONFIG, prefix=limited(256))
        self.assertEqual(code, 0, said)
        self.assertIn("note: belayd may open 256 files at a time", said)
        self.assertIn("53 of nodes, 27 of users, 27 at the UNIX socket, 53 of strangers", said)
        why = "belayd may open 100 files at a time and needs at least 128"
        for check, wanted in ((("--check",), 2), ((), 1)):
            code, said = self.check(CONFIG, prefix=limited(100), check=check)
            self.assertEqual((code, why in said), (wanted, True), said)
        with Belayd(prefix=limited(256)) as d:
            self.assertIn(
                "open_files=256 strangers=53 users=27 users_at_socket=27 nodes=53", d.log()
            )

    def test_an_address_of_another_machine_is_refused_and_a_port_in_use_is_fine(self):
        for address, why in (
            ("192.0.2.77:7443", "Cannot assign requested address"),
            ("nosuch.host.invalid:7443", "cannot listen on nosuch.host.invalid"),
        ):
            code, said = self.check(CONFIG.replace("127.0.0.1:0", address))
            self.assertEqual((code, "listen: " in said, why in said), (2, True, True), said)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            text = CONFIG.replace(":0\n", ":%d\n" % taken.getsockname()[1])
            self.assertEqual(self.check(text)[0], 0)

    def test_a_start_whose_port_is_in_use_marks_no_store(self):
        place = os.path.join(self.dir, "store")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            text = CONFIG.replace(":0\n", ":%d\n" % taken.getsockname()[1])
            code, said = self.check(text + "store: file://%s\n" % place, check=())
        self.assertEqual((code, "Address already in use" in said), (1, True), said)
        self.assertFalse(os.path.exists(place), self.files(place))

    def test_a_pool_without_credentials_is_refused(self):
        with socket.socket() as silent, socket.socket() as closed:
            silent.bind(("127.0.0.1", 0))
            silent.listen()  # and never answers
            closed.bind(("127.0.0.1", 0))
            text = BARE % {"metadata": closed.getsockname()[1]}
            hangs = BARE % {"metadata": silent.getsockname()[1]}
            for pool in ("aws", "azure", "gcp"):
                said = "pool %s: belayd has no credentials to launch its machines: " % pool
                for pools in (text, hangs):
                    code, words = self.check(bare(pools, pool), prefix=CLEAN)
                    self.assertEqual((code, words.count(said)), (2, 1), words)
        lambdas = "pools:\n  burst: {provider: lambda, region: us-west-2, types: [gpu_1x_a10], ssh_key: a, max_nodes: 1}\n"
        code, words = self.check(self.aws().split("pools:")[0] + lambdas, prefix=CLEAN)
        self.assertEqual((code, "pool burst: no API key" in words), (2, True), words)

    def test_a_clusters_own_store_is_fine_while_it_runs_and_after(self):
        place = os.path.join(self.dir, "store")
        text = CONFIG + "store: file://%s\n" % place
        with Belayd(text) as d:
            self.assertEqual(self.check(text, d.state)[0], 0)
            code, said = self.check(text)  # of a new state
            self.assertEqual((code, "has none yet" in said), (2, True), said)
            d.stop()
            before = self.files(d.state)
            self.assertEqual(self.check(text, d.state)[0], 0)
            self.assertEqual(self.files(d.state), before)


if __name__ == "__main__":
    unittest.main()
