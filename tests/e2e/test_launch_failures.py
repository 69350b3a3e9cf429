# SPDX-License-Identifier: Apache-2.0
"""Every call that a driver makes in a machine's life fails in every way, one at a time: the job ends well, one machine at a
time is there for it, nothing is left, and belay audit has nothing to say.

    test_launch_failures.py PROVIDER            compares what came out with docs/clouds/failures.md
    test_launch_failures.py PROVIDER --write    writes it there
    test_launch_failures.py PROVIDER --only TEXT    cases whose call and fault have this text; compares nothing
"""

import argparse
import difflib
import json
import os
import queue
import re
import sys
import threading
import time
import traceback

from lab import ACCESS_KEY, END_S, HERE, SECRET_KEY, Lab, nothing_is_left
from proxy import Fault, Proxy

TABLE = os.path.join(HERE, "..", "..", "docs", "clouds", "failures.md")
LANES = 8  # labs side by side; what they wait for is mostly time
LEFT_S = 45  # Azure's leftovers are left alone for half a minute, in case their machine still comes
TITLES = {"aws": "AWS", "azure": "Azure", "gcp": "Google Cloud", "lambda": "Lambda Cloud"}


class Case:
    def __init__(self, call, fault, count=1, before=(), note="", is_late=False):
        self.call, self.fault, self.count, self.note = call, fault, count, note
        self.before = before  # (call, fault): what has to go wrong so that this call is made at all
        self.is_late = is_late  # it happens once the machine is there

    def __str__(self):
        return "%s: %s%s" % (self.call, self.fault, self.note)

    def is_long(self):
        """Something is left that is first left alone."""
        return (self.before == [NO_SKU] or self.fault.code == "PropertyChangeNotAllowed"
                or self.call == "launchInstance" and (self.fault in LOST or self.fault.status >= 500))


def error(status, code, message="made up by the test"):
    return Fault("error", status, code, message)


# ---- what can go wrong ----

TRANSPORT = [Fault(how) for how in ("closed before", "closed after", "garbage after", "5xx after", "502 page")]
LOST = [Fault(how) for how in ("closed before", "garbage after", "502 page")]  # of what only reads: it has no effect


def cases(call, faults, **more):
    return [Case(call, f, **more) for f in faults]


def again(call, faults, **more):
    """Refusals that a driver has a remedy for: here it does not help."""
    return cases(call, faults, count=2, note=", twice", **more)


def ends(call, faults):
    """Of a deletion: more than once, unless once is enough."""
    return [Case(call, f, 1) if f.how.endswith(" after") else Case(call, f, 2, note=", twice") for f in faults]


AWS = [
    *cases("RunInstances", TRANSPORT),
    *cases("RunInstances", [
        error(500, "InsufficientInstanceCapacity"), error(400, "UnfulfillableCapacity"), error(400, "SpotMaxPriceTooLow"),
        error(400, "MaxSpotInstanceCountExceeded"), error(400, "VcpuLimitExceeded"), error(400, "InstanceLimitExceeded"),
        error(400, "InsufficientFreeAddressesInSubnet"), error(503, "RequestLimitExceeded"), error(500, "InternalError"),
        error(503, "Unavailable"), error(400, "Unsupported"), error(400, "InvalidParameterCombination"),
        error(400, "InvalidAMIID.NotFound"), error(400, "IdempotentParameterMismatch"), error(403, "UnauthorizedOperation"),
        error(403, "AuthFailure.ServiceLinkedRoleCreationNotPermitted"), error(401, "AuthFailure")]),
    *again("RunInstances", [error(401, "AuthFailure"), error(400, "RequestExpired"), error(403, "SignatureDoesNotMatch")]),
    *cases("DescribeInstances", [*LOST, error(503, "RequestLimitExceeded"), error(500, "InternalError"),
                                 error(403, "UnauthorizedOperation"), error(401, "AuthFailure")], count=3),
    *ends("TerminateInstances", [*TRANSPORT, error(400, "InvalidInstanceID.NotFound"), error(503, "RequestLimitExceeded"),
                                 error(500, "InternalError"), error(403, "UnauthorizedOperation"),
                                 error(401, "AuthFailure")]),
    *cases("DescribeSpotPriceHistory", [*LOST, error(503, "RequestLimitExceeded"), error(403, "UnauthorizedOperation")],
           count=2),
]
REFUSED_KEYS = ("RunInstances", error(401, "AuthFailure"))
AWS_ROLE = [  # of a belayd whose rights are its instance's role
    *cases("metadata credentials", LOST, before=[REFUSED_KEYS]),
    *cases("metadata role", LOST, before=[REFUSED_KEYS]),
    *cases("metadata token", LOST, before=[REFUSED_KEYS, ("metadata role", error(401, "Unauthorized"))]),
]

GCP = [
    *cases("instances.insert", TRANSPORT),
    *cases("instances.insert", [
        error(409, "alreadyExists"), error(403, "quotaExceeded"), error(429, "rateLimitExceeded"), error(503, "backendError"),
        error(500, "internalError"), error(400, "resourceNotReady"), error(403, "forbidden"),
        error(403, "accessNotConfigured"), error(404, "notFound"), error(400, "invalid"), error(401, "authError")]),
    *again("instances.insert", [error(401, "authError")]),
    *cases("instances.insert", [Fault("operation", code=c) for c in (
        "ZONE_RESOURCE_POOL_EXHAUSTED", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "STOCKOUT", "QUOTA_EXCEEDED",
        "UNSUPPORTED_OPERATION", "RESOURCE_NOT_READY", "RESOURCE_OPERATION_RATE_EXCEEDED", "INTERNAL_ERROR",
        "IP_SPACE_EXHAUSTED", "CONDITION_NOT_MET", "PERMISSIONS_ERROR", "RESOURCE_NOT_FOUND", "INVALID_FIELD_VALUE")]),
    *cases("zoneOperations.get of insert", [*LOST, error(429, "rateLimitExceeded"), error(404, "notFound"),
                                            error(403, "forbidden"), error(401, "authError")]),
    *cases("instances.get", [*LOST, error(503, "backendError"), error(403, "forbidden")]),
    *cases("instances.aggregatedList", [*LOST, error(403, "rateLimitExceeded"), error(403, "forbidden"),
                                        error(401, "authError")], count=3),
    *cases("zoneOperations.list", [*LOST, error(403, "forbidden")], count=3),
    *ends("instances.delete", [*TRANSPORT, error(404, "notFound"), error(400, "resourceInUseByAnotherResource"),
                               error(429, "rateLimitExceeded"), error(503, "backendError"), error(403, "forbidden"),
                               error(401, "authError")]),
    *cases("zoneOperations.get of delete", [*LOST, error(404, "notFound"), error(403, "forbidden")]),
    *cases("token", [*LOST, error(400, "invalid_grant"), error(429, "rate_limited"), error(503, "unavailable")],
           before=[("instances.insert", error(401, "authError"))]),
]

AZURE_CAPACITY = ["AllocationFailed", "ZonalAllocationFailed", "OverconstrainedAllocationRequest",
                  "OverconstrainedZonalAllocationRequest"]
NO_SKU = ("PUT VM", error(409, "SkuNotAvailable"))
AZURE = [
    *cases("PUT NIC", [*TRANSPORT, error(429, "TooManyRequests"), error(500, "InternalServerError"),
                       error(409, "AnotherOperationInProgress"), error(400, "SubnetIsFull"),
                       error(403, "AuthorizationFailed"), error(404, "ResourceGroupNotFound"),
                       error(400, "InvalidParameter"), error(401, "ExpiredAuthenticationToken")]),
    *cases("PUT VM", [*TRANSPORT, error(409, "SkuNotAvailable"), *(error(409, c) for c in AZURE_CAPACITY),
                      error(409, "OperationNotAllowed", "Operation could not be completed as it results in exceeding "
                                                        "approved LowPriorityCores quota."),
                      error(409, "QuotaExceeded"), error(409, "SpotPriceGreaterThanProvidedMaxPrice"),
                      error(400, "MaxPriceValueInvalid"), error(400, "AzureSpotIsNotSupportedForThisVMSize"),
                      error(429, "TooManyRequests"), error(500, "InternalServerError"), error(409, "Conflict"),
                      error(409, "AnotherOperationInProgress"), error(409, "PropertyChangeNotAllowed"),
                      error(403, "AuthorizationFailed"), error(403, "LinkedAuthorizationFailed"),
                      error(400, "InvalidParameter"), error(404, "NotFound"), error(401, "ExpiredAuthenticationToken")]),
    *again("PUT VM", [error(401, "ExpiredAuthenticationToken")]),
    *cases("PUT VM", [Fault("operation", code=c) for c in (
        *AZURE_CAPACITY, "QuotaExceeded", "OSProvisioningTimedOut", "InternalExecutionError", "OperationPreempted")]),
    *cases("GET operation of VM", [*LOST, error(429, "TooManyRequests"), error(404, "NotFound"),
                                   error(403, "AuthorizationFailed"), error(401, "ExpiredAuthenticationToken")]),
    *[c for call in ("DELETE VM", "DELETE NIC", "DELETE disk") for c in cases(
        call, [Fault("closed before"), error(429, "TooManyRequests"), error(403, "ScopeLocked")], before=[NO_SKU],
        note=", undoing")],
    *[c for call, n in (("GET resources by tag", 3), ("GET VMs", 3), ("GET power states", 1)) for c in cases(
        call, [*LOST, error(429, "TooManyRequests"), error(403, "AuthorizationFailed"),
               error(401, "ExpiredAuthenticationToken")], count=n)],
    *cases("GET resources by tag, 2nd page", LOST),
    *ends("DELETE VM", [*TRANSPORT, error(429, "TooManyRequests"), error(500, "InternalServerError"),
                        error(404, "ResourceNotFound"), error(409, "AnotherOperationInProgress"),
                        error(403, "AuthorizationFailed"), error(401, "ExpiredAuthenticationToken")]),
    *cases("GET prices", [*LOST, error(429, "TooManyRequests")], count=2),
    *cases("token", [*LOST, error(401, "invalid_client"), error(429, "temporarily_unavailable"),
                     error(503, "temporarily_unavailable")],
           before=[("PUT NIC", error(401, "ExpiredAuthenticationToken"))]),
]

LAUNCHING = ", of a launch"  # of calls that are made for other ends too
TOO_OFTEN, UPSET, NO_KEY = error(429, "1015"), error(500, "global/internal-error"), error(401, "global/invalid-api-key")
LAMBDA = [
    *cases("launchInstance", TRANSPORT),
    *cases("launchInstance", [
        error(400, "instance-operations/launch/insufficient-capacity"), error(400, "global/quota-exceeded"),
        error(400, "provider/quota-exceeded"), TOO_OFTEN, UPSET, error(503, "provider/internal-unavailable"),
        error(400, "global/invalid-parameters"), error(400, "global/object-does-not-exist"),
        error(400, "instance-operations/launch/file-system-in-wrong-region"), error(403, "global/account-inactive"), NO_KEY]),
    *cases("listInstances", [*LOST, TOO_OFTEN, UPSET, error(403, "global/forbidden"), NO_KEY], count=2, note=LAUNCHING),
    *cases("listInstanceTypes", [*LOST, TOO_OFTEN, UPSET, error(403, "global/forbidden"), NO_KEY], note=LAUNCHING),
    *cases("listInstances", [*LOST, TOO_OFTEN, UPSET, error(403, "global/forbidden"), NO_KEY], count=2, is_late=True),
    *ends("terminateInstance", [*TRANSPORT, error(404, "global/object-does-not-exist"), TOO_OFTEN, UPSET,
                                error(403, "global/forbidden"), NO_KEY]),
]
LAMBDA_PRICES = cases("listInstanceTypes", [*LOST, TOO_OFTEN, NO_KEY], is_late=True)  # of a belayd that reads them often

CASES = {"aws": [AWS, AWS_ROLE], "azure": [AZURE], "gcp": [GCP], "lambda": [LAMBDA, LAMBDA_PRICES]}
LONG_MS = 1000
OPERATIONS = {"gcp": "instances.insert", "azure": "virtualMachines/write/operation"}
ENDS = ("TerminateInstances", "terminateInstance", "instances.delete", "zoneOperations.get of delete", "DELETE VM", "DELETE NIC", "DELETE disk")
LAUNCHES = ("RunInstances", "launchInstance", "instances.insert", "zoneOperations.get of insert", "instances.get", "PUT NIC", "PUT VM",
            "GET operation of VM")


# ---- a lab with something in between ----

ZONES = {"aws": "us-east-1a", "azure": "1", "gcp": "us-central1-a", "lambda": "us-west-2"}
# A node that is not wanted any more powers itself off, as a rule. Not these: their end is to be the provider's.
STAYS_UP = "sleep 600 </dev/null >/dev/null 2>&1 &"


class FaultyLab(Lab):
    def __init__(self, provider, role=False):
        pool = {"markets": ["spot"], "zones": [ZONES[provider]], "max_nodes": 4, "idle_timeout": "100ms", "cooldown": "0s",
                "refusal_backoff": "100ms"}
        belayd = {"lease": "30s", "sweep": "500ms", "busy_sweep": "200ms", "settle": "300ms", "price_every": "500ms"}
        if provider == "lambda":  # which lists for launches and sweeps, and reads types for launches and prices, in one way
            del pool["markets"], pool["zones"]
            belayd.update({"price_every": "500ms"} if role else {"sweep": "1h", "price_every": "1h"})
        super().__init__(
            provider=provider, agent_prelude=STAYS_UP, cloud={"boot_delay_ms": 300, **({"page": 1} if provider == "azure" else {})},
            pool=pool, belayd=belayd)
        self.role = role and provider == "aws"
        self.proxy = None

    def access(self, provider, ports):
        key = "ec2" if self.provider == "aws" else self.provider
        self.proxy = Proxy(self.provider, ports[key], role_service() if self.role else None)
        access = super().access(provider, {**ports, key: self.proxy.url})
        if self.provider == "gcp":
            with open(access["credentials"]) as f:
                account = json.load(f)
            access["credentials"] = self.write("account.json", {**account, "token_uri": self.proxy.url + "/token"})
        if self.role:
            self.env["HOME"] = self.dir  # where no credentials are
            del access["credentials"]
            access["metadata"] = self.proxy.url
        return access

    def up(self):
        super().up()
        if self.provider == "lambda":  # what is read when belayd starts would take the faults of a launch
            self.wait(lambda: {"listInstances", "listInstanceTypes"} <= self.proxy.answered, "a listing and prices")

    def end(self):
        problems = super().end()
        if self.proxy:
            self.proxy.close()
        return problems


def role_service():
    root = "/latest/meta-data/iam/security-credentials/"
    return {"/latest/api/token": "token", root: "belay", root + "belay": json.dumps({
        "Code": "Success", "AccessKeyId": ACCESS_KEY, "SecretAccessKey": SECRET_KEY, "Token": "",
        "Expiration": "2100-01-01T00:00:00Z"})}


# ---- one case ----

def most_at_once(machines):
    """How many existed at the same moment. One that ends when the next is launched has made room for it."""
    edges = sorted([(m["launched_ms"], 1) for m in machines] + [(m["gone_ms"], -1) for m in machines])
    alive = most = 0
    for _, step in edges:
        alive += step
        most = max(most, alive)
    return most


def conclusion(case, refusals):
    """Which of the ways to know came first is a matter of milliseconds; that there is no other is what rows and machines say."""
    if refusals:
        code = re.search(r"refused: ([\w./-]+)", refusals[0]["text"])
        how_long = "for long, the job is told" if refusals[0]["a"] > LONG_MS else "for a while"
        return "refused (%s): offer avoided %s; another launch" % (code.group(1) if code else "no credentials", how_long)
    if case.call in LAUNCHES or case.before == [NO_SKU] or case.note == LAUNCHING:
        return "not known: asked again under its token, unless listing or machine tell first"
    if case.call in ENDS:
        return "not known: ended again while it is listed"
    return "not known: read again"


def held_for(lab, job):
    """What belay why says while an offer is avoided for long, "" otherwise."""
    return "; ".join(r["text"] for r in lab.get("/jobs/%d/why" % job)["reasons"]
                     if r["code"] == "offer-refused" and re.search(r"tried again in \d+(\.\d+)?s", r["text"]))


def reason_of(case):
    return "no token" if case.call == "token" else case.fault.code


def run(lab, case):
    """What the table says of it; AssertionError when something is not as it has to be."""
    before = lab.state()["instances"]
    last = max([i["id"] for i in lab.get("/instances?state=all")["instances"]], default=0)
    seen = lab.get("/events?after=%d" % lab.seen)["last"]
    for call, fault in case.before:
        lab.proxy.arm(call, [fault])
    if case.is_late:
        pass
    elif case.fault.how == "operation":
        lab.cloud({"refuse": {"action": OPERATIONS[lab.provider], "code": case.fault.code, "count": case.count}})
    else:
        lab.proxy.arm(case.call, [case.fault] * case.count)
    job = lab.submit("plain.sh", 1)
    if case.is_late:
        lab.wait_cloud(lambda s: s["alive"], "a machine is there")
        lab.proxy.arm(case.call, [case.fault] * case.count)
    held = lab.wait(lambda: held_for(lab, job) or lab.job(job)["state"] == "ended", "it waits with a reason, or ends")
    shown = lab.wait_ended(job)
    lab.wait(lambda: not lab.get("/instances")["instances"], "every row is over", LEFT_S)
    state = lab.wait_cloud(nothing_is_left, "nothing is left", LEFT_S)
    lab.wait(lambda: not any(lab.proxy.waiting(c) for c in {case.call, *(c for c, _ in case.before)}),
             "every fault has happened")

    rows = [i for i in lab.get("/instances?state=all")["instances"] if i["id"] > last]
    machines = state["instances"][len(before):]
    refusals = [e for e in lab.get("/events?after=%d" % seen)["events"] if e["kind"] == "launch-refused"]
    at_once = most_at_once(machines)
    problems = []
    if shown["job"]["end"] != "succeeded" or len(shown["attempts"]) != 1:
        problems.append("the job: %s, %d attempts" % (shown["job"]["end"], len(shown["attempts"])))
    if at_once != 1:
        problems.append("%d machines at once" % at_once)
    if any(e["a"] > LONG_MS for e in refusals) and not (isinstance(held, str) and reason_of(case) in held):
        problems.append("belay why did not say %s: %s" % (reason_of(case), held))
    if len(rows) != 1 + len(refusals):
        problems.append("%d rows with %d refusals" % (len(rows), len(refusals)))
    differences = lab.post("/audit")["differences"]
    if differences:
        problems.append("belay audit: %s" % differences)
    if problems:
        raise AssertionError("; ".join(problems))
    return "| %s | %s%s | %s | %d | %d | 0 |" % (
        case.call, case.fault, case.note, conclusion(case, refusals), len(rows), len(machines))


# ---- all of them ----

class Lane(threading.Thread):
    """Works through cases in labs of its own; a lab is used until something fails in it."""

    def __init__(self, provider, role, todo, rows):
        super().__init__()
        self.provider, self.role, self.todo, self.rows, self.problems = provider, role, todo, rows, []

    def run(self):
        while not self.todo.empty():
            try:
                with FaultyLab(self.provider, self.role) as lab:
                    self.work(lab)
            except Exception as error:  # whatever it is, the other cases are to be seen too
                self.problems.append(str(error) if isinstance(error, AssertionError) else traceback.format_exc())

    def work(self, lab):
        while True:
            try:
                case = self.todo.get_nowait()
            except queue.Empty:
                return
            began = time.monotonic()
            try:
                self.rows[case] = run(lab, case)
            except AssertionError as error:
                raise AssertionError("%s: %s" % (case, error)) from None
            finally:
                print("%6.1f s  %s" % (time.monotonic() - began, case), flush=True)


def run_all(provider, only):
    """The rows of its table, in the order of the cases, and what is wrong."""
    rows, lanes, order = {}, [], []
    for role, part in enumerate(CASES[provider]):
        part = [c for c in part if only in str(c)]
        order += part
        todo = queue.Queue()
        for case in sorted(part, key=lambda c: not c.is_long()):
            todo.put(case)
        lanes += [Lane(provider, bool(role), todo, rows) for _ in range(1 if role else LANES)]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    return [rows[c] for c in order if c in rows], [p for lane in lanes for p in lane.problems]


HEAD = "| call | what happens to it | what belayd concludes | launches | machines | left |\n|---|---|---|---|---|---|\n"


def section(provider, text):
    """Where its rows are: between its heading's table and the next blank line."""
    start = text.index("## %s\n" % TITLES[provider])
    start = text.index(HEAD, start) + len(HEAD)
    rows = re.compile(r"(\|.*\n)*").match(text, start)
    return start, rows.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("provider", choices=sorted(CASES))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    rows, problems = run_all(asked.provider, asked.only)
    table = "".join(row + "\n" for row in rows)
    with open(TABLE) as f:
        text = f.read()
    start, end = section(asked.provider, text)
    if asked.only:
        print(table)
    elif asked.write:
        with open(TABLE, "w") as f:
            f.write(text[:start] + table + text[end:])
    elif not problems and text[start:end] != table:
        problems.append("docs/clouds/failures.md says something else; --write puts this there:\n" + "".join(
            difflib.unified_diff(text[start:end].splitlines(True), table.splitlines(True), "failures.md", "this run")))
    for problem in problems:
        print("PROBLEM: " + problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
