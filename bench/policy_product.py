# SPDX-License-Identifier: Apache-2.0
"""What jobs with a deadline cost in the product: logs of jobs through `belay simulate`.

scripts/bench policy judges the decision alone, among zones whose state is known. Here the whole
core decides, as in belayd: an offer's state is known only from the launches that were tried, a
machine boots, a job restores, and waits for its saves.

    scripts/bench policy --product [--windows N] [--zones N,...] [--slack S,...]
        [--limit saves|work] [--history 2022|none] [--boots varied|constant] [--hindsight]
        [--keep DIR]

A cell is a number of zones and a slack; in each of its windows a log of 60 jobs runs once under
each policy. The windows differ in their zones and in their part of the trace. --keep keeps the
inputs in DIR, and prints the command of each run.

A job takes HOURS on an on-demand machine, with the waits for its saves; its slack is the time from
submit to deadline relative to that. Its time limit is that time as well: it counts the saves, as
belayd does. With --limit work it is the work alone, so that only measured saves can tell that the
job takes longer.

belayd has observed spot in another year before the log (--observed), learned from that, and learns
during the log from its own launches; with --history none it starts with its built-in expectation of
a market, as a new installation does. Boots vary, so that belayd has to estimate the worst one from
those that it has seen; with --boots constant all take the median.

Beside each cell stands the optimum's own figure: what the jobs would have cost, each alone, if the
future was known (bench/product_best.c). With --hindsight another one does: belay's cost if it has
observed the judged traces themselves before the log. That bounds what better learning could gain,
the classes of the table being what they are.
"""

import argparse
import concurrent.futures
import glob
import json
import os
import random
import subprocess
import sys
import tempfile

FOLDER = "availability/1-node/aws-02-15-2023"
OBSERVED_FOLDER = "availability/1-node/aws-10-26-2022"
TYPE, USD_H, SPOT_USD_H = "p3.2xlarge", 3.06, 0.612
JOBS = 60
HOURS = 24
MIXED_HOURS = (4, 48)
GAP_S = 12 * 3600  # between submits, so that a log lasts a month, as the traces
SAVE_S, RESTORE_S, NOTICE_S = 120, 30, 120
BOOT_S, BOOT_P95_S = 120, 300  # median, and what one boot in 20 exceeds
SAVE_EVERY_S = 1800  # belay's choice with no or few reclaims (lifecycle/save_interval.c)
START_S = 1767225600  # 2026-01-01, the first submit

ZONES = (1, 2, 4, 9)
SLACKS = (1.04, 1.08, 1.17, 1.3, 1.6)
MIXED = "mixed"
WINDOWS = 3
LIMIT_SAVES, LIMIT_WORK = "saves", "work"
HISTORY_2022, HISTORY_NONE, HISTORY_JUDGED = "2022", "none", "judged"
BOOTS_VARIED, BOOTS_CONSTANT = "varied", "constant"

OURS, ALONE = "belay", "on-dem"
# The name in the table: the value of `deadlines: {policy: ...}`.
POLICIES = {
    OURS: "planned",
    "UP": "uniform",
    "UP+h": "uniform-sticky",
    "UP-h": "uniform-plain",
    "UC": "rc-cr-threshold",
    "UC-h": "rc-cr-threshold-no-condition2",
    "greedy": "greedy",
    ALONE: "on-demand",
}


class NoTraces(Exception):
    pass


def traces(top):
    """zone -> its trace, for the zones of the folder."""
    found = {
        os.path.basename(path).split("_")[0]: path
        for path in sorted(glob.glob(os.path.join(top, FOLDER, "*.json")))
    }
    if len(found) < max(ZONES):
        raise NoTraces(
            "policy --product: no traces in %s; BELAY_TRACES names the directory that holds %s"
            % (top, FOLDER)
        )
    return found


def observed(top):
    """The traces of another year; its nearest type first, for there are not nine of one."""
    return [
        os.path.join(top, OBSERVED_FOLDER, "us-west-2%s_%s.json" % (zone, kind))
        for kind in ("v100_1", "v100_8", "k80_1", "k80_8")
        for zone in "ab"
    ]


# ---- inputs ----


def pools_text(zones, policy):
    regions = {}
    for zone in zones:
        regions.setdefault(zone[:-1], []).append(zone)
    lines = ["pools:"]
    for region, of in regions.items():
        lines.append(
            "  %s: {provider: aws, region: %s, zones: [%s], markets: [spot, on-demand],"
            " types: [{type: %s, usd_per_hour: %g, spot_usd_per_hour: %g}],"
            " max_nodes: 200, image: ami-0123456789abcdef0}"
            % (region, region, ", ".join(of), TYPE, USD_H, SPOT_USD_H)
        )
    return "\n".join(lines + ["deadlines: {policy: %s}" % policy]) + "\n"


def jobs_of(slack, seed):
    """Of each job of a log: its submit after the first moment, its time on an on-demand machine,
    its work, and its time to the deadline, in seconds."""
    rng = random.Random(seed)
    for i in range(JOBS):
        takes_s, of = HOURS * 3600, slack
        at = i * GAP_S
        if slack == MIXED:
            low, high = MIXED_HOURS
            takes_s = int(3600 * low * (high / low) ** rng.random())
            of = rng.choice(SLACKS)
            at += rng.randrange(GAP_S)
        yield at, takes_s, takes_s * SAVE_EVERY_S // (SAVE_EVERY_S + SAVE_S), int(takes_s * of)


def jobs_text(slack, seed, limit):
    lines = ["submit,run,finish_by,time_limit,cpus,gpus,memory"]
    for at, takes_s, work_s, within_s in jobs_of(slack, seed):
        at += START_S
        limit_s = {LIMIT_SAVES: takes_s, LIMIT_WORK: work_s}[limit]
        lines.append("%d,%d,%d,%d,8,1,60G" % (at, work_s, at + within_s, limit_s))
    return "\n".join(lines) + "\n"


class Window:
    """A log on some zones, from some moment of the traces."""

    def __init__(
        self,
        belay,
        top,
        n_zones,
        slack,
        i,
        n,
        limit=LIMIT_SAVES,
        history=HISTORY_2022,
        boots=BOOTS_VARIED,
    ):
        self.traces = traces(top)
        names = sorted(self.traces)
        with open(self.traces[names[0]]) as f:
            trace = json.load(f)
        first = i * len(names) // n
        self.zones = [names[(first + k) % len(names)] for k in range(n_zones)]
        self.slack = slack
        self.limit = limit
        self.from_s = len(trace["data"]) * i // n * trace["metadata"]["gap_seconds"]
        self.seed = i
        self.belay = belay
        self.folder = os.path.join(top, FOLDER)
        self.market = ["--trace", self.folder, "--trace-from", "%ds" % self.from_s]
        self.market += ["--boot", "%ds" % BOOT_S, "--restore", "%ds" % RESTORE_S]
        self.market += ["--notice", "%ds" % NOTICE_S]
        if boots == BOOTS_VARIED:
            self.market += ["--boot-tail", "%ds" % BOOT_P95_S]
        before = {
            HISTORY_2022: observed(top),
            HISTORY_JUDGED: [self.traces[zone] for zone in self.zones],
        }
        for zone, path in zip(self.zones, before.get(history, ())):
            self.market += ["--observed", "%s=%s" % (zone, path)]

    def run(self, policy, directory):
        """The simulation's results, and its command."""
        stem = os.path.join(directory, "%d-%s-%d" % (len(self.zones), self.slack, self.seed))
        pools, jobs = "%s-%s.yaml" % (stem, policy), "%s-%s.csv" % (stem, policy)
        with open(pools, "w") as f:
            f.write(pools_text(self.zones, POLICIES[policy]))
        with open(jobs, "w") as f:
            f.write(jobs_text(self.slack, self.seed, self.limit))
        words = [self.belay, "simulate", "--json", "--pools", pools, "--jobs", jobs]
        words += [*self.market, "--save", "%ds" % SAVE_S]
        done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise SystemExit("%s: %s" % (" ".join(words), done.stderr))
        return json.loads(done.stdout)["simulations"][0], " ".join(words)

    def optimum_uusd(self, program):
        """What the jobs would have cost, each alone, if the future was known: a lower bound."""
        words = [BOOT_S, RESTORE_S, NOTICE_S, SPOT_USD_H / USD_H, self.from_s]
        jobs = "".join(
            "%d %d %d\n" % (at, work_s + (work_s - 1) // SAVE_EVERY_S * SAVE_S, within_s)
            for at, _, work_s, within_s in jobs_of(self.slack, self.seed)
        )
        done = subprocess.run(
            [program, *map(str, words), *(self.traces[zone] for zone in self.zones)],
            input=jobs,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise SystemExit("%s: %s" % (program, done.stderr or "a deadline is infeasible"))
        return float(done.stdout) / 3600 * USD_H * 1e6


# ---- results ----


class Cell:
    """Sums of one policy over the windows of a cell."""

    def __init__(self, runs):
        def total(path):
            values = runs
            for key in path.split("."):
                values = [value[key] for value in values]
            return sum(values)

        self.jobs = total("all.jobs")
        self.uusd = total("cost_uusd")
        self.late = total("all.late")
        self.late_ms = total("all.late_ms")
        self.restarts = total("all.attempts") / self.jobs - 1
        self.hours = {
            kind: total("time_ms." + kind) / 3.6e6 / self.jobs
            for kind in ("boot", "restore", "save", "lost", "idle")
        }
        if total("all.ended") != self.jobs:
            raise SystemExit("policy --product: %d jobs have not ended" % self.jobs)


def cheapest(cells):
    return min((name for name in cells if name != OURS), key=lambda name: cells[name].uusd)


def ratio(cells):
    return cells[OURS].uusd / cells[cheapest(cells)].uusd


HEAD = "%-5s %-5s" % ("zones", "slack")


def head():
    return "%s %s | %s | %-6s %6s %6s | %7s %6s | %s" % (
        HEAD,
        " ".join("%6s" % name for name in POLICIES if name != ALONE),
        " ".join("%6s" % name for name in POLICIES),
        "least",
        "ratio",
        "hindsg",
        "optimum",
        "ratio",
        "restarts boot restore save lost, h a job",
    )


def row(n_zones, slack, cells, optimum_uusd, hindsight):
    ours = cells[OURS]
    return "%-5s %-5s %s | %s | %-6s %6.3f %6s | %7.2f %6.3f | %8.2f %s" % (
        n_zones,
        slack,
        " ".join(
            "%6.2f" % (100 * cells[name].uusd / cells[ALONE].uusd)
            for name in POLICIES
            if name != ALONE
        ),
        " ".join("%6d" % cells[name].late for name in POLICIES),
        cheapest(cells),
        ratio(cells),
        "%.3f" % (hindsight.uusd / cells[cheapest(cells)].uusd) if hindsight else "-",
        100 * optimum_uusd / cells[ALONE].uusd,
        ours.uusd / optimum_uusd,
        ours.restarts,
        " ".join(
            "%*.2f" % (len(kind), ours.hours[kind]) for kind in ("boot", "restore", "save", "lost")
        ),
    )


def judge(belay, optimum, top, o, directory, progress, on_cell):
    """Runs the cells of options(); calls on_cell(zones, slack, policy -> Cell, cost of the optimum,
    Cell in hindsight or None) in their order. optimum: bench_product_best."""
    wanted = [(n, slack) for n in o.zones for slack in o.slack]

    def windows_after(history):
        return {
            (n, slack): [
                Window(belay, top, n, slack, i, o.windows, o.limit, history, o.boots)
                for i in range(o.windows)
            ]
            for n, slack in wanted
        }

    windows = windows_after(o.history)
    judged = windows_after(HISTORY_JUDGED) if o.hindsight else {}
    apart = os.path.join(directory, HISTORY_JUDGED)  # its inputs have the same names
    os.makedirs(apart, exist_ok=True)
    done = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs, optima, hindsight = {}, {}, {}
        for of, logs in windows.items():
            for policy in POLICIES:
                runs[*of, policy] = [pool.submit(log.run, policy, directory) for log in logs]
            optima[of] = [pool.submit(log.optimum_uusd, optimum) for log in logs]
            hindsight[of] = [pool.submit(log.run, OURS, apart) for log in judged.get(of, ())]
        try:
            for n, slack in wanted:
                cells = {}
                for policy in POLICIES:
                    results = [run.result() for run in runs[n, slack, policy]]
                    done += len(results)
                    progress(done, len(wanted) * len(POLICIES) * o.windows, results)
                    cells[policy] = Cell([result for result, _ in results])
                least = sum(run.result() for run in optima[n, slack])
                known = [run.result()[0] for run in hindsight[n, slack]]
                on_cell(n, slack, cells, least, Cell(known) if known else None)
        finally:
            pool.shutdown(cancel_futures=True)


def some_of(*allowed):
    """The type of an option that chooses some of these."""

    def chosen(text):
        words = text.split(",")
        if not set(words) <= set(map(str, allowed)):
            raise argparse.ArgumentTypeError(
                'expected some of %s, found "%s"' % (",".join(map(str, allowed)), text)
            )
        return [one for one in allowed if str(one) in words]

    return chosen


def options(words):
    parser = argparse.ArgumentParser(prog="scripts/bench policy --product")
    parser.add_argument("--windows", type=int, default=WINDOWS)
    parser.add_argument("--zones", type=some_of(*ZONES), default=ZONES)
    parser.add_argument("--slack", type=some_of(*SLACKS, MIXED), default=(*SLACKS, MIXED))
    parser.add_argument("--limit", choices=[LIMIT_SAVES, LIMIT_WORK], default=LIMIT_SAVES)
    parser.add_argument("--history", choices=[HISTORY_2022, HISTORY_NONE], default=HISTORY_2022)
    parser.add_argument("--boots", choices=[BOOTS_VARIED, BOOTS_CONSTANT], default=BOOTS_VARIED)
    parser.add_argument("--hindsight", action="store_true")
    parser.add_argument("--keep", metavar="DIR")
    found = parser.parse_args(words)
    if found.windows < 1:
        parser.error("--windows: expected 1 or more")
    return found


def bench(belay, optimum, top, words):
    o = options(words)
    ratios, to_optimum, late = [], [], {policy: 0 for policy in POLICIES}
    in_hindsight = []

    def progress(done, of, results):
        if o.keep:
            for _, command in results:
                print("    " + command)
        if sys.stderr.isatty():
            print("\r%d of %d simulations" % (done, of), end="\r", file=sys.stderr, flush=True)

    def on_cell(n, slack, cells, optimum_uusd, hindsight):
        print(row(n, slack, cells, optimum_uusd, hindsight), flush=True)
        ratios.append(ratio(cells))
        to_optimum.append(cells[OURS].uusd / optimum_uusd)
        if hindsight:
            in_hindsight.append(hindsight.uusd / cells[cheapest(cells)].uusd)
        for policy in POLICIES:
            late[policy] += cells[policy].late

    try:
        traces(top)
    except NoTraces as e:
        print(e)
        return
    print(
        "Cost in %% of on-demand only; late jobs; the cheapest reference, and belay's cost relative"
        " to it, and if it has learned from the judged traces; the optimum, and belay's cost relative to that; of belay: restarts, and hours a job"
        " of boot, restore, saves and lost work.\n"
        "%d windows of %d jobs a cell. Each job takes %d h on-demand with its saves of %d s; mixed:"
        " %d to %d h, any slack. Its time limit %s the saves.\nBoots take %d s%s. belayd %s, and"
        " learns from its own launches."
        % (
            o.windows,
            JOBS,
            HOURS,
            SAVE_S,
            *MIXED_HOURS,
            "includes" if o.limit == LIMIT_SAVES else "leaves out",
            BOOT_S,
            ", one in 20 more than %d s" % BOOT_P95_S if o.boots == BOOTS_VARIED else "",
            "has observed other traces before, of %s" % o.history
            if o.history != HISTORY_NONE
            else "starts without history",
        )
    )
    print(head(), flush=True)
    with tempfile.TemporaryDirectory(prefix="belay-product-") as scratch:
        if o.keep:
            os.makedirs(o.keep, exist_ok=True)
        judge(belay, optimum, top, o, o.keep or scratch, progress, on_cell)
    print(
        "mean ratio %.3f, greatest %.3f; to the optimum %.3f, greatest %.3f; late: %s"
        % (
            sum(ratios) / len(ratios),
            max(ratios),
            sum(to_optimum) / len(to_optimum),
            max(to_optimum),
            ", ".join("%s %d" % of for of in late.items()),
        )
    )
    if in_hindsight:
        print("learned from the judged traces: mean ratio %.3f" % (sum(in_hindsight) / len(ratios)))
