# SPDX-License-Identifier: Apache-2.0
"""belay advise --forgotten --instances all: what others launched in the account is reported with
its price, what belay launched is not, and nothing is ever ended.
"""

import datetime
import hashlib
import hmac
import re
import unittest
import urllib.error
import urllib.parse
import urllib.request

from lab import ACCESS_KEY, SECRET_KEY, WAIT_S, Lab

DAY_MS = 86400000


def digest(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def ask_ec2(url, **parameters):
    """A request as somebody's own program makes it, signed (AWS Signature Version 4)."""
    host = urllib.parse.urlparse(url).netloc
    body = urllib.parse.urlencode({"Version": "2016-11-15", **parameters})
    at = datetime.datetime.utcnow().strftime("%Y%m%dT%H%M%SZ")
    scope = at[:8] + "/us-east-1/ec2/aws4_request"
    kind = "application/x-www-form-urlencoded; charset=utf-8"
    signed = "content-type;host;x-amz-date"
    canonical = "POST\n/\n\ncontent-type:%s\nhost:%s\nx-amz-date:%s\n\n%s\n%s" % (
        kind,
        host,
        at,
        signed,
        hashlib.sha256(body.encode()).hexdigest(),
    )
    key = ("AWS4" + SECRET_KEY).encode()
    for part in scope.split("/"):
        key = digest(key, part)
    text = "AWS4-HMAC-SHA256\n%s\n%s\n%s" % (
        at,
        scope,
        hashlib.sha256(canonical.encode()).hexdigest(),
    )
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    request = urllib.request.Request(
        url,
        body.encode(),
        {
            "Content-Type": kind,
            "X-Amz-Date": at,
            "Authorization": "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s"
            % (ACCESS_KEY, scope, signed, signature),
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as reply:
            return reply.read().decode()
    except urllib.error.HTTPError as e:
        raise AssertionError("%s: %s" % (parameters["Action"], e.read().decode())) from e


def launch(url, **more):
    said = ask_ec2(
        url,
        Action="RunInstances",
        ImageId="ami-1",
        InstanceType="m6i.xlarge",
        MinCount="1",
        MaxCount="1",
        **{"Placement.AvailabilityZone": "us-east-1a"},
        **more,
    )
    return re.search("<instanceId>(i-[0-9a-f]+)</instanceId>", said).group(1)


class Account(Lab):
    """A lab that knows where its cloud is."""

    def provision(self, ports):
        self.url = ports["ec2"]
        return super().provision(ports)


class Instances(unittest.TestCase):
    def forgotten(self, lab, for_ms=0):
        reply = lab.get("/forgotten?volumes=none&instances=all&for_ms=%d" % for_ms)
        self.assertFalse(reply["more"])
        return reply

    def instances(self, lab, for_ms=0):
        reply = self.forgotten(lab, for_ms)
        self.assertEqual(reply["unlisted"], [])
        return {i["name"]: i for i in reply["items"] if i["code"] == "instance"}

    def test_what_others_launched_is_listed_and_never_ended(self):
        with Account(cloud={"page": 2}) as lab:
            url = lab.url
            job = lab.submit("chain.py", 60, 0.02, 1 << 10)
            lab.wait_log(job, r"^step 2 ")
            ours = lab.instance_of(job)
            bare = [launch(url) for _ in range(3)]
            tag = {
                "TagSpecification.1.ResourceType": "instance",
                "TagSpecification.1.Tag.1.Key": "belay:cluster",
                "TagSpecification.1.Tag.1.Value": "another",
            }
            other = launch(url, **tag)
            found = self.instances(lab)
            self.assertEqual(set(found), {*bare, other})
            self.assertNotIn(ours, found)
            shown = found[bare[0]]
            self.assertGreater(shown["instance"]["uusd_per_hour"], 0)
            self.assertEqual(shown["uusd_per_day"], 24 * shown["instance"]["uusd_per_hour"])
            self.assertEqual(
                {
                    k: shown["instance"][k]
                    for k in ("provider", "zone", "type", "market", "cluster")
                },
                {
                    "provider": "aws",
                    "zone": "us-east-1a",
                    "type": "m6i.xlarge",
                    "market": "on-demand",
                    "cluster": None,
                },
            )
            self.assertEqual(found[other]["instance"]["cluster"], "another")
            self.assertEqual(self.instances(lab, DAY_MS), {})  # too new to be reported
            said = lab.belay("advise", "--forgotten", "--instances", "all", "--for", "0s")
            self.assertRegex(said, r"(?m)^%s +aws +us-east-1a +m6i.xlarge +on-demand " % bare[1])
            self.assertIn("belay ends none", said)
            self.assertNotIn("instance", {i["code"] for i in lab.get("/forgotten")["items"]})
            lab.wait_ended(job)
            lab.wait(lambda: not lab.get("/instances")["instances"], "the machine is given back")
            ids = {"InstanceId.%d" % (k + 1): i for k, i in enumerate((*bare, other))}
            for instance in ids.values():
                said = ask_ec2(url, Action="DescribeInstances", **{"InstanceId.1": instance})
                self.assertIn("<name>running</name>", said)
            self.check_refused(lab)
            ask_ec2(url, Action="TerminateInstances", **ids)

    def check_refused(self, lab):
        lab.stop_belayd()  # which caches the answer for some minutes
        lab.up()
        lab.cloud(
            {
                "refuse": {
                    "action": "DescribeInstances",
                    "code": "UnauthorizedOperation",
                    "count": 50,
                }
            }
        )
        (why,) = self.forgotten(lab)["unlisted"]
        self.assertEqual((why["what"], why["pool"], why["provider"]), ("instances", "cloud", "aws"))
        self.assertIn("needs the permission ec2:DescribeInstances", why["text"])
        self.assertIn(
            "The instances of pool cloud (aws, us-east-1) are not known: ",
            lab.belay("advise", "--forgotten", "--instances", "all"),
        )

    def test_what_is_refused(self):
        with Lab() as lab:
            for query in ("instances=own", "instances=all&user=ann"):
                with self.assertRaises(Exception) as refused:
                    lab.get("/forgotten?" + query)
                self.assertIn("instances: ", str(refused.exception))


if __name__ == "__main__":
    unittest.main()
