# SPDX-License-Identifier: Apache-2.0
"""The emulated Compute Engine as its clients see it: plain requests as in Google's documentation,
signed with openssl, and Google's own client for Node.js. Debian has no package of the client; it
is installed from npm into the build directory, and where that fails the test is skipped.
"""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import rig

HERE = os.path.dirname(os.path.abspath(__file__))
EMULATOR = os.environ["BELAY_EMULATOR"]
PACKAGES = os.path.join(os.environ["BELAY_BUILD"], "tests", "emulator", "npm")
PACKAGE = "@google-cloud/compute@6"
WAIT_S = 30
NPM_S = 240

ACCOUNT = "agent@my-project.iam.gserviceaccount.com"
CONFIGURATION = {
    "providers": {
        "aws": {
            "keys": [{"access_key": "A", "secret_key": "S"}],
            "pools": [{"zone": "us-east-1a", "type": "m6i.xlarge"}],
        },
        "gcp": {
            "boot_delay_ms": 100,
            "service_accounts": [{"email": ACCOUNT}],
            "pools": [
                {
                    "zone": ["us-central1-a", "us-central1-b"],
                    "type": "n2-standard-8",
                    "spot": {"capacity": 2, "usd_per_hour": 0.2},
                    "on_demand": {"usd_per_hour": 0.4},
                },
                {
                    "zone": "us-central1-a",
                    "type": "n1-standard-8+2xt4",
                    "on_demand": {"capacity": 1},
                },
            ],
        },
    }
}
# A machine that shuts down on request.
SCRIPT = "#!/bin/sh\ntrap 'kill $!; exit 0' TERM\nsleep 1000 &\nwait\n"


def resource(name):
    return {
        "name": name,
        "machineType": "zones/us-central1-a/machineTypes/n2-standard-8",
        "scheduling": {
            "provisioningModel": "SPOT",
            "instanceTerminationAction": "DELETE",
            "automaticRestart": False,
            "onHostMaintenance": "TERMINATE",
        },
        "disks": [
            {
                "boot": True,
                "autoDelete": True,
                "initializeParams": {
                    "sourceImage": "projects/debian-cloud/global/images/family/debian-12",
                    "diskSizeGb": "100",
                    "diskType": "zones/us-central1-a/diskTypes/pd-balanced",
                },
            }
        ],
        "networkInterfaces": [
            {"network": "global/networks/default", "accessConfigs": [{"type": "ONE_TO_ONE_NAT"}]}
        ],
        "serviceAccounts": [
            {"email": ACCOUNT, "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}
        ],
        "metadata": {"items": [{"key": "startup-script", "value": SCRIPT}]},
        "labels": {"sched-job": "17"},
    }


def request(method, url, body=None, headers=None):
    """Status, body, headers."""
    data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
    try:
        asked = urllib.request.Request(url, data, headers or {}, method=method)
        with urllib.request.urlopen(asked, timeout=WAIT_S) as r:
            return r.status, r.read().decode(), r.headers
    except urllib.error.HTTPError as e:
        with e:
            return e.code, e.read().decode(), e.headers


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


class Clients(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="belay-gce.")
        self.addCleanup(shutil.rmtree, self.dir)
        cloud = contextlib.ExitStack()
        self.addCleanup(cloud.close)
        self.ports = cloud.enter_context(rig.emulator(EMULATOR, CONFIGURATION))
        self.zone = self.ports["gcp"] + "/compute/v1/projects/my-project/zones/us-central1-a/"

    def call(self, method, path, body=None, status=200):
        got = request(
            method,
            self.zone + path,
            body,
            {"Authorization": "Bearer " + self.token, "Content-Type": "application/json"},
        )
        self.assertEqual(got[0], status, got[1])
        return json.loads(got[1])

    def wait(self, operation):
        end = time.monotonic() + WAIT_S
        while operation["status"] != "DONE":
            self.assertLess(time.monotonic(), end)
            operation = self.call("POST", "operations/%s/wait" % operation["name"], b"")
        return operation

    def get_token(self):
        with open(self.ports["gcp_key_files"][ACCOUNT]) as f:
            key = json.load(f)
        now, pem = int(time.time()), os.path.join(self.dir, "key.pem")
        with open(os.open(pem, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write(key["private_key"])
        header = {"alg": "RS256", "typ": "JWT", "kid": key["private_key_id"]}
        claims = {
            "iss": key["client_email"],
            "scope": "https://www.googleapis.com/auth/cloud-platform",
            "aud": key["token_uri"],
            "iat": now,
            "exp": now + 3600,
        }
        text = (
            base64url(json.dumps(header).encode()) + b"." + base64url(json.dumps(claims).encode())
        )
        signature = subprocess.run(
            ["openssl", "dgst", "-sha256", "-sign", pem],
            input=text,
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        form = urllib.parse.urlencode(
            {
                "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
                "assertion": (text + b"." + base64url(signature)).decode(),
            }
        )
        status, body, _ = request("POST", key["token_uri"], form.encode())
        self.assertEqual(status, 200, body)
        return json.loads(body)["access_token"]

    def test_plain_requests(self):
        self.assertEqual(request("GET", self.zone + "instances")[0], 401)
        self.token = self.get_token()
        where = "instances?requestId=8b0c1f0e-3f1f-4d9c-9a55-0d6d1f1c7a10"
        operation = self.call("POST", where, resource("job17-3"))
        self.assertEqual(self.call("POST", where, resource("job17-3"))["name"], operation["name"])
        self.assertNotIn("error", self.wait(operation))
        self.call("POST", "instances", resource("job17-3"), 409)
        found = self.call(
            "GET",
            "instances?filter=" + urllib.parse.quote("(labels.sched-job = 17) (status = RUNNING)"),
        )
        self.assertEqual([i["name"] for i in found["items"]], ["job17-3"])

        state = json.loads(request("GET", self.ports["control"] + "/state")[1])
        self.assertEqual(sorted(state["providers"]), ["aws", "gcp"])
        instance = state["instances"][0]
        preempted = instance["metadata"] + "/computeMetadata/v1/instance/preempted"
        flavor = {"Metadata-Flavor": "Google"}
        self.assertEqual(request("GET", preempted)[0], 403)
        _, value, headers = request("GET", preempted, None, flavor)
        self.assertEqual((value, headers["Metadata-Flavor"]), ("FALSE", "Google"))
        held = preempted + "?wait_for_change=true&last_etag=" + headers["ETag"]
        self.assertEqual(request("GET", held + "&timeout_sec=1", None, flavor)[1], "FALSE")
        request(
            "POST",
            self.ports["control"] + "/events",
            {"reclaim": {"instance": instance["instance"]}},
        )
        self.assertEqual(request("GET", held + "&timeout_sec=20", None, flavor)[1], "TRUE")

        # It shuts down on request and is deleted; only the operation remains.
        self.wait_for("terminated", instance["instance"])
        self.call("GET", "instances/job17-3", None, 404)
        proof = self.call(
            "GET",
            "operations?filter="
            + urllib.parse.quote('operationType="compute.instances.preempted"'),
        )
        self.assertTrue(proof["items"][0]["targetLink"].endswith("/instances/job17-3"))
        self.assertEqual(proof["items"][0]["status"], "DONE")

    def wait_for(self, what, instance):
        after, end = 0, time.monotonic() + WAIT_S
        while time.monotonic() < end:
            reply = json.loads(
                request("GET", "%s/events?after=%d&wait_s=5" % (self.ports["control"], after))[1]
            )
            if any(e["what"] == what and e.get("instance") == instance for e in reply["events"]):
                return
            after = reply["last_seq"]
        self.fail("no %s of %s" % (what, instance))

    def install(self):
        """Google's client, once for a build directory."""
        if not shutil.which("npm") or not shutil.which("node"):
            self.skipTest("there is no npm, or no node (scripts/setup)")
        done = os.path.join(PACKAGES, "done")
        if os.path.exists(done):
            return
        os.makedirs(PACKAGES, exist_ok=True)
        with open(os.path.join(PACKAGES, "package.json"), "w") as f:
            json.dump({"private": True}, f)
        try:
            npm = subprocess.run(
                ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", PACKAGE],
                cwd=PACKAGES,
                timeout=NPM_S,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                universal_newlines=True,
            )
        except subprocess.TimeoutExpired:
            self.skipTest("npm did not get %s within %d s" % (PACKAGE, NPM_S))
        if npm.returncode != 0:
            self.skipTest("npm cannot get %s: %s" % (PACKAGE, npm.stdout[-500:]))
        with open(done, "w"):
            pass

    def test_stock_client(self):
        self.install()
        ports_file = os.path.join(self.dir, "ports.json")
        with open(ports_file, "w") as f:
            json.dump(self.ports, f)
        node = subprocess.run(
            [
                "node",
                os.path.join(HERE, "gce_client.js"),
                ports_file,
                self.ports["gcp_key_files"][ACCOUNT],
            ],
            cwd=PACKAGES,
            timeout=4 * WAIT_S,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            universal_newlines=True,
        )
        self.assertEqual(node.returncode, 0)
        self.assertEqual(
            json.loads(node.stdout),
            {
                "full": "ZONE_RESOURCE_POOL_EXHAUSTED",
                "list": ["a", "b"],
                "zones": ["zones/us-central1-a"],
                "status": "RUNNING",
                "id": True,
                "preempted": "FALSE",
                "byToken": "a",
                "left": [],
                "gpus": ["n1-standard-8", "nvidia-tesla-t4", 2, "TERMINATE"],
                "noGpus": "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
            },
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)
