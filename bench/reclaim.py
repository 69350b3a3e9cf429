# SPDX-License-Identifier: Apache-2.0
"""The parts of a restart after a reclaim, on real processes: what `belay show` prints, beside the
delays that the emulator was told to make. What is above them is belay's own.

`detect` is not in `belay show`, for belayd cannot know it: from the machine's end to belayd's
ending the attempt.
"""

import datetime
import statistics

import lab

ROUNDS = 5  # of each kind
LAUNCH_MS, BOOT_MS, START_MS = 300, 1500, 700
BULK = 64 << 20  # bytes of a checkpoint
FRESH, SHARED = (BULK, 0), (0, BULK)  # no two checkpoints share any; all share all but one file
NOTICE_S = 15
RESERVE = "2s"
PARTS = ("wait", "launch", "boot", "agent", "place", "prepare", "restore", "warm_up")
WHOSE = {
    "detect": "belayd: its lease, sweep and the node's silence",
    "wait": "belayd: the decision",
    "launch": "belayd's call until the provider's launch time",
    "boot": "provider: %d + %d ms" % (BOOT_MS, START_MS),
    "agent": "belay: boot script, agent's start, join",
    "place": "belayd: the decision",
    "prepare": "belay: order to the agent, directory, supervisor",
    "restore": "belay: %d MiB from the store" % (BULK >> 20),
    "warm_up": "program, and the agent's reading of its progress",
}


def bench(say):
    notice = {"notice_s": NOTICE_S}
    bench_with(say, {}, "without notice", {"without_notice": True})
    bench_with(say, {}, "notice of %d s" % NOTICE_S, notice)
    what = "the same, notice_reserve %s" % RESERVE
    bench_with(say, {"notice_reserve": RESERVE}, what, notice)
    what += ", prefetched"
    bench_with(say, {"notice_reserve": RESERVE}, what, notice, SHARED)


def bench_with(say, pool, what, how, bulk=FRESH):
    cloud = {"launch_delay_ms": LAUNCH_MS, "boot_delay_ms": BOOT_MS, "start_delay_ms": START_MS}
    with lab.Lab(cloud=cloud, pool=pool) as l:
        job = l.submit(
            "chain.py", 1000000, 0.02, *bulk, method="coop", every_ms=3000, market="spot"
        )
        l.wait_event(job, "saved")
        print_parts(say, what, [reclaim(l, job, how) for _ in range(ROUNDS)])
        l.post("/jobs/%d/cancel" % job)
        l.wait_ended(job)


def reclaim(l, job, how):
    """Returns the parts of the restart that follows, in ms."""
    saves = len([e for e in l.events(job) if e["kind"] == "saved"])
    l.wait_event(job, "saved", saves + 1)
    old, n = l.instance_of(job), l.job(job)["attempts"] + 1
    l.cloud({"reclaim": {"instance": old, **how}})
    restart = l.wait(lambda: restart_of(l, job, n), "the program computes again")
    gone = l.wait(lambda: l.emulated(old)["gone_ms"], "the machine is gone")
    parts = {name: restart[name + "_ms"] for name in PARTS}
    parts["detect"] = max(0, wall_ms(restart["stopped_at"]) - gone)
    return parts


def wall_ms(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000


def restart_of(l, job, attempt):
    for a in l.show(job)["attempts"]:
        if a["attempt"] == attempt and a["restart"] and a["restart"]["warm_up_ms"]:
            return a["restart"]
    return None


def print_parts(say, what, rounds):
    say("a restart, %s: %d real" % (what, len(rounds)), "median   max", "whose it is")
    for name in ("detect",) + PARTS:
        ms = [parts[name] for parts in rounds]
        say("  " + name, "%d   %d ms" % (statistics.median(ms), max(ms)), WHOSE[name])
    ms = [sum(parts.values()) for parts in rounds]
    own = [total - own_of_others(parts) for total, parts in zip(ms, rounds)]
    say(
        "  from the stop to computing again",
        "%d   %d ms" % (statistics.median(ms), max(ms)),
        "of it belay's: median %d, max %d ms" % (statistics.median(own), max(own)),
        "%.2f" % (sum(own) / sum(ms)),
    )


def own_of_others(parts):
    """The provider's part of the boot."""
    return min(parts["boot"], BOOT_MS + START_MS)
