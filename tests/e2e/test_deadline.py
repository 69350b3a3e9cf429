# SPDX-License-Identifier: Apache-2.0
"""A real job with a deadline, in a cloud that follows a recorded market at 600 times its speed: it
finishes in time, on spot and on-demand in turn, and costs what `belay simulate` computes.

    test_deadline.py own         a market of examples/simulate
    test_deadline.py recorded    one of ../shared/traces, or of BELAY_TRACES; without: skipped (77)

belay simulate gets belayd's own configuration and database, and the same market from the same
moment on, at the same speed. Boot and start times are set to those measured in that run, because
they cannot be known before.
"""

import datetime
import json
import math
import os
import re
import sys

from lab import HERE, WAIT_S, Lab

SPEED = 600
SKIPPED = 77
WORK_S, WITHIN_S = 48, 96  # of eight hours, within sixteen
NOTICE_S = 2
# Of the cost. On a busy machine one boot more or less is a tenth of this short run. This finds a
# wrong price, a machine too many, or waiting that is paid for.
OFF_BY = 0.25

ROOT = os.path.join(HERE, "..", "..")
TRACES = os.environ.get("BELAY_TRACES") or os.path.join(ROOT, "..", "shared", "traces")
# A file, its zone and type in this test, the spot price if the file has none, and the tick at which
# the job comes: spot disappears for long, returns, is reclaimed, and returns again. A boot time of
# a second or two makes little difference there to the result of belay simulate.
MARKETS = {
    "own": (
        ROOT + "/examples/simulate/traces/us-east-1c_g5.xlarge.json",
        "us-east-1c",
        "g5.xlarge",
        None,
        5343,
    ),
    "recorded": (
        TRACES + "/availability/1-node/aws-10-26-2022/us-west-2b_v100_1.json",
        "us-east-1a",
        "p3.2xlarge",
        1.02,
        312,
    ),
}
LEAD_S = 8  # before that, for belayd to start; if it takes longer, the job comes later
# Intervals that are seconds and minutes at normal speed.
FAST = {
    "idle_timeout": "1500ms",
    "cooldown": "500ms",
    "refusal_backoff": "17ms",
    "boot_timeout": "6s",
    "return_after": "1s",
}
DEADLINES = {"look": "100ms", "step": "1s", "work_margin": 20}


class Market(Lab):
    def __init__(self, name):
        path, self.zone, self.type, usd, tick = MARKETS[name]
        with open(path) as f:
            self.trace = json.load(f)
        self.trace.setdefault("prices", [usd] * len(self.trace["data"]))
        self.gap_s = self.trace["metadata"]["gap_seconds"] / SPEED
        lead = math.ceil(LEAD_S / self.gap_s)
        self.lead_s, self.offset = lead * self.gap_s, tick - lead
        spot = {"trace": "trace.json", "speed": SPEED, "offset": self.offset}
        super().__init__(
            cloud={
                "notice_s": NOTICE_S,
                "pools": [{"zone": self.zone, "type": self.type, "spot": spot, "on_demand": {}}],
            },
            pool={"zones": [self.zone], "types": [self.type], **FAST},
            belayd={"deadlines": DEADLINES, "price_every": "200ms"},
        )

    def start(self):
        self.write("trace.json", self.trace)
        super().start()

    def since_start_s(self, state):
        return (state["now_ms"] - state["start_ms"]) / 1000

    def simulate(self, submitted_s, *more):
        """The result of belay simulate for all jobs so far. submitted_s: when the first came, after
        the start of the cloud."""
        from_s = self.offset * self.gap_s + submitted_s
        self.write("fast.json", {**self.trace, "metadata": {"gap_seconds": self.gap_s}})
        said = self.belay(
            "simulate",
            "--json",
            "--pools",
            self.config,
            "--jobs",
            os.path.join(self.home, "belay.db"),
            "--trace",
            "%s=%s/fast.json" % (self.zone, self.dir),
            "--trace-from",
            ms(from_s),
            "--notice",
            "%ds" % NOTICE_S,
            *more
        )
        return json.loads(said)["simulations"][0]


def at(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def ms(seconds):
    return "%dms" % max(1, round(1000 * seconds))


def mean(numbers):
    return sum(numbers) / len(numbers)


def between(events, one, other):
    """The times from each event of one kind to the next of the other kind."""
    times = [(at(e["at"]), e["kind"]) for e in events if e["kind"] in (one, other)]
    return [
        b - a
        for (a, first), (b, second) in zip(times, times[1:])
        if (first, second) == (one, other)
    ]


def expected_of(l, job):
    """The output of belay show, once it has the expected text: not while its machine is being
    reclaimed."""
    shown = l.belay("show", str(job))
    return (
        shown
        if re.search(
            r"(?m)^expected      done \S+ \S+ \(95th percentile: \S+ \S+\), for \$\d\S* more$",
            shown,
        )
        else None
    )


def check(name):
    with Market(name) as l:
        state = l.wait_cloud(lambda s: l.since_start_s(s) >= l.lead_s, "the end of spot")
        job = l.submit(
            "paced.py",
            WORK_S,
            method="coop",
            every_ms=1000,
            gpus=1,
            work_ms=WORK_S * 1000,
            finish_by_ms=state["now_ms"] + WITHIN_S * 1000,
        )
        l.wait_event(job, "restored")
        shown = l.wait(lambda: expected_of(l, job), "what is expected of job %d" % job)
        assert re.search(
            r"(?m)^finish by     \S+ \S+, now (wait|spot|on-demand)$", shown
        ) and re.search(r"(?m)^              (it|on-demand|only) \S", shown), shown
        shown = l.wait_ended(job, timeout_s=WITHIN_S + WAIT_S)["job"]
        l.wait(lambda: not l.get("/instances")["instances"], "the end of all machines")
        events, attempts, machines = (
            l.events(job),
            l.show(job)["attempts"],
            l.get("/instances?state=all")["instances"],
        )
        print(
            name,
            *(
                "%7.2f %-9s %s" % (at(e["at"]) - at(shown["submitted_at"]), e["kind"], e["text"])
                for e in events
                if e["kind"] != "saved"
            ),
            sep="\n"
        )

        joined = [m for m in machines if m["joined_at"]]
        markets = [next(m["market"] for m in joined if m["node"] == a["node"]) for a in attempts]
        boots = [at(m["joined_at"]) - at(m["intended_at"]) for m in joined]
        said = l.simulate(
            at(shown["submitted_at"]) - state["start_ms"] / 1000,
            "--answer",
            "10ms",
            "--boot",
            ms(mean(boots) - 0.01),
            "--gone",
            "500ms",
            "--save",
            "10ms",
            "--restore",
            ms(mean(between(events, "placed", "started"))),
        )
        spare_s = at(shown["finish_by"]) - at(shown["ended_at"])
        ratio = shown["cost_uusd"] / said["all"]["cost_uusd"]
        print(
            "%s: on %s; %d reclaims; boots %s; done %.1f s before it had to be; $%.6f, simulated $%.6f: %.3f; machines $%.6f simulated, %d reclaims"
            % (
                name,
                ", ".join(markets),
                shown["reclaims"],
                " ".join("%.1f" % b for b in boots),
                spare_s,
                shown["cost_uusd"] / 1e6,
                said["all"]["cost_uusd"] / 1e6,
                ratio,
                said["cost_uusd"] / 1e6,
                said["reclaims"],
            )
        )

        assert shown["end"] == "succeeded" and spare_s >= 0, (shown["end"], spare_s)
        assert {"spot", "on-demand"} == set(markets), markets
        assert shown["reclaims"] >= 1 and all(
            a["restored"] for a in attempts[1:] if a["started_at"]
        ), attempts
        assert (
            said["all"]["late"] == 0
            and said["all"]["reclaims"] >= 1
            and min(said["cost_uusd_by_market"][m] for m in ("spot", "on_demand")) > 0
        ), said
        assert 1 - OFF_BY <= ratio <= 1 + OFF_BY, ratio


def main():
    name = sys.argv[1]
    if not os.path.exists(MARKETS[name][0]):
        print("SKIP: there is no %s" % MARKETS[name][0])
        return SKIPPED
    check(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
