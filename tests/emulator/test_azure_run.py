# SPDX-License-Identifier: Apache-2.0
"""The emulated Azure with real processes, over HTTP: running, notices and ends.

    test_azure_run.py EMULATOR
"""

import base64
import http.client
import json
import os
import sys
import unittest
import urllib.parse

import rig

SIZE = "Standard_D8s_v5"
EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
TOKEN = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fmanagement.azure.com%2F"
WAIT_S = 30
CONFIGURATION = {
    "dir": "instances",
    "shutdown_ms": 500,
    "providers": {
        "azure": {
            "boot_delay_ms": 20,
            "clients": [{"client_id": "belay", "client_secret": "s3cret"}],
            "pools": [
                {
                    "zone": "1",
                    "type": SIZE,
                    "spot": {"capacity": 4, "usd_per_hour": "0.08"},
                    "on_demand": {"usd_per_hour": "0.384"},
                }
            ],
        }
    },
}


def call(url, method, target, body=None, headers=None):
    """Returns status, headers and body (parsed if it is JSON)."""
    c = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=WAIT_S)
    try:
        c.request(method, target, body, headers or {})
        reply = c.getresponse()
        data = reply.read().decode()
        is_json = (reply.headers["Content-Type"] or "").startswith("application/json")
        return reply.status, reply.headers, json.loads(data) if is_json and data else data
    finally:
        c.close()


class Run(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rig = rig.emulator(EMULATOR, CONFIGURATION)
        cls.ports = cls.rig.__enter__()
        cls.vms = (
            "/subscriptions/%s/resourceGroups/lab/providers/Microsoft.Compute/virtualMachines/"
            % cls.ports["azure_subscription"]
        )
        status, _, reply = call(
            cls.ports["azure"],
            "POST",
            "/%s/oauth2/v2.0/token" % cls.ports["azure_tenant"],
            "grant_type=client_credentials&client_id=belay&client_secret=s3cret"
            "&scope=https%3A%2F%2Fmanagement.azure.com%2F.default",
        )
        assert status == 200, reply
        cls.token = reply["access_token"]
        cls.seen = 0

    @classmethod
    def tearDownClass(cls):
        cls.rig.__exit__(None, None, None)

    def arm(self, method, name, body=None, token=None):
        return call(
            self.ports["azure"],
            method,
            self.vms + name + "?api-version=2022-08-01",
            json.dumps(body) if body else None,
            {"Authorization": "Bearer " + (token or self.token)},
        )

    def control(self, event):
        status, _, reply = call(self.ports["control"], "POST", "/events", json.dumps(event))
        self.assertEqual(status, 200, reply)

    def state(self):
        return call(self.ports["control"], "GET", "/state")[2]

    def resources(self):
        return self.state()["providers"]["azure"]["resources"]

    def instance(self, name):
        return next(i for i in reversed(self.state()["instances"]) if i["name"] == name)

    def wait(self, what, instance):
        """Waits for the next such entry of the journal."""
        while True:
            page = call(
                self.ports["control"], "GET", "/events?after=%d&wait_s=%d" % (self.seen, WAIT_S)
            )[2]
            self.assertTrue(page["events"], "no %s of %s" % (what, instance))
            for e in page["events"]:
                type(self).seen = e["seq"]
                if e["what"] == what and e.get("instance") == instance:
                    return e

    def run_machine(self, name, script):
        subnet = self.vms.replace(
            "Microsoft.Compute/virtualMachines/", "Microsoft.Network/virtualNetworks/v/subnets/s"
        )
        status, headers, reply = self.arm(
            "PUT",
            name,
            {
                "location": "eastus",
                "zones": ["1"],
                "identity": {"type": "SystemAssigned"},
                "properties": {
                    "priority": "Spot",
                    "evictionPolicy": "Delete",
                    "hardwareProfile": {"vmSize": SIZE},
                    "storageProfile": {
                        "imageReference": {
                            "publisher": "p",
                            "offer": "o",
                            "sku": "s",
                            "version": "latest",
                        },
                        "osDisk": {"createOption": "FromImage", "deleteOption": "Delete"},
                    },
                    "osProfile": {
                        "computerName": name,
                        "adminUsername": "ops",
                        "adminPassword": "x",
                        "customData": base64.b64encode(script.encode()).decode(),
                    },
                    "networkProfile": {
                        "networkApiVersion": "2020-11-01",
                        "networkInterfaceConfigurations": [
                            {
                                "name": "nic",
                                "properties": {
                                    "deleteOption": "Delete",
                                    "ipConfigurations": [
                                        {"name": "ip", "properties": {"subnet": {"id": subnet}}}
                                    ],
                                },
                            }
                        ],
                    },
                },
            },
        )
        self.assertEqual(status, 201, reply)
        self.assertIn("Azure-AsyncOperation", headers)
        instance = self.instance(name)["instance"]
        self.wait("running", instance)
        return instance, self.instance(name)["metadata"]

    def test_an_approved_eviction_happens_at_once(self):
        instance, metadata = self.run_machine("approved", "#!/bin/sh\nexec sleep 600\n")
        self.control({"reclaim": {"instance": instance, "notice_s": 600}})
        status, _, document = call(metadata, "GET", EVENTS, None, {"Metadata": "true"})
        self.assertEqual(status, 200)
        self.assertEqual([e["Resources"] for e in document["Events"]], [["approved"]])
        approval = json.dumps({"StartRequests": [{"EventId": document["Events"][0]["EventId"]}]})
        self.assertEqual(
            call(metadata, "POST", EVENTS, approval)[0], 400
        )  # not through a proxy, not without the header
        self.assertEqual(call(metadata, "POST", EVENTS, approval, {"Metadata": "true"})[0], 200)
        self.assertEqual(
            self.wait("terminated", instance)["reason"], "Server.SpotInstanceTermination"
        )
        self.assertEqual(self.resources(), [])

    def test_a_machines_own_token_deletes_it(self):
        instance, metadata = self.run_machine("own", "#!/bin/sh\nexec sleep 600\n")
        self.assertEqual(
            call(metadata, "GET", TOKEN, None, {"Metadata": "true", "X-Forwarded-For": "10.0.0.1"})[
                0
            ],
            400,
        )
        status, _, reply = call(metadata, "GET", TOKEN, None, {"Metadata": "true"})
        self.assertEqual(status, 200, reply)
        self.assertEqual(self.arm("DELETE", "own", token=reply["access_token"])[0], 202)
        self.wait("terminated", instance)
        self.assertEqual(self.resources(), [])
        self.assertEqual(self.arm("DELETE", "own", token="a.b.c")[0], 401)

    def test_a_power_off_leaves_what_has_to_be_deleted(self):
        instance, _ = self.run_machine("off", "#!/bin/sh\nexit 0\n")
        self.wait("stopped", instance)
        self.assertEqual(
            [r.get("power") for r in self.resources() if r["name"] == "off"], ["stopped"]
        )
        self.assertEqual(len(self.resources()), 3)
        self.assertEqual(self.arm("DELETE", "off")[0], 202)
        self.assertEqual(self.resources(), [])

    def test_faults_happen_as_asked(self):
        self.control(
            [
                {"throttle": {"action": "virtualMachines/read"}},
                {"refuse": {"action": "virtualMachines/read", "code": "ServiceUnavailable"}},
                {"drop_reply": {"action": "virtualMachines/delete"}},
            ]
        )
        statuses = []
        for _ in range(3):
            status, headers, reply = self.arm("GET", "nobody")
            statuses.append((status, reply["error"]["code"], headers["Retry-After"]))
        self.assertEqual(
            statuses,
            [
                (503, "ServiceUnavailable", None),
                (429, "TooManyRequests", "1"),
                (404, "ResourceNotFound", None),
            ],
        )
        with self.assertRaises(http.client.RemoteDisconnected):
            self.arm("DELETE", "nobody")
        self.assertEqual(self.arm("DELETE", "nobody")[0], 204)

    def test_a_body_that_is_too_long_is_refused(self):
        status, _, _ = call(
            self.ports["azure"],
            "PUT",
            self.vms + "a?api-version=2022-08-01",
            b" " * (2 << 20),
            {"Authorization": "Bearer " + self.token},
        )
        self.assertEqual(status, 413)


EMULATOR = os.path.abspath(sys.argv.pop(1))
unittest.main(verbosity=2)
