# SPDX-License-Identifier: Apache-2.0
"""Chaos: many jobs on an emulated cloud, while processes and machines are killed at random moments.

The kind, target and time of each act come from a seed (BELAY_CHAOS_SEED, else a random one that
is printed), so the choices of a run can be repeated; the timing of the machine cannot. At the
end:

 1. every job has ended once, as succeeded, with the output of an undisturbed run;
 2. no attempt resumed from a state older than what was acknowledged before, to belayd or to the
    program;
 3. what was acknowledged is in the store, and nothing there is damaged;
 4. every machine that the cloud ever started has a row, and none is left;
 5. no process is left, and no sanitizer has reported anything.
"""

import collections
import os
import random
import signal
import subprocess
import time

from lab import BUILD, Lab, Refused
from walks import RingWalk, Walk

JOBS_MIN = 30  # more while processes are killed, so that there is always a target
JOBS_ALIVE = 10
KILLS = 200  # SIGKILLs of belayd, agents and supervisors; reclaims of machines are not counted
GAP_S = 0.1, 1.5  # pause between two acts
CALM_S = 120  # for the remaining jobs after the last act
ENOUGH_S = 600  # limit if the acts do not find enough to kill

CLOUD = {
    "boot_delay_ms": 300,
    "notice_s": 4,
    "shutdown_ms": 1000,
    "pools": [
        {
            "zone": ["us-east-1a", "us-east-1b"],
            "type": "m6i.xlarge",
            "spot": {"capacity": 4, "usd_per_hour": 0.0768},
            "on_demand": {"capacity": 3},
        }
    ],
}
POOL = {"max_nodes": 6}
BELAYD = {
    "cluster": "chaos",
    "lease": "3s",
    "kill_wait": "1s",
    "sweep": "1s",
    "busy_sweep": "300ms",
    "settle": "2s",
}

# act -> relative frequency
ACTS = {
    "kill belayd": 20,
    "kill an agent": 36,
    "kill a supervisor": 16,
    "freeze an agent": 5,
    "freeze belayd": 3,
    "reclaim with notice": 8,
    "reclaim without notice": 5,
    "rebalance": 3,
    "refuse capacity": 3,
    "throttle": 2,
    "lose replies": 2,
}


class ChaosLab(Lab):
    """belayd is a child of the test, which restarts it like a service manager."""

    told_bytes = 2000

    def start(self):
        self.belayd = None
        super().start()

    def up(self):
        os.makedirs(self.home, exist_ok=True)
        with open(os.path.join(self.home, "belayd.log"), "a") as log:
            self.belayd = subprocess.Popen(
                [BUILD + "/scheduler/belayd", "--state", self.home, "--config", self.config],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.env,
                start_new_session=True,
            )

    def belayd_pid(self):
        return self.belayd.pid if self.belayd and self.belayd.poll() is None else 0

    def kill_belayd(self):
        self.belayd.kill()
        self.belayd.wait()

    def patiently(self, fn):
        """Repeats fn while belayd may be starting."""
        end = time.monotonic() + 30
        while True:
            try:
                return fn()
            except (OSError, ValueError, Refused) as error:
                if time.monotonic() > end or 400 <= getattr(error, "status", 0) < 500:
                    raise AssertionError("belayd does not answer: %s" % error)
                self.keep_up()
                time.sleep(0.05)

    def keep_up(self):
        if not self.belayd_pid():
            self.up()


class Chaos:
    def __init__(self, lab, seed):
        self.lab = lab
        self.choose = random.Random(seed)
        self.choose_jobs = random.Random(seed + 1)
        self.done, self.in_vain = collections.Counter(), collections.Counter()
        self.jobs = []
        self.began = time.monotonic()
        self.up_at = None
        self.frozen = []  # (until when, pid)

    def say(self, text):
        print("%6.2f s  %s" % (time.monotonic() - self.began, text), flush=True)

    # ---- acts: each returns what it did, or None without a target ----

    def signal(self, pids, r, what):
        """Signals one of the pids, self.hit. False: there is none, or it has just ended."""
        if not pids:
            return False
        self.hit = sorted(pids)[int(r * len(pids))]
        try:
            os.kill(self.hit, what)
        except ProcessLookupError:
            return False
        return True

    def kill(self, pids, r):
        return "pid %d" % self.hit if self.signal(pids, r, signal.SIGKILL) else None

    def freeze(self, pids, r):
        """Freezes an agent for less than a lease, or for longer: then its node is lost without its
        knowledge.
        """
        if not self.signal(pids, r, signal.SIGSTOP):
            return None
        self.frozen.append((time.monotonic() + 1 + 6 * r, self.hit))
        return "pid %d for %.1f s" % (self.hit, 1 + 6 * r)

    def thaw(self, all_of_them=False):
        due = [f for f in self.frozen if all_of_them or f[0] <= time.monotonic()]
        self.frozen = [f for f in self.frozen if f not in due]
        known = self.lab.agents() + [self.lab.belayd_pid()] if due else []
        for _, pid in due:
            if pid in known:
                os.kill(pid, signal.SIGCONT)

    def kill_belayd(self, r):
        if not self.lab.belayd_pid():
            return None
        self.lab.kill_belayd()
        self.up_at = time.monotonic() + max(0, 2.5 * r - 1)  # often at once
        return ""

    def reclaim(self, r, how):
        alive = sorted(
            i["instance"]
            for i in self.lab.state()["instances"]
            if i["state"] == "running" and not i["noticed_ms"]
        )
        if not alive:
            return None
        event = {"instance": alive[int(r * len(alive))], **how}
        self.lab.cloud({"rebalance" if not how else "reclaim": event})
        return event["instance"]

    def fault(self, event):
        self.lab.cloud(event)
        return str(event)

    def act(self, what, r):
        some = 1 + int(3 * r)
        if what == "kill belayd":
            return self.kill_belayd(r)
        if what == "kill an agent":
            return self.kill(self.lab.agents(), r)
        if what == "kill a supervisor":
            return self.kill(self.lab.supervisors(), r)
        if what == "freeze an agent":
            return self.freeze(self.lab.agents(), r)
        if what == "freeze belayd":
            return self.freeze([pid for pid in [self.lab.belayd_pid()] if pid], r)
        if what == "reclaim with notice":
            return self.reclaim(r, {"notice_s": 3 + some % 3})
        if what == "reclaim without notice":
            return self.reclaim(r, {"without_notice": True})
        if what == "rebalance":
            return self.reclaim(r, {})
        if what == "refuse capacity":
            return self.fault(
                {
                    "refuse": {
                        "action": "RunInstances",
                        "code": "InsufficientInstanceCapacity",
                        "count": some,
                    }
                }
            )
        if what == "throttle":
            return self.fault({"throttle": {"action": "*", "count": 2 * some}})
        how = ["close", "garbage", "error"][some - 1]
        return self.fault({"drop_reply": {"action": "*", "count": some, "how": how}})

    def kills(self):
        return sum(n for what, n in self.done.items() if what.startswith("kill"))

    # ---- the run ----

    def submit_some(self):
        """Keeps enough jobs alive. A submit without an answer may have succeeded, so its job is
        looked up.
        """
        active = {j["id"] for j in self.lab.get("/jobs?state=active&limit=200")["jobs"]}
        while len(active) < JOBS_ALIVE or len(self.jobs) < JOBS_MIN:
            kind = self.choose_jobs.choices([Walk, RingWalk], [8, 1])[0]
            job = kind.by_chance(self.choose_jobs)
            job.submit(self.lab)
            self.jobs.append(job)
            active.add(job.id)

    def rage(self):
        self.lab.patiently(self.submit_some)
        next_at = time.monotonic()
        while self.kills() < KILLS and time.monotonic() < self.began + ENOUGH_S:
            next_at = max(next_at + self.choose.uniform(*GAP_S), time.monotonic())
            what = self.choose.choices(list(ACTS), list(ACTS.values()))[0]
            r = self.choose.random()
            while time.monotonic() < next_at:
                self.tend()
                time.sleep(max(0, min(0.1, next_at - time.monotonic())))
            with_what = self.act(what, r)
            (self.in_vain if with_what is None else self.done)[what] += 1
            if with_what is not None:
                self.say("%s %s" % (what, with_what))

    def tend(self):
        self.thaw()
        if self.up_at and time.monotonic() < self.up_at:
            return
        self.up_at = None
        self.lab.keep_up()
        if self.lab.belayd_pid() in [pid for _, pid in self.frozen]:
            return  # belayd is frozen or down
        try:
            self.submit_some()
        except (OSError, ValueError, Refused):
            pass  # it is starting; later

    def calm(self):
        self.say("no more killing; waiting for the jobs")
        self.lab.cloud({"clear": {}})
        self.thaw(all_of_them=True)
        self.lab.keep_up()
        self.lab.patiently(lambda: self.lab.get("/version"))
        self.lab.wait(
            lambda: not self.lab.get("/jobs?state=active&limit=200")["jobs"],
            "the end of every job",
            CALM_S,
        )
        self.lab.wait_cloud(
            lambda state: state["alive"] == 0, "no machine is left at the cloud", 60
        )
        self.lab.wait(
            lambda: not self.lab.get("/instances?state=live")["instances"],
            "no instance is live",
            60,
        )

    # ---- promises ----

    def check(self):
        problems = []
        known = {job.id for job in self.jobs}
        jobs = []
        before = ""
        while True:
            page = self.lab.get("/jobs?state=all&limit=200" + before)
            jobs += page["jobs"]
            if not page["next"]:
                break
            before = "&before=%d" % page["next"]
        for row in jobs:
            if row["id"] not in known:
                problems.append("job %d was never answered for" % row["id"])
        for job in self.jobs:
            problems += ["job %d (%s): %s" % (job.id, job.method, p) for p in job.check(self.lab)]
        problems += self.check_cloud()
        return problems

    def check_cloud(self):
        rows, page = set(), {"next": 1 << 62}
        while page["next"]:
            page = self.lab.get("/instances?state=all&before=%d" % page["next"])
            rows.update(i["provider_id"] for i in page["instances"])
        for i in self.lab.state()["instances"]:
            if i["instance"] not in rows:
                yield "machine %s has no row" % i["instance"]
            if not i["gone_ms"]:
                yield "machine %s is still there" % i["instance"]

    def report(self):
        shown = [self.lab.show(job.id) for job in self.jobs]
        attempts = [a for s in shown for a in s["attempts"]]
        ends = collections.Counter(a["end"] for a in attempts)
        counts = self.lab.state()["counts"]
        print("jobs %d, attempts %d: %s" % (len(shown), len(attempts), dict(ends)))
        print(
            "resumed from a checkpoint %d times, checkpoints %d"
            % (
                sum(a["restored"] is not None for a in attempts),
                sum(len(s["checkpoints"]) for s in shown),
            )
        )
        print("machines %d; the cloud: %s" % (counts["launches"], counts))
        print("done: %s; nothing to do it to: %s" % (dict(self.done), dict(self.in_vain)))
        print("kills %d" % self.kills())


def main():
    seed = int(os.environ.get("BELAY_CHAOS_SEED") or random.SystemRandom().randrange(1, 10**6))
    print("seed %d (BELAY_CHAOS_SEED=%d makes the same choices)" % (seed, seed), flush=True)
    with ChaosLab(cloud=CLOUD, pool=POOL, belayd=BELAYD) as lab:
        chaos = Chaos(lab, seed)
        chaos.rage()
        chaos.calm()
        chaos.report()
        problems = chaos.check()
        if len(chaos.jobs) < JOBS_MIN or chaos.kills() < KILLS:
            problems.append("%d jobs and %d kills are too few" % (len(chaos.jobs), chaos.kills()))
        if problems:
            raise AssertionError("\n".join(problems))
    print("nothing was lost, done twice or left behind")


main()
