# SPDX-License-Identifier: Apache-2.0
"""The GPUs of this machine, as belay sees, assigns and measures them. Skipped where there are none.
"""

import os
import unittest

import gpu

TELEMETRY = {
    "diagnose": {"over": "1m", "least": "3s"},
    "advise": {"idle_for": "4s", "sizes_least": "4s"},
}
HELD_PERCENT = 20  # of a GPU's memory; up to 10 does not count as held
CANNOT_DENY = "tasks cannot be denied access to each other's GPUs here"


class Node(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = gpu.Up({"telemetry": TELEMETRY, "cluster": "local"})
        cls.lab.__enter__()
        cls.lab.wait(lambda: cls.node(), "the node")

    @classmethod
    def tearDownClass(cls):
        cls.lab.__exit__(None, None, None)

    @classmethod
    def node(cls):
        return next((n for n in cls.lab.get("/nodes")["nodes"] if n["state"] == "up"), None)

    def end(self, *jobs):
        for job in jobs:
            self.lab.post("/jobs/%d/cancel" % job)
        for job in jobs:
            self.lab.wait_ended(job)

    def test_number_model_and_memory_are_those_of_the_driver(self):
        found = gpu.smi("name", "memory.total", "mig.mode.current")
        node = self.node()
        print(self.lab.belay("nodes"))
        if any(row[2] == "Enabled" for row in found):
            self.skipTest("a GPU is in MIG mode")
        self.assertEqual(node["gpus"], len(found))
        model = node["gpu_model"]
        self.assertIsNotNone(model)
        self.assertIn(model.replace("-", " "), found[0][0].lower().replace("-", " "))
        if node["gpu_memory_mib"]:
            self.assertLess(abs(node["gpu_memory_mib"] / int(found[0][1]) - 1), 0.1)

    def test_a_gpu_belongs_to_one_job(self):
        """All GPUs are held: a job that asks for one waits, and one that asks for none cannot open
        their devices."""
        lab, n = self.lab, self.node()["gpus"]
        owner = gpu.submit(lab, "devices.py", gpus=n)
        lab.wait_log(owner, "^ready$")
        other = gpu.submit(lab, "devices.py", gpus=1)
        none = gpu.submit(lab, "devices.py")
        lab.wait_log(none, "^ready$")
        self.assertEqual(lab.job(other)["state"], "pending")
        self.assertIn("busy", lab.belay("why", str(other)))
        numbers = ",".join(str(i) for i in range(n))
        for job, given, opens in ((owner, numbers, True), (none, "", False)):
            said = lab.said(job)
            print(said)
            self.assertIn("BELAY_GPUS=%s\nCUDA_VISIBLE_DEVICES=%s\n" % (given, given), said)
            self.assertIn("CUDA_DEVICE_ORDER=PCI_BUS_ID\n", said)
            if not opens and CANNOT_DENY in lab.agent_log():
                print("SKIP: %s" % CANNOT_DENY)
                continue
            for path in gpu.devices():
                self.assertIn("%s %s\n" % (path, "opened" if opens else "EPERM"), said)
        self.end(owner, none)
        lab.wait_log(other, "^ready$")
        self.end(other)

    def one_gpu(self, job):
        found = self.lab.get("/jobs/%d/diagnose" % job)["gpus"]
        return found[0] if found else {"gpu": None, "known_ms": 0, "busy_ms": 0, "memory_bytes": 0}

    def advice(self, job):
        return [i["code"] for i in self.lab.get("/advice")["items"] if i["job"] == job]

    def test_load_is_measured_and_a_gpu_that_is_held_idle_is_named(self):
        lab = self.lab
        if gpu.lacks("torch"):
            self.skipTest(gpu.lacks("torch"))
        uuid, total = gpu.smi("uuid", "memory.total")[0]
        held = int(total) * HELD_PERCENT // 100
        stop = os.path.join(lab.dir, "stop")
        job = gpu.submit(lab, "occupy.py", held, stop, gpus=1, memory_mib=8192)
        lab.wait_log(job, "^works$")

        def works():
            row = self.one_gpu(job)
            return row["known_ms"] > 6000 and row["busy_ms"] > 0.5 * row["known_ms"] and row

        row = lab.wait(works, "it is measured as busy")
        print(
            "busy %d of %d ms, %d MiB"
            % (row["busy_ms"], row["known_ms"], row["memory_bytes"] >> 20)
        )
        self.assertEqual(row["gpu"], uuid)
        self.assertGreaterEqual(row["memory_bytes"] >> 20, held)
        self.assertLess(abs((row["memory_total_bytes"] >> 20) / int(total) - 1), 0.02)
        self.assertGreater(row["temperature_c"], 0)
        self.assertGreater(row["energy_mj"], 0)
        self.assertNotIn("idle-gpus", self.advice(job))
        with open(stop, "w"):
            pass
        lab.wait_log(job, "^idle$")
        lab.wait(lambda: "idle-gpus" in self.advice(job), "the idle GPU is named")
        print(lab.belay("advise"))
        print(lab.belay("diagnose", str(job)))
        self.end(job)


if __name__ == "__main__":
    gpu.main()
