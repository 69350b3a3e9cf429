# SPDX-License-Identifier: Apache-2.0
"""kill -9 of belayd between an acknowledged submit and anything else: 1,000 submits over eight
connections, belayd killed at 20 random moments. No acknowledged job is lost and no number is
assigned twice."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import lab

SUBMITS, CONNECTIONS, KILLS = 1000, 8, 20


class Submits(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="belay-e2e.")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("BELAY_")}
        self.env["BELAY_HOME"] = self.home
        self.socket = os.path.join(self.home, "belayd.sock")
        self.acknowledged = []  # in order of the replies
        self.lock = threading.Condition()
        self.up()

    def tearDown(self):
        subprocess.run(
            [lab.BUILD + "/cli/belay", "down"], env=self.env, stdout=subprocess.DEVNULL, check=True
        )
        shutil.rmtree(self.home)

    def up(self):
        subprocess.run(
            [lab.BUILD + "/cli/belay", "up", "--no-agent"],
            env=self.env,
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=lab.WAIT_S,
        )

    def pid(self):
        with open(os.path.join(self.home, "belayd.json")) as f:
            return json.load(f)["pid"]

    def submit_some(self):
        """Submits over one connection after the other. A request broken by a kill was not
        acknowledged and is repeated.
        """
        spec = json.dumps({"script": "#!/bin/sh\ntrue\n", "cwd": "/"})
        c = None
        while True:
            with self.lock:
                if len(self.acknowledged) >= SUBMITS:
                    return
            try:
                c = c or lab.Unix(self.socket, lab.WAIT_S)
                c.request("POST", "/api/v1/jobs", spec, {"Content-Type": "application/json"})
                reply = c.getresponse()
                job = json.loads(reply.read())["id"]
                self.assertEqual(reply.status, 201)
                with self.lock:
                    self.acknowledged.append(job)
                    self.lock.notify_all()
            except (OSError, lab.http.client.HTTPException):
                with contextlib.suppress(OSError):
                    c.close()
                c = None
                time.sleep(0.005)  # belayd is restarting

    def test_no_acknowledged_job_is_lost(self):
        seed = int(os.environ.get("BELAY_SUBMITS_SEED", "1"))
        chance = random.Random(seed)
        moments = sorted(chance.sample(range(1, SUBMITS), KILLS))
        clients = [threading.Thread(target=self.submit_some) for _ in range(CONNECTIONS)]
        for client in clients:
            client.start()
        for moment in moments:
            with self.lock:
                self.assertTrue(
                    self.lock.wait_for(lambda: len(self.acknowledged) >= moment, lab.WAIT_S)
                )
            time.sleep(chance.random() * 0.003)  # at a random moment after a reply
            os.kill(self.pid(), signal.SIGKILL)
            self.assertTrue(lab.all_gone([self.pid()], lab.WAIT_S))
            self.up()
        for client in clients:
            client.join()
        stored = self.stored()
        lost = [job for job in self.acknowledged if job not in stored]
        print(
            "seed %d: %d submits acknowledged over %d connections, %d kills: %d lost, %d numbers given twice, "
            "%d stored without an answer"
            % (
                seed,
                len(self.acknowledged),
                CONNECTIONS,
                KILLS,
                len(lost),
                len(self.acknowledged) - len(set(self.acknowledged)),
                len(stored) - len(set(self.acknowledged)),
            )
        )
        self.assertEqual(lost, [])
        self.assertEqual(len(set(self.acknowledged)), len(self.acknowledged))

    def stored(self):
        found, before = set(), ""
        while True:
            c = lab.Unix(self.socket, lab.WAIT_S)
            with contextlib.closing(c):
                c.request("GET", "/api/v1/jobs?state=all&limit=200" + before)
                page = json.loads(c.getresponse().read())
            found.update(job["id"] for job in page["jobs"])
            if page["next"] is None:
                return found
            before = "&before=%d" % page["next"]


if __name__ == "__main__":
    unittest.main()
