# SPDX-License-Identifier: Apache-2.0
"""How long a program waits in a commit of many small files, without and with waiting for the store,
and the agent's memory before, during and after the saves.

A job under `belay up` writes the files anew for each commit, and commits without and with --wait in
turn. BELAY_BENCH_FILES: number of files (200000). BELAY_BENCH_DIR: where the files are.
"""

import json
import os
import statistics
import time

FILES = int(os.environ.get("BELAY_BENCH_FILES", "200000"))
# Files of 100 bytes can all be copied into a snapshot; of those of 2000 there are too many bytes.
SIZES = (100, 2000)
ROUNDS = 3
GIVEN_BACK_S = 60

PROGRAM = """\
import json, os, subprocess, sys, time
import belay

said, files, size, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
top = belay.checkpoint_dir()


def write():
    # Anew, in place: nothing is being stored now.
    block = os.urandom(1 << 20)
    for n in range(files):
        folder = os.path.join(top, "%03d" % (n % 512))
        if n < 512:
            os.makedirs(folder, exist_ok=True)
        fd = os.open(os.path.join(folder, "%06d" % n), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        start = n * 4999 % (len(block) - size)
        os.write(fd, b"%08d" % n + block[start : start + size - 8])
        os.close(fd)


def commit(step, wait):
    began = time.monotonic()
    ok = belay.commit(step, wait=wait)
    returned = time.monotonic() - began
    ok = belay.wait_durable() and ok
    return {"wait": wait, "ok": ok, "returned": returned, "durable": time.monotonic() - began}


took = []
for step in range(2 * rounds + 1):
    write()
    # Otherwise a commit also waits for what the program wrote before.
    subprocess.run(["sync", "-f", top], check=True)
    took.append(commit(step, step % 2 == 0))
with open(said + ".part", "w") as f:
    json.dump(took[1:], f)  # the first save finds an empty store
os.rename(said + ".part", said)
while True:
    time.sleep(3600)
"""


def memory(pid, name):
    """VmRSS or VmHWM, the greatest so far, in MiB."""
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith(name)) / 1024


def run(local, size):
    """Returns the program's commits."""
    program, said = (os.path.join(local.home, name) for name in ("program.py", "said"))
    with open(program, "w") as f:
        f.write(PROGRAM)
    job = local.post(
        "/jobs",
        {
            "script": "#!/bin/sh\nexec python3 %s %s %d %d %d\n"
            % (program, said, FILES, size, ROUNDS),
            "cwd": "/",
            "checkpoint": {"method": "coop", "every_ms": 86400000, "keep": 1},
        },
    )["id"]
    while not os.path.exists(said):
        if local.get("/jobs/%d" % job)["job"]["state"] == "ended":
            raise SystemExit("bench: the job of commit ended: %s" % local.belay("logs", str(job)))
        local.get("/events?after=%d&wait_ms=500" % (1 << 40))  # nothing to wait on
    with open(said) as f:
        took = json.load(f)
    if not all(one["ok"] for one in took):
        raise SystemExit("bench: a commit failed: %s" % local.belay("logs", str(job)))
    return job, took


def bench(local, say):
    agent = local.pid("agent.pid")
    for size in SIZES:
        before = memory(agent, "VmRSS")
        with open("/proc/%d/clear_refs" % agent, "w") as f:
            f.write("5")  # VmHWM begins anew
        job, took = run(local, size)
        ended = time.monotonic()
        peak = memory(agent, "VmHWM")
        at_once, waits = (
            [(one["returned"], one["durable"]) for one in took if one["wait"] is wait]
            for wait in (False, True)
        )
        for what, place in (("program waits", 0), ("durable after", 1)):
            ratios = sorted(a[place] / b[place] for a, b in zip(at_once, waits))
            say(
                "%d files of %d B, %s" % (FILES, size, what),
                "%.2f s" % statistics.median(a[place] for a in at_once),
                "with --wait %.2f s" % statistics.median(b[place] for b in waits),
                "%.2f x, median of %s"
                % (statistics.median(ratios), ", ".join("%.2f" % r for r in ratios)),
            )
        soon = memory(agent, "VmRSS")
        time.sleep(max(0, ended + GIVEN_BACK_S - time.monotonic()))
        say(
            "  the agent's memory %d s after the last" % GIVEN_BACK_S,
            "%.0f MiB" % memory(agent, "VmRSS"),
            "before %.0f, at most %.0f, at once after %.0f MiB" % (before, peak, soon),
        )
        local.belay("cancel", str(job))
        local.until_empty()
        os.unlink(os.path.join(local.home, "said"))
