# SPDX-License-Identifier: Apache-2.0
"""Jobs that run jobs/walker.c, and checks after their end: each ended once, with the output of an
undisturbed run; no attempt resumed from an older state than the last acknowledged one; acknowledged
checkpoints are in the store."""

import os
import re
import sys

from lab import JOBS

sys.path.insert(0, JOBS)
from ring import undisturbed  # noqa: E402

WALKER = os.environ["BELAY_WALKER"]


def ref(checkpoint):
    return (checkpoint["attempt"], checkpoint["sequence"]) if checkpoint else (0, 0)


def newest_before(acknowledged, attempt):
    return max([c for c in acknowledged if c[0] < attempt], default=(0, 0))


class Walk:
    """A job that runs the walker; with a gate, it waits after the last step until a file of that
    name exists."""

    def __init__(self, method, steps, pause_ms, size, every_ms, gate=None):
        self.method, self.steps, self.pause_ms, self.bytes, self.every_ms = (
            method,
            steps,
            pause_ms,
            size,
            every_ms,
        )
        self.gate = [gate] if gate else []
        self.id = None

    @classmethod
    def by_chance(cls, choose):
        method = choose.choice(["coop", "coop", "coop", "signal", "none"])
        steps = choose.randrange(20, 50) if method == "none" else choose.randrange(80, 300)
        size = choose.choice([100, 100, 70000, 2000000])
        return cls(
            method, steps, 30, size, choose.choice([1000, 2000]) if method == "coop" else 3600000
        )

    def submit(self, lab):
        self.id = lab.submit(
            WALKER,
            self.method,
            self.steps,
            self.pause_ms,
            self.bytes,
            *self.gate,
            every_ms=self.every_ms,
            method=self.method,
            keep=1000
        )

    def expected(self):
        """The lines of an undisturbed run."""
        lines, x = [], 1
        for step in range(1, self.steps + 1):
            x = (x * 6364136223846793005 + 1442695040888963407) % 2**64
            lines.append("step %d %016x" % (step, x))
        return lines + ["end %016x" % x]

    def check(self, lab):
        """The violations found, as text."""
        shown = lab.show(self.id)
        attempts, row = shown["attempts"], shown["job"]
        ends = [a["end"] for a in attempts]
        events = lab.events(self.id)
        if (row["state"], row["end"], row["exit_code"]) != ("ended", "succeeded", 0):
            yield "it ended as %s, %s, exit code %s: %s" % (
                row["state"],
                row["end"],
                row["exit_code"],
                ends,
            )
            return
        if [a["attempt"] for a in attempts] != list(range(1, len(attempts) + 1)):
            yield "its attempts are %s" % [a["attempt"] for a in attempts]
        if ends.count("succeeded") != 1 or ends[-1] != "succeeded":
            yield "its attempts ended as %s" % ends
        if not set(ends[:-1]) <= {"node-lost", "reclaimed", "checkpointed"}:
            yield "its attempts ended as %s" % ends
        ended = [e for e in events if e["kind"] == "ended"]
        requeued = [e for e in events if e["kind"] == "requeued"]
        if len(ended) != len(attempts) or len(requeued) != len(attempts) - 1:
            yield "%d attempts, %d ends, %d times queued again" % (
                len(attempts),
                len(ended),
                len(requeued),
            )
        if any(e["kind"] == "damaged" for e in events):
            yield "a checkpoint was damaged"
        yield from self.check_log(lab, attempts)
        yield from self.check_checkpoints(lab, shown)

    def check_log(self, lab, attempts):
        """Every attempt's output is a prefix of the expected one, the last attempt's is complete,
        and no work reported as durable is repeated.
        """
        expected, durable = self.expected(), 0
        pieces = re.split(
            r"^---- belay: attempt (\d+) on (.*) ----\n", lab.log(self.id), flags=re.M
        )
        output = {1: pieces[0]}
        output.update({int(pieces[n]): pieces[n + 2] for n in range(1, len(pieces), 3)})
        for a in attempts:
            text = output.get(a["attempt"], "")
            lines = text.split("\n")[:-1]  # the last line may be cut off
            first = re.fullmatch(r"from (\d+)", lines[0]) if lines else None
            if not lines and a["end"] != "succeeded":
                continue
            if not first:
                yield "attempt %d's output begins with %r" % (a["attempt"], text[:80])
                return
            start = int(first.group(1))
            if not a["started_at"]:
                start_known = True  # lost before belayd learned of its start; its output came later
            elif self.method == "signal":
                start_known = start >= (
                    a["restored_progress"] or 0
                )  # belay learns its steps only periodically
            else:
                start_known = start == (a["restored_progress"] or 0)
            if not start_known:
                yield "attempt %d began at step %d, but belay knows of %s" % (
                    a["attempt"],
                    start,
                    a["restored_progress"],
                )
            if start < durable:
                yield "attempt %d began at step %d, after %d was acknowledged" % (
                    a["attempt"],
                    start,
                    durable,
                )
            steps = [line for line in lines[1:] if line.startswith(("step ", "end "))]
            if steps != expected[start : start + len(steps)]:
                yield "attempt %d's output is not what it should be" % a["attempt"]
            durable = max(
                [durable]
                + [int(line.split()[1]) for line in lines if line.startswith("committed ")]
            )
        if output.get(attempts[-1]["attempt"], "").rstrip("\n").split("\n")[-1] != expected[-1]:
            yield "its result is not %r" % expected[-1]

    def check_checkpoints(self, lab, shown):
        acknowledged, stored = {ref(c) for c in shown["checkpoints"]}, set(lab.manifests(self.id))
        if not acknowledged <= stored:
            yield "acknowledged but not in the store: %s" % sorted(acknowledged - stored)
        last = (0, 0)
        for a in shown["attempts"]:
            restored = ref(a["restored"])
            if not a["started_at"]:
                continue
            least = max(newest_before(acknowledged, a["attempt"]), last)
            if restored < least:
                yield "attempt %d resumed from %s, older than %s" % (a["attempt"], restored, least)
            if restored != (0, 0) and restored not in stored:
                yield "attempt %d resumed from %s, which the store does not have" % (
                    a["attempt"],
                    restored,
                )
            last = restored


class RingWalk:
    """A job on several nodes that runs ring.py: each rank's result is that of an undisturbed run,
    and all ranks of an attempt resumed from one checkpoint, which is no older than the last
    acknowledged one."""

    method = "gang"

    def __init__(self, nodes, steps, every_ms):
        self.nodes, self.steps, self.every_ms = nodes, steps, every_ms
        self.id = None

    @classmethod
    def by_chance(cls, choose):
        return cls(choose.choice([2, 2, 3]), choose.randrange(40, 150), choose.choice([1000, 2000]))

    def submit(self, lab):
        self.id = lab.submit(
            "ring.py",
            self.steps,
            0.03,
            method="coop",
            every_ms=self.every_ms,
            keep=1000,
            nodes=self.nodes,
            env={"RING_DIR": lab.dir},
        )

    def check(self, lab):
        """The violations found, as text."""
        shown = lab.show(self.id)
        row, attempts = shown["job"], {}
        for a in shown["attempts"]:
            attempts.setdefault(a["attempt"], []).append(a)
        ends = [[a["end"] for a in ranks] for ranks in attempts.values()]
        if (row["state"], row["end"], row["exit_code"]) != ("ended", "succeeded", 0):
            yield "it ended as %s, %s, exit code %s: %s" % (
                row["state"],
                row["end"],
                row["exit_code"],
                ends,
            )
            return
        if set(ends[-1]) != {"succeeded"} or any(set(e) == {"succeeded"} for e in ends[:-1]):
            yield "its attempts ended as %s" % ends
        for ranks in attempts.values():
            if [a["rank"] for a in ranks] != list(range(self.nodes)):
                yield "attempt %d has the ranks %s" % (
                    ranks[0]["attempt"],
                    [a["rank"] for a in ranks],
                )
        for rank, value in enumerate(undisturbed(self.steps, self.nodes)):
            text = lab.belay("logs", "--rank", str(rank), str(self.id))
            if text.rstrip("\n").split("\n")[-1] != "ring %s" % value:
                yield "rank %d's result is not %r but %r" % (rank, value, text[-80:])
        yield from self.check_checkpoints(lab, shown, attempts)

    def check_checkpoints(self, lab, shown, attempts):
        acknowledged, stored = {ref(c) for c in shown["checkpoints"]}, set(lab.manifests(self.id))
        if not acknowledged <= stored:
            yield "acknowledged but not in the store: %s" % sorted(acknowledged - stored)
        last = (0, 0)
        for number, ranks in sorted(attempts.items()):
            restored = {ref(a["restored"]) for a in ranks if a["started_at"]}
            least = max(newest_before(acknowledged, number), last)
            if len(restored) > 1:
                yield "the ranks of attempt %d resumed from %s" % (number, sorted(restored))
            for r in restored:
                if r < least:
                    yield "attempt %d resumed from %s, older than %s" % (number, r, least)
                last = max(last, r)
