# SPDX-License-Identifier: Apache-2.0
"""Signing in, against the program oidc-provider from npm: with the command line (device flow) and
with a browser (authorization code flow with PKCE). The user is this test, which posts the
provider's forms. The provider is also told to spoil its ID tokens: each is refused with its reason.

test_login.py PACKAGE_DIRECTORY
"""

import html.parser
import http.client
import json
import os
import re
import select
import shutil
import ssl
import stat
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "..")]
import npm  # noqa: E402
from belayd import BUILD, JOB, WAIT_S, Belayd  # noqa: E402

# The last version that runs on Node.js 18, which Debian 12 has.
PACKAGE = {"private": True, "type": "module", "dependencies": {"oidc-provider": "8.8.1"}}
DIRECTORY = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else None
STEPS_MAX = 20  # of a user at the provider
CONFIG = """cluster: lab
listen: 127.0.0.1:0
pools: {base: {}}
users: {ola: operator}
teams:
  vision: {}
  nlp: {users: [bob]}
oidc:
  issuer: https://127.0.0.1:%d
  client_id: belay
  client_secret_file: %s/secret
  ca_file: %s/idp.pem
  scopes: [profile, groups, offline_access]
  groups_claim: groups
  teams: {ml-vision: vision, ml-nlp: nlp}
  leads: {ml-leads: vision}
  roles: {ops: operator, staff: viewer}
"""


class Forms(html.parser.HTMLParser):
    """The first form of a page."""

    def __init__(self, page):
        super().__init__()
        self.action, self.fields, self.is_open = None, {}, False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "form" and self.action is None:
            self.action, self.is_open = attrs["action"], True
        elif tag == "input" and self.is_open and attrs.get("name"):
            self.fields[attrs["name"]] = attrs.get("value") or ""

    def handle_endtag(self, tag):
        if tag == "form":
            self.is_open = False


class Browser:
    """Keeps cookies of each host and port, and follows nothing by itself."""

    def __init__(self, ca):
        self.context = ssl.create_default_context(cadata=ca)
        self.cookies = {}

    def request(self, method, url, form=None, headers=()):
        parts = urllib.parse.urlsplit(url)
        jar = self.cookies.setdefault(parts.netloc, {})
        sent = {"Cookie": "; ".join("%s=%s" % c for c in jar.items()), **dict(headers)}
        body = None
        if form is not None:
            body = urllib.parse.urlencode(form)
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        c = http.client.HTTPSConnection(parts.netloc, timeout=WAIT_S, context=self.context)
        c.request(method, parts.path + ("?" + parts.query if parts.query else ""), body, sent)
        reply = c.getresponse()
        text = reply.read().decode()
        for line in reply.msg.get_all("Set-Cookie") or []:
            name, value = line.split(";")[0].split("=", 1)
            if not value or re.search("(?i)max-age=0|1970", line):
                jar.pop(name, None)
            else:
                jar[name] = value
        c.close()
        return reply, text

    def walk(self, url, user, until, refuse=False):
        """Does at the provider what a user does; ends at a page without a form, or when it is sent
        to a URL that begins with `until`, which is returned.
        """
        reply, text = self.request("GET", url)
        for _ in range(STEPS_MAX):
            if reply.status in (302, 303):
                url = urllib.parse.urljoin(url, reply.headers["Location"])
                if url.startswith(until):
                    return url
                reply, text = self.request("GET", url)
                continue
            form = Forms(text)
            if form.action is None:
                return text
            fields = form.fields
            if "login" in fields:
                fields.update(login=user, password="x")
            if refuse and "abort" in text:
                fields = {"xsrf": fields["xsrf"], "user_code": fields["user_code"], "abort": "yes"}
                return self.request("POST", urllib.parse.urljoin(url, form.action), fields)[1]
            url = urllib.parse.urljoin(url, form.action)
            reply, text = self.request("POST", url, fields)
        raise AssertionError("the provider wants ever more: %s" % text)


class Login(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="belay-login.")
        cert, key = cls.dir + "/idp.pem", cls.dir + "/idp.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
            + ["-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=idp"]
            + ["-addext", "subjectAltName=IP:127.0.0.1"],
            check=True,
            capture_output=True,
        )
        fd = os.open(cls.dir + "/secret", os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(fd, b"s3cret/+ word\n")
        os.close(fd)
        script = os.path.join(DIRECTORY, "oidc_provider.mjs")
        shutil.copyfile(os.path.join(HERE, "oidc_provider.mjs"), script)
        cls.idp_log = open(cls.dir + "/idp.log", "w+")
        cls.idp = subprocess.Popen(
            ["node", script, cert, key],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=cls.idp_log,
            text=True,
        )
        try:
            if not select.select([cls.idp.stdout], [], [], WAIT_S)[0]:
                raise AssertionError("the provider did not start")
            cls.ports = json.loads(cls.idp.stdout.readline())
            cls.d = Belayd(CONFIG % (cls.ports["port"], cls.dir, cls.dir))
            cls.d.__enter__()
        except BaseException:
            cls.idp.kill()
            raise
        with open(os.path.join(cls.d.state, "ca.pem")) as ca, open(cert) as own:
            cls.ca = ca.read() + own.read()
        cls.control("start", redirect_uri=cls.d.url + "/login/callback")

    @classmethod
    def tearDownClass(cls):
        try:
            cls.d.__exit__(None, None, None)
        finally:
            cls.idp.kill()
            cls.idp.wait(WAIT_S)
            cls.idp.stdin.close()
            cls.idp.stdout.close()
            cls.idp_log.close()
            shutil.rmtree(cls.dir)

    @classmethod
    def control(cls, what, **body):
        c = http.client.HTTPConnection("127.0.0.1", cls.ports["control"], timeout=WAIT_S)
        c.request("POST", "/" + what, json.dumps(body))
        c.getresponse().read()
        c.close()

    def setUp(self):
        self.control("mode", mode="")
        self.control("groups", ann=["ml-vision", "x"], ben=["ops"], cho=["nothing"], vic=["staff"])

    # ---- the device flow ----

    def post(self, path, **body):
        status, reply, _ = self.d.call("POST", path, body, tls=True)
        return status, reply

    def begin(self):
        status, begun = self.post("/login/device")
        self.assertEqual(status, 200, begun)
        self.assertEqual(
            self.post("/login/token", device=begun["device"]), (202, {"state": "pending"})
        )
        return begun

    def approve(self, begun, user, **more):
        return Browser(self.ca).walk(begun["verification_uri_complete"], user, "-", **more)

    def sign_in(self, user):
        begun = self.begin()
        self.approve(begun, user)
        return self.post("/login/token", device=begun["device"])

    def whoami(self, token):
        return self.d.call("GET", "/api/v1/whoami", tls=True, token=token)[:2]

    def test_a_device_signs_in_and_its_groups_are_teams_and_roles(self):
        begun = self.begin()
        self.assertNotIn("device_code", begun)
        self.approve(begun, "ann")
        status, got = self.post("/login/token", device=begun["device"])
        self.assertEqual(status, 201, got)
        self.assertEqual((got["user"], got["role"], got["teams"]), ("ann", "member", ["vision"]))
        # a device code is good once
        status, again = self.post("/login/token", device=begun["device"])
        self.assertEqual((status, again["error"]["kind"]), (403, "denied"))
        self.assertIn("used before", again["error"]["text"])
        status, me = self.whoami(got["token"])
        self.assertEqual(
            (me["user"], me["by"], me["teams"], me["token"]),
            ("ann", "login", ["vision"], got["id"]),
        )
        status, job, _ = self.d.call("POST", "/api/v1/jobs", JOB, tls=True, token=got["token"])
        self.assertEqual(status, 201, job)
        job = self.d.call("GET", "/api/v1/jobs/%d" % job["id"])[1]["job"]
        self.assertEqual((job["user"], job["team"]), ("ann", "vision"))
        refused = self.d.call(
            "POST", "/api/v1/jobs", {**JOB, "team": "nlp"}, tls=True, token=got["token"]
        )[1]
        self.assertIn("not a member of team 'nlp'", refused["error"]["text"])
        # the role of a group; the same user's API token has that of the configuration
        ben = self.sign_in("ben")[1]
        self.assertEqual((ben["role"], self.whoami(ben["token"])[1]["role"]), ("operator",) * 2)
        api = self.d.call("POST", "/api/v1/tokens", {"kind": "api"}, tls=True, token=ben["token"])[
            1
        ]
        self.assertEqual(self.whoami(api["token"])[1]["role"], "member")
        # the log of administration knows who signed in, and no secret is in it or in belayd's
        rows = self.d.call("GET", "/api/v1/admin/audit-log")[1]["rows"]
        own = [r for r in rows if r["route"] == "POST /login/token"]
        self.assertIn(("ann", "ok"), [(r["user"], r["result"]) for r in own])
        for secret in (got["token"], got["refresh"], "s3cret"):
            self.assertNotIn(secret, self.d.log() + str(rows))

    def test_who_is_in_no_group_or_refuses_does_not_sign_in(self):
        status, reply = self.sign_in("cho")
        self.assertEqual(status, 403, reply)
        self.assertIn("cho is in no group that may sign in", reply["error"]["text"])
        begun = self.begin()
        self.approve(begun, "ann", refuse=True)
        status, reply = self.post("/login/token", device=begun["device"])
        self.assertEqual(status, 403, reply)
        self.assertIn("refused at the identity provider", reply["error"]["text"])

    def test_a_renewal_asks_for_the_groups_again(self):
        got = self.sign_in("ann")[1]
        self.control("groups", ann=["ml-nlp", "ops"])
        status, new = self.post("/login/refresh", refresh=got["refresh"])
        self.assertEqual((status, new["teams"], new["role"]), (201, ["nlp"], "operator"), new)
        self.assertEqual(new["id"], got["id"])
        self.assertEqual(self.whoami(got["token"])[0], 401)  # one token a sign-in
        status, reply, _ = self.d.call(
            "POST", "/api/v1/jobs", {**JOB, "team": "vision"}, tls=True, token=new["token"]
        )
        self.assertIn("not a member of team 'vision'", reply["error"]["text"])
        # a restart knows the teams of the last sign-in
        self.d.stop()
        self.d.start()
        self.assertEqual(self.whoami(new["token"])[1]["teams"], ["nlp"])
        # in no group any more
        self.control("groups", ann=[])
        status, reply = self.post("/login/refresh", refresh=new["refresh"])
        self.assertEqual(status, 403, reply)
        self.control("groups", ann=["ops"])
        # another user must not come of it
        got = self.sign_in("ann")[1]
        self.control("mode", mode="user")
        self.control("groups", ann=["ops"], eve=["ops"])
        status, reply = self.post("/login/refresh", refresh=got["refresh"])
        self.assertEqual(status, 403, reply)
        self.assertIn("for another user", reply["error"]["text"])

    def test_a_group_gives_a_team_to_lead(self):
        self.control("groups", ann=["ml-vision"], ben=["ml-vision"])
        ann = self.sign_in("ann")[1]

        def submit():
            job = {**JOB, "team": "vision"}
            return self.d.call("POST", "/api/v1/jobs", job, tls=True, token=ann["token"])[1]["id"]

        def cancel(job, token):
            path = "/api/v1/jobs/%d/cancel" % job
            return self.d.call("POST", path, {}, tls=True, token=token)[0]

        job, ben = submit(), self.sign_in("ben")[1]
        self.assertEqual((ben["role"], cancel(job, ben["token"])), ("member", 403))
        self.control("groups", ann=["ml-vision"], ben=["ml-leads"])
        ben = self.post("/login/refresh", refresh=ben["refresh"])[1]
        self.assertEqual((ben["role"], ben["teams"]), ("lead", ["vision"]))
        self.assertEqual(cancel(job, ben["token"]), 200)
        self.control("groups", ann=["ml-vision"], ben=["ml-vision"])
        ben = self.post("/login/refresh", refresh=ben["refresh"])[1]
        self.assertEqual((ben["role"], cancel(submit(), ben["token"])), ("member", 403))

    def reload(self, text):
        with open(os.path.join(self.d.dir, "belayd.yaml"), "w") as f:
            f.write(text)
        status, said, _ = self.d.call("POST", "/api/v1/admin/reload", {})
        self.assertEqual(status, 200, said)
        return [c["key"] for c in said["changes"]]

    def test_a_reload_keeps_the_teams_of_sign_ins_and_changes_those_of_the_next(self):
        before = self.d.config
        self.addCleanup(self.reload, before)
        got = self.sign_in("ann")[1]

        def teams(of):
            found = []
            for team in ("vision", "nlp"):
                job = {**JOB, "team": team, "hold": True}
                status = self.d.call("POST", "/api/v1/jobs", job, tls=True, token=of["token"])[0]
                self.assertIn(status, (201, 403))
                found += [team] if status == 201 else []
            self.assertEqual(self.whoami(of["token"])[1]["teams"], found)
            return found

        self.assertEqual(teams(got), ["vision"])
        # another section, then another key of this one
        self.assertEqual(self.reload(before + "visibility: all\n"), ["visibility"])
        self.assertEqual(teams(got), ["vision"])
        renewed = before + "  token_lifetime: 3h\n"
        self.assertEqual(sorted(self.reload(renewed)), ["oidc.token_lifetime", "visibility"])
        self.assertEqual(teams(got), ["vision"])
        # other teams for the same groups: of the next sign-in, or renewal
        moved = before.replace("ml-vision: vision", "ml-vision: nlp")
        self.assertIn("oidc.teams.ml-vision", self.reload(moved))
        self.assertEqual(teams(got), ["vision"])
        got = self.post("/login/refresh", refresh=got["refresh"])[1]
        self.assertEqual((got["teams"], teams(got)), (["nlp"], ["nlp"]))
        self.control("groups", ann=["ml-vision"], ben=["ml-vision"])
        self.assertEqual(self.sign_in("ben")[1]["teams"], ["nlp"])
        # without the section nobody is in a team by it; with it again, as before
        without = moved[: moved.index("oidc:")]
        self.assertTrue(all(k.startswith("oidc") for k in self.reload(without)))
        job = {**JOB, "team": "nlp", "hold": True}
        call = ("POST", "/api/v1/jobs", job)
        self.assertEqual(self.d.call(*call, tls=True, token=got["token"])[0], 403)
        self.reload(moved)
        self.assertEqual(teams(got), ["nlp"])

    def test_a_sign_in_that_was_ended_is_not_renewed(self):
        for end in ("logout", "revoke"):
            got = self.sign_in("ann")[1]
            path = "/api/v1/logout" if end == "logout" else "/api/v1/tokens/%d/revoke" % got["id"]
            token = got["token"] if end == "logout" else None
            self.assertEqual(
                self.d.call("POST", path, {}, tls=end == "logout", token=token)[0], 200
            )
            self.assertEqual(self.whoami(got["token"])[0], 401)
            status, reply = self.post("/login/refresh", refresh=got["refresh"])
            self.assertEqual(status, 403)
            self.assertIn("was ended", reply["error"]["text"])
        for bad in ("", "x", "s1.00.AA", got["refresh"][:-8] + "AAAAAAAA"):
            status, reply = self.post("/login/refresh", refresh=bad)
            self.assertEqual(status, 403, reply)
        self.assertEqual(self.post("/login/token", device="x")[0], 400)
        self.assertEqual(self.post("/login/token", device=got["refresh"])[0], 400)

    def test_each_spoilt_token_is_refused_with_its_reason(self):
        for mode, text in (
            ("expired", "exp: it expired at"),
            ("future", "iat: it is valid from"),
            ("audience", 'aud: it is for "another-client", not for belay'),
            ("azp", 'azp: it was issued to "x"'),
            ("issuer", 'iss: it is from "https://evil.example"'),
            ("kid", 'none of the provider\'s keys for RS256 has the id "unknown"'),
            ("signature", "the signature is wrong"),
            ("stranger", "the signature is wrong"),
            ("none", 'alg: expected RS256 or ES256, found "none"'),
            ("hs256", 'alg: expected RS256 or ES256, found "HS256"'),
        ):
            with self.subTest(mode):
                self.control("mode", mode=mode)
                status, reply = self.sign_in("ann")
                self.assertEqual((status, reply["error"]["kind"]), (403, "denied"), reply)
                self.assertIn("ID token is refused: ", reply["error"]["text"])
                self.assertIn(text, reply["error"]["text"])
        # a key that is new at the provider is fetched
        self.control("mode", mode="rotated")
        self.assertEqual(self.sign_in("ann")[0], 201)

    # ---- the command line ----

    def cli(self, *args, **env):
        home = os.path.join(self.dir, "home")
        os.makedirs(home, exist_ok=True)
        own = {k: v for k, v in os.environ.items() if not re.match("BELAY_|XDG_", k)}
        own.update(HOME=home, TZ="UTC", **env)
        return subprocess.Popen(
            [BUILD + "/cli/belay", *args],
            env=own,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def belay(self, *args, rc=0, **env):
        p = self.cli(*args, **env)
        out, error = p.communicate(timeout=WAIT_S)
        self.assertEqual(p.returncode, rc, out + error)
        return out + error

    def test_the_command_line_signs_in_renews_and_signs_out(self):
        ca = os.path.join(self.d.state, "ca.pem")
        self.assertIn("--ca FILE", self.belay("login", "--server", self.d.url, rc=2))
        p = self.cli("login", "--server", self.d.url + "/", "--ca", ca)
        lines = [p.stderr.readline() for _ in range(3)]
        self.assertRegex(lines[1], "^and enter the code [A-Z]{4}-[A-Z]{4}$")
        Browser(self.ca).walk(re.search("open (.*)", lines[2])[1], "ann", "-")
        out, error = p.communicate(timeout=WAIT_S)
        self.assertEqual(p.returncode, 0, error)
        self.assertRegex(out, "^signed in as ann, member, of team vision; until .*, and renewed")
        path = os.path.join(self.dir, "home", ".config", "belay", "logins.json")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        # with and without BELAY_SERVER
        self.assertRegex(
            self.belay("whoami"), "user: +ann\nrole: +member\nteams: +vision\nby: +belay login"
        )
        self.assertIn("ann", self.belay("whoami", BELAY_SERVER=self.d.url))
        missing = self.belay("whoami", rc=1, BELAY_SERVER="https://127.0.0.1:1")
        self.assertIn("you have not signed in there: belay login", missing)
        # due: renewed before the call; ended: renewed by the refused call
        for change in ({"renew_at_ms": 0}, {"token": "b.nonsense"}):
            self.control("groups", ann=["ml-nlp"] if "token" in change else ["ml-vision", "ml-nlp"])
            with open(path) as f:
                kept = json.load(f)
            before = kept["servers"][self.d.url]["token"]
            kept["servers"][self.d.url].update(change)
            with open(path, "w") as f:
                json.dump(kept, f)
            said = json.loads(self.belay("whoami", "--json"))
            self.assertEqual(said["teams"], ["nlp"] if "token" in change else ["vision", "nlp"])
            with open(path) as f:
                after = json.load(f)["servers"][self.d.url]["token"]
            self.assertNotIn(after, (before, "b.nonsense"))
        # many at once renew once, and all are answered
        kept["servers"][self.d.url]["token"] = after
        with open(path) as f:
            kept = json.load(f)
        kept["servers"][self.d.url]["renew_at_ms"] = 0
        with open(path, "w") as f:
            json.dump(kept, f)
        many = [self.cli("whoami") for _ in range(4)]
        for one in many:
            out, error = one.communicate(timeout=WAIT_S)
            self.assertEqual(one.returncode, 0, error)
        self.assertIn("signed out of " + self.d.url, self.belay("logout"))
        self.assertEqual(self.whoami(after)[0], 401)
        with open(path) as f:
            self.assertEqual(json.load(f), {"servers": {}})
        self.assertIn("nobody has signed in", self.belay("logout", rc=1))

    # ---- the browser ----

    def browse(self, user, next=None):
        """Returns the browser and the callback's URL."""
        b = Browser(self.ca)
        begin = self.d.url + "/login" + ("?next=" + next if next else "")
        reply, _ = b.request("GET", begin)
        self.assertEqual(reply.status, 303, reply.headers)
        sent = urllib.parse.parse_qs(urllib.parse.urlsplit(reply.headers["Location"]).query)
        self.assertEqual(sent["code_challenge_method"], ["S256"])
        self.assertNotIn("offline_access", sent["scope"][0])
        return b, b.walk(reply.headers["Location"], user, self.d.url)

    def test_a_browser_signs_in(self):
        b, callback = self.browse("ann", next="/api/v1/whoami")
        reply, _ = b.request("GET", callback)
        self.assertEqual((reply.status, reply.headers["Location"]), (303, "/api/v1/whoami"))
        cookies = reply.msg.get_all("Set-Cookie")
        self.assertEqual(len(cookies), 2)
        for line in cookies:
            is_session = line.startswith("__Host-belay=")
            same_site = "SameSite=Strict" if is_session else "SameSite=Lax"
            for flag in ("Path=/", "Secure", "HttpOnly", same_site):
                self.assertIn(flag, line.split("; "))
        _, text = b.request("GET", self.d.url + "/api/v1/whoami")
        me = json.loads(text)
        self.assertEqual((me["user"], me["by"], me["teams"]), ("ann", "login", ["vision"]))
        reply, _ = b.request("GET", self.d.url + "/login/done")
        self.assertEqual((reply.status, reply.headers["Location"]), (303, "/"))
        # another site's page may not act with the cookie
        job = self.d.url + "/api/v1/logout"
        for origin in ({}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
            reply, text = b.request("POST", job, {}, headers=origin)
            self.assertEqual(reply.status, 403, text)
            self.assertIn("Origin", text)
        own = {"Origin": self.d.url}
        self.assertEqual(b.request("POST", job, {}, headers=own)[0].status, 403)
        own["X-CSRF-Token"] = me["csrf"]
        self.assertEqual(b.request("POST", job, {}, headers=own)[0].status, 200)
        self.assertEqual(b.request("GET", self.d.url + "/api/v1/whoami")[0].status, 401)
        rows = self.d.call("GET", "/api/v1/admin/audit-log")[1]["rows"]
        own = [r for r in rows if r["route"] == "GET /login/callback"]
        self.assertEqual((own[-1]["user"], own[-1]["result"]), ("ann", "ok"))

    def check_refused(self, b, url, text):
        reply, page = b.request("GET", url)
        self.assertEqual(reply.status, 403, page)
        self.assertIn("Not signed in", page)
        self.assertIn(text, page)
        self.assertNotIn("__Host-belay", b.cookies[urllib.parse.urlsplit(url).netloc])

    def test_a_callback_that_is_not_this_browsers_is_refused(self):
        # replayed with the cookie that belonged to it: the provider takes a code once
        b, callback = self.browse("ann")
        host = urllib.parse.urlsplit(callback).netloc
        begun = dict(b.cookies[host])
        self.assertEqual(b.request("GET", callback)[0].status, 303)
        again = Browser(self.ca)
        self.check_refused(again, callback, "has not begun a sign-in here, or has finished it")
        again.cookies[host] = begun
        self.check_refused(again, callback, "used before")
        # an attacker's callback in the victim's browser
        _, evil = self.browse("ben")
        victim, _ = self.browse("ann")
        self.check_refused(victim, evil, "state: it is not the one")
        # another nonce, another issuer, a refusal
        b, callback = self.browse("ann")
        self.control("mode", mode="nonce")
        self.check_refused(b, callback, "nonce: it is not the one that was sent")
        self.control("mode", mode="")
        b, callback = self.browse("ann")
        self.check_refused(
            b, callback.replace("iss=https", "iss=http"), "iss: the answer is from another"
        )
        b, callback = self.browse("ann")
        state = urllib.parse.parse_qs(urllib.parse.urlsplit(callback).query)["state"][0]
        url = self.d.url + "/login/callback?error=access_denied&error_description=%3Cb%3E&state="
        self.check_refused(b, url + state, "&lt;b&gt;")
        b, callback = self.browse("ann")
        self.check_refused(b, re.sub("code=[^&]*", "code=nonsense", callback), "used before")

    def test_a_browser_is_sent_nowhere_else(self):
        for bad in ("//evil.example", "https://evil.example", "/%5Cevil.example", "x", "/a%0d%0ab"):
            reply, text = Browser(self.ca).request("GET", self.d.url + "/login?next=" + bad)
            self.assertEqual(reply.status, 400, text)
            self.assertNotIn("Location", reply.headers)


class NoProvider(unittest.TestCase):
    def test_without_the_section_nobody_signs_in(self):
        with Belayd() as d:
            for method, path in (
                ("POST", "/login/device"),
                ("POST", "/login/token"),
                ("POST", "/login/refresh"),
                ("GET", "/login"),
                ("GET", "/login/callback"),
            ):
                status, body, _ = d.call(method, path, {} if method == "POST" else None, tls=True)
                self.assertEqual((status, body["error"]["kind"]), (501, "unsupported"), path)
                self.assertIn("no section oidc:", body["error"]["text"])
            self.assertEqual(d.call("GET", "/api/v1/whoami")[1]["by"], "socket")
            status, body, _ = d.call("POST", "/api/v1/logout", {})
            self.assertEqual((status, body["error"]["kind"]), (400, "invalid"))

    def test_a_provider_that_does_not_answer_is_named(self):
        config = "cluster: lab\nlisten: 127.0.0.1:0\npools: {base: {}}\n"
        with Belayd(config + "oidc: {issuer: 'https://127.0.0.1:1', client_id: belay}\n") as d:
            status, body, _ = d.call("POST", "/login/device", {}, tls=True)
            self.assertEqual(status, 503, body)
            self.assertIn(
                "the identity provider's description at https://127.0.0.1:1/.well-known/",
                body["error"]["text"],
            )


if __name__ == "__main__":
    if DIRECTORY:
        npm.install(DIRECTORY, PACKAGE, "oidc-provider")
    unittest.main(verbosity=2, failfast=False)
