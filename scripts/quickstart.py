# SPDX-License-Identifier: Apache-2.0
"""The second half of scripts/quickstart: runs the same training twice on an emulated cloud, once on
an on-demand instance and once on spot instances that are reclaimed twice, and compares the two.

Every printed figure comes from belay, from the emulator's bill, or from the output of the two jobs.
"""

import argparse
import datetime
import http.client
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXAMPLE = os.path.join(ROOT, "examples", "fashion-mnist")

NOTICE_S = 10  # AWS gives 120
RECLAIMS_AT = 0.35, 0.75  # part of the steps; the first reclaim has notice, the second has none
TIME_LIMIT_S = 300  # for both jobs together
START_LIMIT_S = 30  # for the emulator

# AWS's zones, types and prices; instances boot faster.
EMULATOR = """\
keys:
  - {access_key: AKIDQUICKSTART, secret_key: %(secret)s}
dir: %(scratch)s/machines
agent_path: %(build)s/agent
boot_delay_ms: 1500
pools:
  - zone: [us-east-1a, us-east-1b]
    type: m6i.xlarge
    spot: {capacity: 4}
    on_demand: {capacity: 4}
"""

BELAYD = """\
cluster: quickstart
listen: 127.0.0.1:0
lease: 5s
sweep: 2s
busy_sweep: 1s
pools:
  cloud:
    provider: aws
    region: us-east-1
    zones: [us-east-1a, us-east-1b]
    types: [m6i.xlarge]
    markets: [spot, on-demand]
    image: ami-quickstart
    endpoint: %(ec2)s
    credentials: %(scratch)s/credentials
    max_nodes: 4
    idle_timeout: 2s
    cooldown: 2s
    paid_minimum: 0s
"""

CREDENTIALS = """\
[default]
aws_access_key_id = AKIDQUICKSTART
aws_secret_access_key = %(secret)s
"""


class Failed(Exception):
    """The demonstration went wrong; the text says how."""


class SocketConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=40)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Lab:
    """belayd and the emulator, in a scratch directory."""

    def __init__(self, build):
        self.build = os.path.abspath(build)
        self.scratch = tempfile.mkdtemp(prefix="belay-quickstart.")
        self.home = os.path.join(self.scratch, "home")
        self.emulator = None
        # Ignore the user's settings for AWS or another belayd.
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "BELAY_"))}
        self.env["BELAY_HOME"] = self.home
        self.words = {"scratch": self.scratch, "build": self.build, "secret": secrets.token_hex(20)}

    def write(self, name, template):
        path = os.path.join(self.scratch, name)
        with open(path, "w", opener=lambda p, flags: os.open(p, flags, 0o600)) as f:
            f.write(template % self.words)
        return path

    def start(self):
        self.write("credentials", CREDENTIALS)
        config, ports = self.write("emulator.yaml", EMULATOR), os.path.join(
            self.scratch, "ports.json"
        )
        with open(os.path.join(self.scratch, "emulator.log"), "w") as log:
            self.emulator = subprocess.Popen(
                [
                    os.path.join(self.build, "emulator/belay-emulator"),
                    "--config",
                    config,
                    "--port-file",
                    ports,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.env,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_LIMIT_S
        while not os.path.exists(ports):
            if self.emulator.poll() is not None or time.monotonic() > deadline:
                raise Failed("the emulator did not start")
            time.sleep(0.02)
        with open(ports) as f:
            endpoints = json.load(f)
        self.words["ec2"], self.control = endpoints["ec2"], endpoints["control"]
        self.belay("up", "--no-agent", "--config", self.write("belay.yaml", BELAYD))

    def belay(self, *arguments):
        """Runs a command of belay and returns its output."""
        done = subprocess.run(
            [os.path.join(self.build, "cli/belay"), *arguments],
            cwd=EXAMPLE,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            universal_newlines=True,
        )
        if done.returncode != 0:
            raise Failed("belay %s: exit code %d" % (" ".join(arguments), done.returncode))
        return done.stdout

    def get(self, path):
        """Returns the reply to a GET of belayd's API, over its UNIX socket."""
        connection = SocketConnection(os.path.join(self.home, "belayd.sock"))
        connection.request("GET", "/api/v1" + path)
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        if reply.status != 200:
            raise Failed("GET %s: %d %s" % (path, reply.status, body.decode(errors="replace")))
        return json.loads(body)

    def cloud(self, path, event=None):
        """Returns the reply of the emulator's control API: to a POST of the event, or to a GET."""
        data = json.dumps(event).encode() if event else None
        with urllib.request.urlopen(self.control + path, data, timeout=10) as reply:
            return json.load(reply)

    def stop(self):
        """Ends everything that start() started; safe at any point."""
        if os.path.exists(os.path.join(self.home, "belayd.json")):
            subprocess.run(
                [os.path.join(self.build, "cli/belay"), "down"],
                env=self.env,
                stdout=subprocess.DEVNULL,
            )
        if self.emulator and self.emulator.poll() is None:
            self.emulator.terminate()
            try:
                self.emulator.wait(20)
            except subprocess.TimeoutExpired:
                self.emulator.kill()
                self.emulator.wait()


class Timeline:
    """Prints events as they happen."""

    # The kinds of belayd's events that help a first-time user, and the words to print for them.
    SHOWN = {
        "launch": "launch",
        "joined": "instance up",
        "started": "started",
        "notice": "NOTICE",
        "saved": "saved",
        "save-failed": "SAVE FAILED",
        "damaged": "DAMAGED",
        "ended": "ended",
        "requeued": "requeued",
        "lost": "LOST",
    }

    def __init__(self, lab):
        self.lab, self.names, self.quiet, self.began, self.last = (
            lab,
            {},
            set(),
            time.monotonic(),
            0,
        )

    def say(self, who, what, text):
        print(
            "%5.1f s  %-9s  %-11s  %s" % (time.monotonic() - self.began, who, what, text),
            flush=True,
        )

    def follow(self, wait_ms):
        page = self.lab.get("/events?after=%d&wait_ms=%d" % (self.last, wait_ms))
        self.last = page["last"]
        for event in page["events"]:
            what = self.SHOWN.get(event["kind"])
            # A notice is recorded for the node and for each attempt on it.
            if what and (event["kind"], event["job"]) not in self.quiet | {("notice", None)}:
                self.say(self.names.get(event["job"], ""), what, event["text"])


def job(lab, number):
    return lab.get("/jobs/%d" % number)


def reclaim_node(lab, timeline, number, notice):
    """Makes the emulator reclaim the instance that the job runs on. Returns the instance's id, or
    None if the job is not running."""
    attempts = [a for a in job(lab, number)["attempts"] if a["state"] == "running"]
    for instance in lab.get("/instances")["instances"]:
        if attempts and instance["node"] == attempts[-1]["node"]:
            reclaim = {"instance": instance["provider_id"]}
            reclaim.update({"notice_s": NOTICE_S} if notice else {"without_notice": True})
            timeline.say(
                "",
                "the cloud",
                "takes %s back, %s"
                % (
                    instance["provider_id"],
                    "with %d s of notice" % NOTICE_S if notice else "without notice",
                ),
            )
            lab.cloud("/events", {"reclaim": reclaim})
            return instance["provider_id"]
    return None


def is_time_to_reclaim(spot, reclaimed, steps):
    """Whether the spot job's instance is to be reclaimed now. The second reclaim waits until the
    job has run on after its last save, so that some work is lost."""
    if len(reclaimed) == len(RECLAIMS_AT) or spot["state"] != "running" or not spot["progress"]:
        return False
    saved = (spot["last_checkpoint"] or {}).get("progress") or 0
    return spot["progress"] >= RECLAIMS_AT[len(reclaimed)] * steps and (
        not reclaimed or spot["progress"] > saved
    )


def watch(lab, timeline, reference, spot, steps):
    """Follows both jobs to their ends, and reclaims the spot job's nodes. Returns the ids of the
    reclaimed instances."""
    reclaimed, printed, end = [], 0, time.monotonic() + TIME_LIMIT_S
    while True:
        timeline.follow(300)
        jobs = [job(lab, n)["job"] for n in (reference, spot)]
        progress = jobs[1]["progress"] or 0
        if progress >= printed + steps // 10:
            printed = progress
            timeline.say("spot", "training", "step %d of %d" % (progress, steps))
        printed = min(printed, progress)  # a resumed job begins at an earlier step
        if all(j["state"] == "ended" for j in jobs):
            timeline.follow(0)
            return reclaimed
        if is_time_to_reclaim(jobs[1], reclaimed, steps):
            instance = reclaim_node(lab, timeline, spot, notice=not reclaimed)
            reclaimed += [instance] if instance else []
        if time.monotonic() > end:
            raise Failed("the jobs did not end within %d s" % TIME_LIMIT_S)


def wait_for_idle_end(lab, timeline):
    """Waits until belay has terminated all instances."""
    end = time.monotonic() + 30
    while lab.cloud("/state")["alive"] > 0:
        if time.monotonic() > end:
            raise Failed("some instances still run 30 s after the end of the last job")
        time.sleep(0.1)
    timeline.say("", "idle", "all instances have been terminated")


def results(lab, number):
    """Returns the accuracy and the hash of the weights, which the job printed at its end."""
    log = lab.belay("logs", str(number))
    accuracy, digest = re.findall(r"^test accuracy ([0-9.]+)$", log, re.M), re.findall(
        r"^weights sha256 ([0-9a-f]{64})$", log, re.M
    )
    if len(accuracy) != 1 or len(digest) != 1:
        raise Failed(
            "the output of job %d does not end with one accuracy and one hash; it is:\n%s"
            % (number, log)
        )
    return accuracy[0], digest[0]


def usd(uusd):
    return "$%.6f" % (uusd / 1e6)


def seconds(job):
    """The time from submit to end, including waiting and booting."""
    ended, submitted = (
        datetime.datetime.strptime(job[k][:19], "%Y-%m-%dT%H:%M:%S")
        for k in ("ended_at", "submitted_at")
    )
    return "%d s" % (ended - submitted).total_seconds()


def bill(lab, market):
    """Returns the cloud's charge for all instances of a market, including boot and idle time."""
    return usd(
        sum(i["cost_uusd"] for i in lab.cloud("/state")["instances"] if i["market"] == market)
    )


def summarize(lab, reference, spot, reclaimed):
    """Prints the comparison. Raises Failed if a claim of the quickstart is not true."""
    shown = [job(lab, n) for n in (reference, spot)]
    jobs = [s["job"] for s in shown]
    for j in jobs:
        if j["end"] != "succeeded":
            raise Failed("job %d ended: %s, exit code %s" % (j["id"], j["end"], j["exit_code"]))
    outputs = [results(lab, n) for n in (reference, spot)]
    saves = [c for c in shown[1]["checkpoints"] if c["cause"] == "notice"]
    resumed = [a["restored_progress"] for a in shown[1]["attempts"][1:]]
    identical = outputs[0][1] == outputs[1][1]
    saving = (
        1 - jobs[1]["cost_uusd"] / jobs[1]["on_demand_uusd"] if jobs[1]["on_demand_uusd"] else 0
    )

    rows = [
        ("", ["on-demand, undisturbed", "spot"]),
        ("time", [seconds(j) for j in jobs]),
        ("attempts", [j["attempts"] for j in jobs]),
        ("reclaims", [j["reclaims"] for j in jobs]),
        ("resumed at step", ["-", ", ".join(str(r) for r in resumed)]),
        ("steps recomputed", [j["lost_steps"] for j in jobs]),
        ("test accuracy", [o[0] for o in outputs]),
        ("weights, SHA-256", [o[1][:16] + "..." for o in outputs]),
        ("cost", [usd(j["cost_uusd"]) for j in jobs]),
        ("on-demand price", ["-", usd(jobs[1]["on_demand_uusd"])]),
        ("the cloud's bill", [bill(lab, market) for market in ("on-demand", "spot")]),
    ]
    print()
    for name, cells in rows:
        print("%-22s %22s %18s" % (name, *cells))
    print()
    print("%-22s %s" % ("result", "identical, bit for bit" if identical else "DIFFERENT"))
    print("%-22s %.0f %% of the on-demand cost, reclaims included" % ("saving", 100 * saving))

    claims = [
        (identical, "both runs end with the same weights"),
        (jobs[0]["attempts"] == 1 and jobs[0]["reclaims"] == 0, "the reference was not disturbed"),
        (
            len(reclaimed) == len(RECLAIMS_AT) and jobs[1]["reclaims"] == len(reclaimed),
            "every reclaim was counted",
        ),
        (jobs[1]["attempts"] == 1 + len(reclaimed), "each reclaim cost one attempt"),
        (len(saves) == 1, "there was one save for the one notice"),
        (all(r and r > 0 for r in resumed), "every attempt resumed from a checkpoint"),
        (
            bool(saves) and resumed[0] == saves[0]["progress"],
            "the first resumed from the save made at the notice",
        ),
        (
            jobs[1]["lost_steps"] > 0,
            "the reclaim without notice cost some steps, and they were counted",
        ),
        (saving > 0, "spot cost less than on-demand would have"),
    ]
    broken = [claim for is_true, claim in claims if not is_true]
    if broken:
        raise Failed("these claims are not true: " + "; ".join(broken))


def submit(lab, market, steps):
    return json.loads(
        lab.belay(
            "submit",
            "--json",
            "--market",
            market,
            "--checkpoint-every",
            "4s",
            "train.sh",
            "--steps",
            str(steps),
        )
    )["id"]


def run(lab, steps):
    print(
        "quickstart: a cloud with AWS's API, and belayd, both on this machine, in %s" % lab.scratch
    )
    lab.start()
    timeline = Timeline(lab)
    reference, spot = (submit(lab, market, steps) for market in ("on-demand", "spot"))
    timeline.names = {reference: "on-demand", spot: "spot"}
    timeline.quiet = {("saved", reference)}
    print(
        "quickstart: submitted examples/fashion-mnist twice: job %d on demand, and job %d on spot instances, which\n"
        "quickstart: will be reclaimed twice: with a notice of %d s (AWS gives 120), then without\n"
        % (reference, spot, NOTICE_S)
    )
    reclaimed = watch(lab, timeline, reference, spot, steps)
    wait_for_idle_end(lab, timeline)
    summarize(lab, reference, spot, reclaimed)


def interrupted(signum, frame):
    raise Failed("interrupted by %s" % signal.Signals(signum).name)


def handle_signals(handler):
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, handler)


def show_logs(lab):
    for name in "emulator.log", "home/belayd.log":
        path = os.path.join(lab.scratch, name)
        if os.path.exists(path):
            with open(path, errors="replace") as f:
                print(
                    "---- the end of %s\n%s" % (path, "".join(f.readlines()[-20:])), file=sys.stderr
                )


def main():
    parser = argparse.ArgumentParser(prog="scripts/quickstart")
    parser.add_argument("build", help=argparse.SUPPRESS)
    parser.add_argument(
        "--steps", type=int, default=600, help="minibatches to train on (default: 600)"
    )
    arguments = parser.parse_args()
    lab, failure = Lab(arguments.build), None
    handle_signals(interrupted)
    try:
        run(lab, arguments.steps)
    except (Failed, OSError, http.client.HTTPException, ValueError) as error:
        failure = error
    handle_signals(signal.SIG_IGN)
    lab.stop()
    if failure:
        show_logs(lab)
        sys.exit("quickstart: FAILED: %s\nquickstart: the logs are in %s" % (failure, lab.scratch))
    shutil.rmtree(lab.scratch)


main()
