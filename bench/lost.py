# SPDX-License-Identifier: Apache-2.0
"""Work done again after a reclaim: 1,000 simulated reclaims (bench/lost.c) and 20 of real
processes.

With a notice that is long enough for the save, none. Otherwise at most the work since the last
save: one interval, plus the duration of a save.
"""

import os
import random
import statistics
import subprocess
import time

import lab

JOBS = 5
ROUNDS = 2  # of each kind
EVERY_MS = 5000
NOTICE_S = 5

# Records when each step was done, outside of the machine, so that its end loses nothing.
PROGRAM = """\
import os, sys, time
import belay
step = 0
if belay.restored():
    with open(os.path.join(belay.checkpoint_dir(), "step")) as f:
        step = int(f.read())
with open(sys.argv[1], "a", buffering=1) as done:
    done.write("from %d %d\\n" % (step, time.time() * 1000))
    while True:
        step += 1
        time.sleep(0.02)
        done.write("done %d %d\\n" % (step, time.time() * 1000))
        if belay.should_checkpoint():
            with belay.checkpoint(step) as directory:
                with open(os.path.join(directory, "step"), "w") as f:
                    f.write(str(step))
            if belay.stopping():
                sys.exit(belay.EXIT_CHECKPOINTED)
"""


def bench(build, say):
    say(
        "reclaims: work lost, in intervals",
        "min  50 %  90 %  99 %   max",
        "in time; share without loss",
        "relative to the bound",
    )
    simulated(build, say)
    real(say)


def simulated(build, say):
    out = subprocess.run(
        [build + "/bench/bench_lost"], check=True, stdout=subprocess.PIPE, universal_newlines=True
    ).stdout
    rows = [[int(word) for word in line.split()] for line in out.splitlines()]
    kinds = (
        ("without notice", [r for r in rows if r[0] == 0]),
        ("notice, the save fits", [r for r in rows if r[0] > 0 and r[4] == 0]),
        ("notice, the save takes longer", [r for r in rows if r[0] > 0 and r[4] > 0]),
    )
    for what, found in kinds:
        print_shares(
            say,
            "%s: %d simulated" % (what, len(found)),
            [(lost, every, bound) for _, _, every, lost, bound in found],
        )


def real(say):
    with lab.Lab(pool={"max_nodes": 16}) as l:
        program = l.write("steps.py", PROGRAM)
        paths = {}
        for n in range(JOBS):
            path = os.path.join(l.dir, "done.%d" % n)
            job = l.post(
                "/jobs",
                {
                    "name": "steps",
                    "cwd": "/",
                    "market": "spot",
                    "cpus": min(4, os.cpu_count()),  # one machine for each job
                    "script": "#!/bin/sh\nexec %s %s %s\n" % (lab.PYTHON, program, path),
                    "checkpoint": {"method": "coop", "every_ms": EVERY_MS},
                },
            )["id"]
            paths[job] = path
        save_ms = reclaim_all(l, paths)
        lost = {job: losses(path) for job, path in paths.items()}
        for job in paths:
            l.post("/jobs/%d/cancel" % job)
    found = [one for per_job in lost.values() for one in per_job]
    if len(found) != 2 * ROUNDS * JOBS:
        raise SystemExit("bench: of %d reclaims %d were observed" % (2 * ROUNDS * JOBS, len(found)))
    for what, odd, bound in (
        ("without notice", 0, EVERY_MS + max(save_ms)),
        ("notice, the save fits", 1, 0),
    ):
        kind = [ms for per_job in lost.values() for ms in per_job[odd::2]]
        print_shares(say, "%s: %d real" % (what, len(kind)), [(ms, EVERY_MS, bound) for ms in kind])


def reclaim_all(l, jobs):
    """Reclaims alternately without and with notice, each machine at a random time. Returns the ms
    that saves took.
    """
    chance, save_ms = random.Random(5), []
    for n in range(1, 2 * ROUNDS + 1):
        for job in jobs:
            l.wait_event(job, "started", n)
        how = {"without_notice": True} if n % 2 else {"notice_s": NOTICE_S}
        for job in jobs:
            time.sleep(0.3 + 2 * EVERY_MS / 1000 / JOBS * chance.random())
            l.cloud({"reclaim": {"instance": l.instance_of(job), **how}})
        for job in jobs:
            l.wait_event(job, "requeued", n)
            save_ms.append(l.job(job)["save_ms"] or 0)
    for job in jobs:
        l.wait_event(job, "started", 2 * ROUNDS + 1)
        l.wait_event(job, "saved", len([e for e in l.events(job) if e["kind"] == "saved"]) + 1)
    return save_ms


def losses(path):
    """Lost work in ms for each restart: from the step it resumed at to the last step that had been
    done.
    """
    found, at, last = [], {}, None
    with open(path) as f:
        for line in f:
            if not line.endswith("\n"):
                break
            word, step, ms = line.split()
            step = int(step)
            if word == "from" and last is not None:
                found.append(at[last] - at[step])
            if word == "done" or last is None:
                at[step] = int(ms)
            last = step
    return found


def print_shares(say, what, found):
    """found: (lost, interval, bound) of each reclaim."""
    shares = sorted(lost / every for lost, every, _ in found)
    lost = sorted(lost for lost, _, _ in found)
    most = max((lost / bound if bound else float(lost > 0)) for lost, _, bound in found)
    say(
        what,
        "%.2f  %.2f  %.2f  %.2f  %.2f" % tuple(quantile(shares, q) for q in (0, 0.5, 0.9, 0.99, 1)),
        "median %.1f s, max %.1f s; %.0f %% without loss"
        % (
            statistics.median(lost) / 1000,
            lost[-1] / 1000,
            100 * sum(ms == 0 for ms in lost) / len(lost),
        ),
        "at most %.2f of the bound" % most
        if any(bound for _, _, bound in found)
        else "bound: none",
    )


def quantile(ordered, q):
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]
