# SPDX-License-Identifier: Apache-2.0
"""Jobs that are idle, oversized, starved, short of memory and throttled, as real processes with
GPUs simulated by a fake driver library: belay advise or belay diagnose reports each of them, and
nothing about a healthy job.
"""

import os
import unittest

from lab import Lab, command_line

# On a busy machine a process that wants a whole cpu gets little of it: a tenth, if twenty share
# two. A sleeping one uses almost nothing.
TELEMETRY = {
    "diagnose": {"over": "1m", "least": "3s", "thread": 3},
    "advise": {"idle_for": "4s", "sizes_least": "4s"},
}
CLOUD = {"pools": [{"zone": "us-east-1a", "type": "g5.12xlarge", "on_demand": {"capacity": 1}}]}
POOL = {"zones": ["us-east-1a"], "types": ["g5.12xlarge"], "markets": ["on-demand"], "max_nodes": 1}
IDLE = "gpu uuid=GPU-idle busy=1 memory=12 total=24 processes=1\n"
STARVED = "gpu uuid=GPU-starved busy=20 memory=12 total=24 processes=1\n"
HOT = "gpu uuid=GPU-hot busy=99 memory=20 total=24 temperature=92 power=150 limit=300 clock=900 clock_max=1710 reasons=0x40\n"
WELL = "gpu uuid=GPU-well busy=97 memory=20 total=24 temperature=60 power=280 limit=300 clock=1700 clock_max=1710 reasons=0x4\n"
COOL = WELL.replace("GPU-well", "GPU-hot")  # before it is hot


class Telemetry(unittest.TestCase):
    def lab(self, nodes=1):
        cloud = {"pools": [dict(CLOUD["pools"][0], on_demand={"capacity": nodes})]}
        lab = Lab(
            cloud=cloud,
            pool=dict(POOL, max_nodes=nodes),
            belayd={"telemetry": TELEMETRY},
            agent_prelude="""\
export LD_LIBRARY_PATH=%s BELAY_TEST_NVML="$(dirname "$0")/../gpus" BELAY_NODE_TELEMETRY='200ms 1s'
"""
            % os.environ["BELAY_STAND_IN"],
        )
        return lab

    def start(self, lab, program, *args, ready=r"^works", **spec):
        """The number of a job that has started to work: GPUs are allotted in this order."""
        job = lab.submit(program, *args, **spec)
        lab.wait_log(job, ready)
        return job

    def codes(self, lab, job):
        return [f["code"] for f in lab.get("/jobs/%d/diagnose" % job)["findings"]]

    def advice(self, lab, job):
        page = lab.get("/advice?after=%d" % (job - 1))
        return sorted(i["code"] for i in page["items"] if i["job"] == job)

    def has_memory_group(self, lab):
        """Whether the node enforces a job's memory limit: the job is in another cgroup than
        ours."""

        def groups(pid):
            with open("/proc/%s/cgroup" % pid) as f:
                return {
                    line
                    for line in f.read().split()
                    if ":memory:" in line or line.startswith("0::")
                }

        return any(
            groups(pid) != groups("self")
            for pid in lab.processes()
            if "thrash" in command_line(pid)
        )

    def test_each_is_named_and_who_is_well_is_not(self):
        with self.lab() as lab:
            self.check_gpus_that_are_not_used(lab)
            self.check_a_gpu_that_is_hot_beside_one_that_is_well(lab)
            self.check_memory(lab)

    def test_the_rank_that_the_others_wait_for_is_named(self):
        with self.lab(2) as lab:
            job = lab.submit(
                "barrier.py", os.path.join(lab.dir, "barrier"), nodes=2, exclusive=True
            )
            lab.wait(lambda: "collectives" in self.advice(lab, job), "they wait for each other")
            shown = lab.belay("advise")
            print(shown)
            self.assertRegex(
                shown,
                r"rank 0 waits \d+ % of its time for others, rank 1 only \d+ %: the others wait for it",
            )
            ranks = {r["rank"]: r["waited_ms"] for r in lab.get("/jobs/%d/diagnose" % job)["ranks"]}
            self.assertGreater(ranks[0], 5 * ranks[1])
            self.end(lab, job)

    def end(self, lab, *jobs):
        for job in jobs:
            lab.post("/jobs/%d/cancel" % job)
        for job in jobs:
            lab.wait_ended(job)

    def become(self, lab, gpus):
        """Atomically, because the agent may be reading."""
        os.rename(lab.write("gpus.new", gpus), os.path.join(lab.dir, "gpus"))

    def check_gpus_that_are_not_used(self, lab):
        self.become(lab, IDLE + STARVED)
        idle = self.start(lab, "chain.py", 100000, method="coop", ready=r"^step ", gpus=1)
        starved = self.start(lab, "load.py", "burn", gpus=1)
        lab.wait(lambda: "idle-gpus" in self.advice(lab, idle), "the idle one is named")
        lab.wait(lambda: "gpu-starved" in self.codes(lab, starved), "the starved one is named")
        lab.wait(lambda: "starved-gpus" in self.advice(lab, starved), "of that advise knows, too")
        self.assertRegex(lab.belay("advise"), r"(?m)^idle-gpus +%d " % idle)
        gpu = lab.get("/jobs/%d/diagnose" % idle)["gpus"][0]
        self.assertEqual((gpu["gpu"], gpu["index"], gpu["memory_bytes"]), ("GPU-idle", 0, 12 << 30))

        # An idle job's GPUs are released: it is saved, and waits until it is resumed.
        lab.belay("advise", "--reclaim", str(idle))
        lab.wait(lambda: lab.job(idle)["state"] == "pending", "it is saved and put aside")
        row = lab.job(idle)
        self.assertEqual(row["hold"], "user")
        self.assertIsNotNone(row["last_checkpoint"])
        self.end(lab, idle, starved)

    def check_a_gpu_that_is_hot_beside_one_that_is_well(self, lab):
        self.become(lab, COOL + WELL)
        hot = self.start(lab, "load.py", "sleep", gpus=1)
        well = self.start(lab, "load.py", "burn", gpus=1)
        self.become(lab, HOT + WELL)  # not before both run: the node gets no new jobs
        lab.wait(
            lambda: self.codes(lab, hot) == ["thermal-throttling"],
            "the one that is throttled is named",
        )
        self.assertRegex(
            lab.belay("diagnose", str(hot)), r"throttled by heat \d+ % of the time: 92 degrees"
        )
        lab.wait(
            lambda: lab.get("/jobs/%d/diagnose" % well)["enough"],
            "there is enough of the one that is well",
        )
        self.assertEqual((self.codes(lab, well), self.advice(lab, well)), ([], []))
        self.assertIn("No bottleneck is visible", lab.belay("diagnose", str(well)))
        self.become(lab, COOL + WELL)
        self.end(lab, hot, well)

    def check_memory(self, lab):
        oversized = self.start(lab, "load.py", "sleep", memory_mib=1024)
        short = self.start(
            lab, "load.py", "thrash", os.path.join(lab.dir, "data"), 160, memory_mib=64
        )
        lab.wait(
            lambda: self.advice(lab, oversized) == ["too-much-memory"], "the oversized one is named"
        )
        if self.has_memory_group(lab):
            lab.wait(
                lambda: "memory-pressure" in self.codes(lab, short),
                "the one that is short of memory is named",
            )
            print(lab.belay("diagnose", str(short)))
        else:
            print("SKIP: nothing holds jobs to their memory on this machine")
        self.assertEqual(self.codes(lab, oversized), [])
        self.end(lab, oversized, short)


if __name__ == "__main__":
    unittest.main(verbosity=2)
