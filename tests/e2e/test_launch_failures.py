# SPDX-License-Identifier: Apache-2.0
"""Every call that a driver makes in a machine's life fails in every way, one at a time: the job
still completes, it has one machine at a time, no resource is left, and belay audit finds nothing.

    test_launch_failures.py PROVIDER            compares the results with
                                                docs/reference/cloud-failures.md
    test_launch_failures.py PROVIDER --write    writes the results to that file
    test_launch_failures.py PROVIDER --only TEXT    runs the cases whose call and fault contain
                                                    TEXT; compares nothing
"""

import argparse
import base64
import difflib
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
import traceback
import urllib.parse
import urllib.request

from lab import ACCESS_KEY, HERE, SECRET_KEY, WAIT_S, Lab
from proxy import Fault, Proxy

TABLE = os.path.join(HERE, "..", "..", "docs", "reference", "cloud-failures.md")
LANES = 12  # parallel labs, which mostly wait
LEFT_S = (
    45  # Azure's orphaned resources are kept for half a minute, in case their machine still appears
)
TITLES = {"aws": "AWS", "azure": "Azure", "gcp": "Google Cloud", "lambda": "Lambda Cloud"}


class Case:
    def __init__(self, call, fault, count=1, before=(), note="", reason="", is_late=False):
        self.call, self.fault, self.count, self.note = call, fault, count, note
        self.before = before  # (call, fault): the fault that causes this call
        self.is_late = is_late  # the fault comes once the machine exists
        # A word in the output of belay why while its offer is avoided for long.
        self.reason = reason or (
            "credentials" if "token" in call or "metadata" in call else fault.code
        )

    def __str__(self):
        return "%s: %s%s" % (self.call, self.fault, self.note)

    def is_long(self):
        """True if a resource remains that is first kept, or that is given up only after a while."""
        return (
            self.before == [NO_SKU]
            or self.fault.code == "PropertyChangeNotAllowed"
            or self.fault.how == "no answer"
            or self.call == "launchInstance"
            and (self.fault in LOST or self.fault.status >= 500)
        )

    def calls(self):
        return {self.call, *(c for c, _ in self.before)}


class Part:
    """Cases that run in labs of one kind. rows: name of the cases whose rows come next."""

    def __init__(self, cases, rows=None, **lab):
        self.cases, self.rows, self.lab = cases, cases if rows is None else rows, lab
        self.todo, self.n_lanes = queue.Queue(), 0


def error(status, code, message="made up by the test"):
    return Fault("error", status, code, message)


# ---- faults ----

TRANSPORT = [
    Fault(how)
    for how in ("closed before", "closed after", "garbage after", "5xx after", "502 page")
]
LOST = [
    Fault(how) for how in ("closed before", "garbage after", "502 page")
]  # of read-only calls: no effect
# For tokens and keys, which many calls wait for.
UNTOLD = [*LOST, Fault("closed after"), Fault("no answer")]


def cases(call, faults, **more):
    return [Case(call, f, **more) for f in faults]


def again(call, faults, **more):
    """Refusals for which a driver has a remedy, which does not help here."""
    return cases(call, faults, count=2, note=", twice", **more)


def ends(call, faults):
    """For a deletion: repeated faults, unless one is enough."""
    return [
        Case(call, f, 1) if f.how.endswith(" after") else Case(call, f, 2, note=", twice")
        for f in faults
    ]


AFTER = ", retry after closed after"


def after_one(launch, *more):
    """For a launch that took effect: its reply was lost, and the next try is refused."""
    return {
        "note": AFTER,
        "before": [(launch, Fault("closed after")), *((launch, f) for f in more)],
    }


AWS = [
    *cases("RunInstances", TRANSPORT),
    *cases(
        "RunInstances",
        [
            error(500, "InsufficientInstanceCapacity"),
            error(400, "UnfulfillableCapacity"),
            error(400, "SpotMaxPriceTooLow"),
            error(400, "MaxSpotInstanceCountExceeded"),
            error(400, "VcpuLimitExceeded"),
            error(400, "InstanceLimitExceeded"),
            error(400, "InsufficientFreeAddressesInSubnet"),
            error(503, "RequestLimitExceeded"),
            error(500, "InternalError"),
            error(503, "Unavailable"),
            error(400, "Unsupported"),
            error(400, "InvalidParameterCombination"),
            error(400, "InvalidAMIID.NotFound"),
            error(400, "IdempotentParameterMismatch"),
            error(403, "UnauthorizedOperation"),
            error(403, "AuthFailure.ServiceLinkedRoleCreationNotPermitted"),
            error(401, "AuthFailure"),
        ],
    ),
    *again(
        "RunInstances",
        [
            error(401, "AuthFailure"),
            error(400, "RequestExpired"),
            error(403, "SignatureDoesNotMatch"),
        ],
    ),
    *cases("RunInstances", [error(401, "AuthFailure")], count=2, **after_one("RunInstances")),
    *cases(
        "DescribeInstances",
        [
            *LOST,
            error(503, "RequestLimitExceeded"),
            error(500, "InternalError"),
            error(403, "UnauthorizedOperation"),
            error(401, "AuthFailure"),
        ],
        count=3,
    ),
    *ends(
        "TerminateInstances",
        [
            *TRANSPORT,
            error(400, "InvalidInstanceID.NotFound"),
            error(503, "RequestLimitExceeded"),
            error(500, "InternalError"),
            error(403, "UnauthorizedOperation"),
            error(401, "AuthFailure"),
        ],
    ),
    *cases(
        "DescribeSpotPriceHistory",
        [*LOST, error(503, "RequestLimitExceeded"), error(403, "UnauthorizedOperation")],
        count=2,
    ),
]
AWS_PAGES = [  # with so many machines that a listing has pages
    *cases(
        "DescribeInstances, 2nd page",
        [
            *LOST,
            error(503, "RequestLimitExceeded"),
            error(400, "InvalidNextToken"),
            error(403, "UnauthorizedOperation"),
            error(401, "AuthFailure"),
        ],
        count=3,
    ),
    *cases(
        "DescribeSpotPriceHistory, 2nd page",
        [*LOST, error(503, "RequestLimitExceeded"), error(400, "InvalidNextToken")],
        count=2,
    ),
]
REFUSED_KEYS = ("RunInstances", error(401, "AuthFailure"))
REFUSED_END = ("TerminateInstances", error(401, "AuthFailure"))
REFUSED_TOKEN = ("metadata role", error(401, "Unauthorized"))
WRONG_KEYS = json.dumps(
    {
        "Code": "Success",
        "AccessKeyId": "AKIDOTHER",
        "SecretAccessKey": SECRET_KEY,
        "Token": "",
        "Expiration": "2100-01-01T00:00:00Z",
    }
)
AWS_ROLE = [  # with the rights of belayd's instance role
    *cases(
        "metadata credentials",
        [
            *UNTOLD,
            error(404, "404 Not Found"),
            error(403, "403 Forbidden"),
            error(503, "503 Service Unavailable"),
            Fault(
                "says",
                code="Code AssumeRoleUnauthorizedAccess",
                message='{"Code": "AssumeRoleUnauthorizedAccess"}',
            ),
            Fault("says", code="no keys", message='{"Code": "Success"}'),
        ],
        before=[REFUSED_KEYS],
    ),
    *cases(
        "metadata credentials",
        [Fault("says", code="keys that EC2 refuses", message=WRONG_KEYS)],
        before=[REFUSED_KEYS],
        reason="AuthFailure",
    ),
    *cases(
        "metadata credentials",
        [Fault("closed before"), error(404, "404 Not Found")],
        before=[REFUSED_END],
        note=", ending",
    ),
    *cases(
        "metadata role",
        [
            *UNTOLD,
            error(404, "404 Not Found"),
            error(503, "503 Service Unavailable"),
            Fault("says", code="no name", message="<html>"),
        ],
        before=[REFUSED_KEYS],
    ),
    *again("metadata role", [error(401, "401 Unauthorized")], before=[REFUSED_KEYS]),
    *cases(
        "metadata token",
        [
            *UNTOLD,
            error(400, "400 Bad Request"),
            error(403, "403 Forbidden"),
            error(404, "404 Not Found"),
            error(503, "503 Service Unavailable"),
        ],
        before=[REFUSED_KEYS, REFUSED_TOKEN],
    ),
]

A_G6, A_G5, B_G6, B_G5 = FLEET = [
    (zone, type) for zone in ("us-east-1a", "us-east-1b") for type in ("g6.xlarge", "g5.xlarge")
]
FLEET_USD = {A_G6: "0.40", B_G6: "0.41", A_G5: "0.42", B_G5: "0.43"}
AWS_FLEET = [  # for a pool whose launches the provider serves from one of four offers
    *cases(
        "CreateLaunchTemplate",
        [
            *TRANSPORT,
            error(400, "InvalidLaunchTemplateName.AlreadyExistsException"),
            error(503, "RequestLimitExceeded"),
            error(500, "InternalError"),
            error(400, "InvalidParameterValue"),
            error(403, "UnauthorizedOperation"),
            error(401, "AuthFailure"),
        ],
    ),
    *again("CreateLaunchTemplate", [error(401, "AuthFailure")]),
    *cases("CreateFleet", TRANSPORT),
    *cases(
        "CreateFleet",
        [
            error(400, "InvalidLaunchTemplateName.NotFoundException"),
            error(400, "InsufficientInstanceCapacity"),
            error(400, "MaxSpotInstanceCountExceeded"),
            error(400, "InvalidParameterCombination"),
            error(400, "IdempotentParameterMismatch"),
            error(503, "RequestLimitExceeded"),
            error(500, "InternalError"),
            error(503, "Unavailable"),
            error(403, "UnauthorizedOperation"),
            error(403, "AuthFailure.ServiceLinkedRoleCreationNotPermitted"),
            error(401, "AuthFailure"),
        ],
    ),
    *again("CreateFleet", [error(401, "AuthFailure"), error(400, "RequestExpired")]),
    *cases(
        "CreateFleet",
        [
            Fault("only Errors", code=c)
            for c in (
                "InsufficientInstanceCapacity",
                "SpotMaxPriceTooLow",
                "MaxSpotInstanceCountExceeded",
                "RequestLimitExceeded",
                "InternalError",
                "InvalidFleetConfiguration",
                "UnauthorizedOperation",
            )
        ],
    ),
    *cases(
        "CreateFleet",
        [
            Fault("only Errors"),
            Fault("dry", code="an instance and an Error", message=[A_G6]),
            Fault("dry", code="an instance and Errors of a whole zone", message=[A_G6, A_G5]),
            Fault(
                "dry",
                code="an instance and Errors of all but one place",
                message=[A_G6, A_G5, B_G6],
            ),
        ],
    ),
    *cases("CreateFleet", [error(403, "UnauthorizedOperation")], **after_one("CreateFleet")),
    *cases(
        "DeleteLaunchTemplate",
        [
            *TRANSPORT,
            error(400, "InvalidLaunchTemplateName.NotFoundException"),
            error(503, "RequestLimitExceeded"),
            error(403, "UnauthorizedOperation"),
            error(401, "AuthFailure"),
        ],
    ),
    *cases(
        "DescribeLaunchTemplates",
        [*LOST, error(503, "RequestLimitExceeded"), error(403, "UnauthorizedOperation")],
    ),
]

GCP = [
    *cases("instances.insert", TRANSPORT),
    *cases(
        "instances.insert",
        [
            error(409, "alreadyExists"),
            error(403, "quotaExceeded"),
            error(429, "rateLimitExceeded"),
            error(503, "backendError"),
            error(500, "internalError"),
            error(400, "resourceNotReady"),
            error(403, "forbidden"),
            error(403, "accessNotConfigured"),
            error(404, "notFound"),
            error(400, "invalid"),
            error(401, "authError"),
        ],
    ),
    *again("instances.insert", [error(401, "authError")]),
    *cases(
        "instances.insert",
        [
            Fault("operation", code=c)
            for c in (
                "ZONE_RESOURCE_POOL_EXHAUSTED",
                "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
                "STOCKOUT",
                "QUOTA_EXCEEDED",
                "UNSUPPORTED_OPERATION",
                "RESOURCE_NOT_READY",
                "RESOURCE_OPERATION_RATE_EXCEEDED",
                "INTERNAL_ERROR",
                "IP_SPACE_EXHAUSTED",
                "CONDITION_NOT_MET",
                "PERMISSIONS_ERROR",
                "RESOURCE_NOT_FOUND",
                "INVALID_FIELD_VALUE",
            )
        ],
    ),
    *cases(
        "zoneOperations.get of insert",
        [
            *LOST,
            error(429, "rateLimitExceeded"),
            error(404, "notFound"),
            error(403, "forbidden"),
            error(401, "authError"),
        ],
    ),
    *cases(
        "instances.get",
        [
            *LOST,
            error(503, "backendError"),
            error(429, "rateLimitExceeded"),
            error(403, "forbidden"),
            error(401, "authError"),
        ],
    ),
    *cases(
        "instances.aggregatedList",
        [*LOST, error(403, "rateLimitExceeded"), error(403, "forbidden"), error(401, "authError")],
        count=3,
    ),
    *cases("zoneOperations.list", [*LOST, error(403, "forbidden")], count=3),
    *ends(
        "instances.delete",
        [
            *TRANSPORT,
            error(404, "notFound"),
            error(400, "resourceInUseByAnotherResource"),
            error(429, "rateLimitExceeded"),
            error(503, "backendError"),
            error(403, "forbidden"),
            error(401, "authError"),
        ],
    ),
    *cases(
        "zoneOperations.get of delete", [*LOST, error(404, "notFound"), error(403, "forbidden")]
    ),
    *cases(
        "token",
        [
            *UNTOLD,
            error(400, "invalid_grant"),
            error(401, "invalid_client"),
            error(403, "access_denied"),
            error(429, "rate_limited"),
            error(500, "internal_failure"),
            error(503, "unavailable"),
        ],
        before=[("instances.insert", error(401, "authError"))],
    ),
    *cases(
        "token",
        [Fault("closed before"), error(400, "invalid_grant")],
        before=[("instances.delete", error(401, "authError"))],
        note=", ending",
    ),
    *cases(
        "token",
        [error(400, "invalid_grant")],
        **after_one("instances.insert", error(401, "authError"))
    ),
]
GCP_PAGES = [
    *cases(
        "instances.aggregatedList, 2nd page",
        [*LOST, error(403, "rateLimitExceeded"), error(400, "invalid"), error(401, "authError")],
        count=3,
    ),
    *cases("zoneOperations.list, 2nd page", [*LOST, error(403, "forbidden")], count=3),
]
GCP_IDENTITY = [  # with the rights of belayd's service account
    *cases(
        "metadata token",
        [
            *UNTOLD,
            error(404, "404 Not Found"),
            error(403, "403 Forbidden"),
            error(429, "429 Too Many Requests"),
            error(503, "503 Service Unavailable"),
            Fault("another's", 404, "another service's 404"),
            Fault("says", code="no token", message="{}"),
        ],
        before=[("instances.insert", error(401, "authError"))],
    ),
    *cases(
        "metadata token",
        [Fault("closed before"), error(404, "404 Not Found")],
        before=[("instances.delete", error(401, "authError"))],
        note=", ending",
    ),
]

AZURE_CAPACITY = [
    "AllocationFailed",
    "ZonalAllocationFailed",
    "OverconstrainedAllocationRequest",
    "OverconstrainedZonalAllocationRequest",
]
NO_SKU = ("PUT VM", error(409, "SkuNotAvailable"))
AZURE = [
    *cases(
        "PUT NIC",
        [
            *TRANSPORT,
            error(429, "TooManyRequests"),
            error(500, "InternalServerError"),
            error(409, "AnotherOperationInProgress"),
            error(400, "SubnetIsFull"),
            error(403, "AuthorizationFailed"),
            error(404, "ResourceGroupNotFound"),
            error(400, "InvalidParameter"),
            error(401, "ExpiredAuthenticationToken"),
        ],
    ),
    *cases(
        "PUT VM",
        [
            *TRANSPORT,
            error(409, "SkuNotAvailable"),
            *(error(409, c) for c in AZURE_CAPACITY),
            error(
                409,
                "OperationNotAllowed",
                "Operation could not be completed as it results in exceeding "
                "approved LowPriorityCores quota.",
            ),
            error(409, "QuotaExceeded"),
            error(409, "SpotPriceGreaterThanProvidedMaxPrice"),
            error(400, "MaxPriceValueInvalid"),
            error(400, "AzureSpotIsNotSupportedForThisVMSize"),
            error(429, "TooManyRequests"),
            error(500, "InternalServerError"),
            error(409, "Conflict"),
            error(409, "AnotherOperationInProgress"),
            error(409, "PropertyChangeNotAllowed"),
            error(403, "AuthorizationFailed"),
            error(403, "LinkedAuthorizationFailed"),
            error(400, "InvalidParameter"),
            error(404, "NotFound"),
            error(401, "ExpiredAuthenticationToken"),
        ],
    ),
    *again("PUT VM", [error(401, "ExpiredAuthenticationToken")]),
    *cases(
        "PUT VM",
        [
            Fault("operation", code=c)
            for c in (
                *AZURE_CAPACITY,
                "QuotaExceeded",
                "OSProvisioningTimedOut",
                "InternalExecutionError",
                "OperationPreempted",
            )
        ],
    ),
    *cases(
        "GET operation of VM",
        [
            *LOST,
            error(429, "TooManyRequests"),
            error(404, "NotFound"),
            error(403, "AuthorizationFailed"),
            error(401, "ExpiredAuthenticationToken"),
        ],
    ),
    *cases(
        "GET VM",
        [
            *LOST,
            error(429, "TooManyRequests"),
            error(404, "NotFound"),
            error(403, "AuthorizationFailed"),
            error(401, "ExpiredAuthenticationToken"),
        ],
        before=[("GET operation of VM", error(404, "NotFound"))],
    ),
    *[
        c
        for call in ("DELETE VM", "DELETE NIC", "DELETE disk")
        for c in cases(
            call,
            [Fault("closed before"), error(429, "TooManyRequests"), error(403, "ScopeLocked")],
            before=[NO_SKU],
            note=", undoing",
        )
    ],
    *[
        c
        for call, n in (("GET resources by tag", 3), ("GET VMs", 3), ("GET power states", 1))
        for c in cases(
            call,
            [
                *LOST,
                error(429, "TooManyRequests"),
                error(403, "AuthorizationFailed"),
                error(401, "ExpiredAuthenticationToken"),
            ],
            count=n,
        )
    ],
    *ends(
        "DELETE VM",
        [
            *TRANSPORT,
            error(429, "TooManyRequests"),
            error(500, "InternalServerError"),
            error(404, "ResourceNotFound"),
            error(409, "AnotherOperationInProgress"),
            error(403, "AuthorizationFailed"),
            error(401, "ExpiredAuthenticationToken"),
        ],
    ),
    *[
        c
        for call, missing in (("DELETE NIC", ["VM"]), ("DELETE disk", ["VM", "NIC"]))
        for c in cases(
            call,
            [Fault("closed before"), error(429, "TooManyRequests"), error(403, "ScopeLocked")],
            before=[("DELETE " + m, error(404, "ResourceNotFound")) for m in missing],
            note=", ending",
        )
    ],
    *cases("GET prices", [*LOST, error(429, "TooManyRequests")], count=2),
    *cases(
        "token",
        [
            *UNTOLD,
            error(400, "unauthorized_client"),
            error(401, "invalid_client"),
            error(429, "temporarily_unavailable"),
            error(500, "server_error"),
            error(503, "temporarily_unavailable"),
        ],
        before=[("PUT NIC", error(401, "ExpiredAuthenticationToken"))],
    ),
    *cases(
        "token",
        [Fault("closed before"), error(401, "invalid_client")],
        before=[("DELETE VM", error(401, "ExpiredAuthenticationToken"))],
        note=", ending",
    ),
    *cases(
        "token",
        [error(401, "invalid_client")],
        note=AFTER,
        before=[
            ("PUT VM", Fault("closed after")),
            ("PUT NIC", Fault("passes")),
            ("PUT NIC", error(401, "ExpiredAuthenticationToken")),
        ],
    ),
]
AZURE_PAGES = [
    *[
        c
        for call in ("GET resources by tag", "GET VMs", "GET power states")
        for c in cases(
            call + ", 2nd page",
            [*LOST, error(429, "TooManyRequests"), error(400, "InvalidSkipToken")],
            count=3,
        )
    ],
    *cases("GET prices, 2nd page", [*LOST, error(429, "TooManyRequests")], count=2),
]
AZURE_IDENTITY = [  # with the rights of belayd's managed identity
    *cases(
        "metadata token",
        [
            *UNTOLD,
            error(400, "invalid_request", "Identity not found"),
            error(404, "404 Not Found"),
            error(410, "410 Gone"),
            error(429, "429 Too Many Requests"),
            error(500, "unknown_source"),
            Fault("says", code="no token", message="{}"),
        ],
        before=[("PUT NIC", error(401, "ExpiredAuthenticationToken"))],
    ),
    *cases(
        "metadata token",
        [Fault("closed before"), error(400, "invalid_request", "Identity not found")],
        before=[("DELETE VM", error(401, "ExpiredAuthenticationToken"))],
        note=", ending",
    ),
]

LAUNCHING = ", of a launch"  # of calls that also have other purposes
TOO_OFTEN, UPSET, NO_KEY = (
    error(429, "1015"),
    error(500, "global/internal-error"),
    error(401, "global/invalid-api-key"),
)
LAMBDA = [
    *cases("launchInstance", TRANSPORT),
    *cases(
        "launchInstance",
        [
            error(400, "instance-operations/launch/insufficient-capacity"),
            error(400, "global/quota-exceeded"),
            error(400, "provider/quota-exceeded"),
            TOO_OFTEN,
            UPSET,
            error(503, "provider/internal-unavailable"),
            error(400, "global/invalid-parameters"),
            error(400, "global/object-does-not-exist"),
            error(400, "instance-operations/launch/file-system-in-wrong-region"),
            error(403, "global/account-inactive"),
            NO_KEY,
        ],
    ),
    *cases(
        "listInstances",
        [*LOST, TOO_OFTEN, UPSET, error(403, "global/forbidden"), NO_KEY],
        count=2,
        note=LAUNCHING,
    ),
    *cases(
        "listInstanceTypes",
        [*LOST, TOO_OFTEN, UPSET, error(403, "global/forbidden"), NO_KEY],
        note=LAUNCHING,
    ),
    *cases(
        "listInstances",
        [*LOST, TOO_OFTEN, UPSET, error(403, "global/forbidden"), NO_KEY],
        count=2,
        is_late=True,
    ),
    *ends(
        "terminateInstance",
        [
            *TRANSPORT,
            error(404, "global/object-does-not-exist"),
            TOO_OFTEN,
            UPSET,
            error(403, "global/forbidden"),
            NO_KEY,
        ],
    ),
]
LAMBDA_PRICES = cases(
    "listInstanceTypes", [*LOST, TOO_OFTEN, NO_KEY], is_late=True
)  # with frequent reads of prices


def parts(cases, **lab):
    """Cases with a launch that took effect run where machines boot slowly: the machine must not
    have joined before belayd tries again, half a second later.
    """
    after = [c for c in cases if c.note == AFTER]
    return [
        Part([c for c in cases if c not in after], rows=cases, **lab),
        Part(after, rows=[], boot_delay_ms=3000, **lab),
    ]


CASES = {
    "aws": [
        *parts(AWS),
        *parts(AWS_FLEET, fleet=True),
        Part(AWS_ROLE, identity=True),
        Part(AWS_PAGES, company=True),
    ],
    "azure": [*parts(AZURE), Part(AZURE_IDENTITY, identity=True), Part(AZURE_PAGES, company=True)],
    "gcp": [*parts(GCP), Part(GCP_IDENTITY, identity=True), Part(GCP_PAGES, company=True)],
    "lambda": [Part(LAMBDA), Part(LAMBDA_PRICES, prices=True)],
}
LONG_MS = 1000
OPERATIONS = {"gcp": "instances.insert", "azure": "virtualMachines/write/operation"}
ENDS = (
    "TerminateInstances",
    "terminateInstance",
    "instances.delete",
    "zoneOperations.get of delete",
    "DELETE VM",
    "DELETE NIC",
    "DELETE disk",
)
LAUNCHES = (
    "RunInstances",
    "CreateLaunchTemplate",
    "CreateFleet",
    "launchInstance",
    "instances.insert",
    "zoneOperations.get of insert",
    "instances.get",
    "PUT NIC",
    "PUT VM",
    "GET operation of VM",
)


# ---- a lab with the proxy ----

# Once they are answered, belayd has credentials.
FIRST_READS = {
    "aws": {"DescribeInstances", "DescribeSpotPriceHistory"},
    "azure": {"GET resources by tag", "GET prices"},
    "gcp": {"instances.aggregatedList"},
    "lambda": {"listInstances", "listInstanceTypes"},
}
ZONES = {"aws": "us-east-1a", "azure": "1", "gcp": "us-central1-a", "lambda": "us-west-2"}
# A node that is no longer wanted usually powers itself off. These do not, so that the provider must
# end them.
STAYS_UP = "sleep 600 </dev/null >/dev/null 2>&1 &"


class FaultyLab(Lab):
    """identity: belayd has only the credentials of its machine's metadata service. fleet: four
    offers that EC2 may choose from. company: a machine that always exists, and listings with one
    machine a page. prices: of Lambda, whose types are read in one way for launches and prices,
    as its listings are for launches and sweeps: prices are read often instead of rarely.
    """

    def __init__(
        self, provider, identity=False, fleet=False, company=False, prices=False, boot_delay_ms=300
    ):
        cloud = {"boot_delay_ms": boot_delay_ms}
        pool = {
            "markets": ["spot"],
            "zones": [ZONES[provider]],
            "max_nodes": 4,
            "idle_timeout": "100ms",
            "cooldown": "0s",
            "refusal_backoff": "100ms",
        }
        belayd = {
            "lease": "30s",
            "sweep": "500ms",
            "busy_sweep": "200ms",
            "settle": "300ms",
            "price_every": "500ms",
        }
        if provider == "lambda":
            del pool["markets"], pool["zones"]
            belayd.update(
                {"price_every": "500ms"} if prices else {"sweep": "1h", "price_every": "1h"}
            )
        if company and provider != "gcp":  # there the proxy forces pages
            cloud["page"] = 1
        if fleet:
            cloud["pools"] = [
                {"zone": zone, "type": type, "spot": {"capacity": 8, "usd_per_hour": usd}}
                for (zone, type), usd in FLEET_USD.items()
            ]
            pool.update(
                allocation="fleet",
                zones=["us-east-1a", "us-east-1b"],
                types=["g6.xlarge", "g5.xlarge"],
            )
        super().__init__(
            provider=provider, agent_prelude=STAYS_UP, cloud=cloud, pool=pool, belayd=belayd
        )
        self.identity, self.fleet, self.company = identity, fleet, company
        self.proxy = None
        self.n_pools = 0

    def access(self, provider, ports):
        key = "ec2" if self.provider == "aws" else self.provider
        access = super().access(provider, ports)
        self.proxy = Proxy(
            self.provider, ports[key], self.metadata(access) if self.identity else None
        )
        for place in ("endpoint", "login", "prices"):
            if place in access:
                access[place] = self.proxy.url
        if self.provider == "gcp":
            with open(access["credentials"]) as f:
                account = json.load(f)
            access["credentials"] = self.write(
                "account.json", {**account, "token_uri": self.proxy.url + "/token"}
            )
        if self.identity:
            self.env["HOME"] = self.dir  # without credentials
            del access["credentials"]
            access["metadata"] = self.proxy.url
        return access

    def up(self):
        """Reads at belayd's start would consume the faults of a launch."""
        super().up()
        first = FIRST_READS[self.provider]
        self.wait(lambda: first <= self.proxy.answered, "belayd's first reads")

    def metadata(self, access):
        """Path -> function that returns the reply of belayd's own metadata service."""
        if self.provider == "aws":
            root = "/latest/meta-data/iam/security-credentials/"
            keys = json.dumps(
                {
                    "Code": "Success",
                    "AccessKeyId": ACCESS_KEY,
                    "SecretAccessKey": SECRET_KEY,
                    "Token": "",
                    "Expiration": "2100-01-01T00:00:00Z",
                }
            )
            return {
                "/latest/api/token": lambda: "token",
                root: lambda: "belay",
                root + "belay": lambda: keys,
            }
        with open(access["credentials"]) as f:
            keys = json.load(f)
        if self.provider == "gcp":
            pem = self.write("key.pem", keys["private_key"])
            return {
                "/computeMetadata/v1/instance/service-accounts/default/token": lambda: token_gcp(
                    keys, pem
                )
            }
        return {"/metadata/identity/oauth2/token": lambda: token_azure(access["login"], keys)}

    def prepare(self):
        """The resources before all cases."""
        if not self.company:
            return
        self.company = self.submit("plain.sh", 100000, 1, cpus=min(4, len(os.sched_getaffinity(0))))
        # A machine that Google has preempted twice: listings of preemptions have two pages.
        for n in range(1, 4 if self.provider == "gcp" else 2):
            self.wait_event(self.company, "started", n)
            if n < 3 and self.provider == "gcp":
                self.cloud(
                    {
                        "reclaim": {
                            "instance": self.emulated(self.instance_of(self.company))["instance"],
                            "without_notice": True,
                        }
                    }
                )
        self.wait(
            lambda: [i["state"] for i in self.get("/instances")["instances"]] == ["running"],
            "one machine",
        )
        self.company_was = ("running", len(self.show(self.company)["attempts"]))

    def renew_pool(self):
        """Replaces the pool, whose offers may be avoided by now, by an equal one."""
        with open(self.config) as f:
            pool = json.load(f)["pools"]["cloud"]
        self.n_pools += 1
        self.post(
            "/pools",
            {"file": "pools.yaml", "text": json.dumps({"pools": {"cloud%d" % self.n_pools: pool}})},
        )

    def end(self):
        problems = super().end()
        if self.proxy:
            self.proxy.close()
        return problems


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token_gcp(key, pem):
    """A token signed by the account itself."""
    now = int(time.time())
    claims = {
        "iss": key["client_email"],
        "sub": key["client_email"],
        "iat": now,
        "exp": now + 3600,
        "scope": "https://www.googleapis.com/auth/cloud-platform",
    }
    text = ".".join(
        base64url(json.dumps(part).encode())
        for part in ({"alg": "RS256", "typ": "JWT", "kid": key["private_key_id"]}, claims)
    )
    signature = subprocess.run(
        ["openssl", "dgst", "-sha256", "-sign", pem],
        input=text.encode(),
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    return json.dumps(
        {
            "access_token": text + "." + base64url(signature),
            "expires_in": 3599,
            "token_type": "Bearer",
        }
    )


def token_azure(login, principal):
    """A token issued by the directory for the principal's secret."""
    form = urllib.parse.urlencode(
        {
            "grant_type": "client_credentials",
            "client_id": principal["appId"],
            "client_secret": principal["password"],
            "scope": "https://management.azure.com/.default",
        }
    )
    with urllib.request.urlopen(
        "%s/%s/oauth2/v2.0/token" % (login, principal["tenant"]), form.encode(), WAIT_S
    ) as reply:
        return reply.read().decode()


# ---- one case ----


def most_at_once(machines):
    """How many existed at the same time. One that ends when the next is launched does not count
    twice."""
    edges = sorted(
        [(m["launched_ms"], 1) for m in machines] + [(m["gone_ms"], -1) for m in machines]
    )
    alive = most = 0
    for _, step in edges:
        alive += step
        most = max(most, alive)
    return most


def left(state):
    """All resources: machines, including stopped ones, disks, interfaces, templates."""
    return {
        i["instance"] for i in state["instances"] if not i["gone_ms"] or i["state"] == "stopped"
    } | {r["name"] for p in state["providers"].values() for r in p.get("resources") or []}


def conclusion(case, refusals, n_others, told):
    """Several ways may lead to the conclusion, and which was first is a matter of milliseconds.
    Rows and machines must show that no other conclusion was drawn.
    """
    if refusals:
        code = re.search(r"refused: ([\w./-]+)", refusals[0]["text"])
        no = "no credentials" if "credentials" in refusals[0]["text"] else "no reason"
        how_long = (
            "for a while"
            if refusals[0]["a"] <= LONG_MS
            else "for long, shown to the job"
            if told
            else "for long"
        )
        return "refused (%s): offer%s avoided %s; another launch" % (
            code.group(1) if code else no,
            " and %d others" % n_others if n_others else "",
            how_long,
        )
    if case.fault.how == "dry":
        return "launched elsewhere: %d offer%s avoided for a while" % (
            n_others,
            "s" if n_others > 1 else "",
        )
    if case.call == "DeleteLaunchTemplate":
        return "unknown: deleted again"
    if (
        case.before == [NO_SKU]
        or case.note == LAUNCHING
        or any(c in LAUNCHES for c in case.calls())
    ):
        return "unknown: retried under its token unless the listing or the machine settles it first"
    if any(c in ENDS for c in case.calls()):
        return "unknown: terminated again while it is listed"
    return "unknown: read again"


def held_for(lab, job):
    """The text of belay why while an offer is avoided for long, "" otherwise."""
    return "; ".join(
        r["text"]
        for r in lab.get("/jobs/%d/why" % job)["reasons"]
        if r["code"] == "offer-refused" and re.search(r"tried again in \d+(\.\d+)?s", r["text"])
    )


def let_go_wrong(lab, case):
    for call, fault in case.before:
        lab.proxy.arm(call, [fault])
    if case.fault.how == "operation":
        lab.cloud(
            {
                "refuse": {
                    "action": OPERATIONS[lab.provider],
                    "code": case.fault.code,
                    "count": case.count,
                }
            }
        )
    elif case.fault.how == "dry":
        capacity(lab, case.fault.message, 0)
    elif not case.is_late:
        lab.proxy.arm(case.call, [case.fault] * case.count)


def capacity(lab, places, n):
    lab.cloud(
        [
            {"capacity": {"zone": zone, "type": type, "market": "spot", "n": n}}
            for zone, type in places
        ]
    )


def audit(lab):
    """The differences that belay audit finds. Retries an audit that could not list: Lambda's API
    limits calls per second, and a busy machine may make two in one."""
    for _ in range(5):
        differences = lab.post("/audit")["differences"]
        if not any(d["kind"] == "not-listed" for d in differences):
            break
    return differences


def run(lab, case):
    """Returns its text in the table; AssertionError if something is wrong."""
    if lab.fleet:
        lab.renew_pool()
    before = lab.state()
    last = max([i["id"] for i in lab.get("/instances?state=all")["instances"]], default=0)
    seen = lab.get("/events?after=%d" % lab.seen)["last"]
    let_go_wrong(lab, case)
    gate = os.path.join(lab.dir, "gate%d" % last) if lab.company else ""
    job = lab.submit("plain.sh", 1, 0.1, gate)
    if case.is_late:
        lab.wait_cloud(lambda s: s["alive"], "a machine is there")
        lab.proxy.arm(case.call, [case.fault] * case.count)
    if lab.company:  # there is a second page only while there are two machines
        lab.wait(lambda: lab.proxy.waiting(case.call) < case.count, "a fault has happened")
        lab.write(os.path.basename(gate), "")
    held = lab.wait(
        lambda: held_for(lab, job) or lab.job(job)["state"] == "ended",
        "it waits with a reason, or ends",
    )
    shown = lab.wait_ended(job)
    lab.wait(
        lambda: not any(i["id"] > last for i in lab.get("/instances")["instances"]),
        "every row is over",
        LEFT_S,
    )
    state = lab.wait_cloud(lambda s: left(s) == left(before), "nothing is left", LEFT_S)
    if lab.company and lab.proxy.waiting(case.call) < case.count:
        lab.proxy.disarm(case.call)  # because there may be only one page at the end
    lab.wait(
        lambda: not any(lab.proxy.waiting(c) for c in case.calls()), "every fault has happened"
    )
    if case.fault.how == "dry":
        capacity(lab, case.fault.message, 8)

    rows = [i for i in lab.get("/instances?state=all")["instances"] if i["id"] > last]
    machines = state["instances"][len(before["instances"]) :]
    events = lab.get("/events?after=%d" % seen)["events"]
    refusals = [e for e in events if e["kind"] == "launch-refused"]
    n_others = sum(e["kind"] == "offer-refused" for e in events)
    at_once = most_at_once(machines)
    problems = []
    if shown["job"]["end"] != "succeeded" or len(shown["attempts"]) != 1:
        problems.append("the job: %s, %d attempts" % (shown["job"]["end"], len(shown["attempts"])))
    if at_once != 1:
        problems.append("%d machines at once" % at_once)
    told = (
        not lab.fleet or n_others == len(FLEET) - 1
    )  # otherwise the job does not wait for the avoided offer
    if (
        any(e["a"] > LONG_MS for e in refusals)
        and told
        and not (isinstance(held, str) and case.reason in held)
    ):
        problems.append("belay why did not say %s: %s" % (case.reason, held))
    if len(rows) != 1 + len(refusals):
        problems.append("%d rows with %d refusals" % (len(rows), len(refusals)))
    problems += misplaced(rows, machines)
    if (
        lab.company
        and (lab.job(lab.company)["state"], len(lab.show(lab.company)["attempts"]))
        != lab.company_was
    ):
        problems.append("the other machine was lost")
    differences = audit(lab)
    if differences:
        problems.append("belay audit: %s" % differences)
    if problems:
        raise AssertionError("; ".join(problems))
    return "| %s | %s%s | %s | %s | %d | 0 |" % (
        case.call,
        case.fault,
        case.note,
        conclusion(case, refusals, n_others, told),
        "1" if len(rows) == 1 else "2+",
        len(machines),
    )


def misplaced(rows, machines):
    """belayd accounts for exactly the existing machines."""
    places = {m["instance"]: (m["zone"], m["type"]) for m in machines}
    for row in rows:
        there = places.get(row["provider_id"], (row["zone"], row["type"]))
        if (row["zone"], row["type"]) != there:
            yield "row %d is of %s %s, and its machine of %s %s" % (
                row["id"],
                row["type"],
                row["zone"],
                *there,
            )


# ---- all of them ----


class Lane(threading.Thread):
    """Runs cases in its own labs, taking from the longest list; a lab is used until a case fails in
    it."""

    def __init__(self, provider, parts, rows, lock):
        super().__init__()
        self.provider, self.parts, self.rows, self.lock, self.problems = (
            provider,
            parts,
            rows,
            lock,
            [],
        )
        self.n_done = 0  # cases started in the lab

    def choose(self):
        """A part, or None when nothing is left to start."""
        with self.lock:
            part = max(self.parts, key=lambda p: p.todo.qsize() / (p.n_lanes + 1))
            if part.todo.empty():
                return None
            part.n_lanes += 1
            return part

    def run(self):
        while (
            not self.problems or self.n_done
        ):  # otherwise the lab is at fault and would fail again
            part = self.choose()
            if not part:
                return
            self.n_done = 0
            try:
                with FaultyLab(self.provider, **part.lab) as lab:
                    lab.prepare()
                    self.work(lab, part.todo)
            except Exception as error:  # whatever it is, run the other cases too
                self.problems.append(
                    str(error) if isinstance(error, AssertionError) else traceback.format_exc()
                )
            with self.lock:
                part.n_lanes -= 1

    def work(self, lab, todo):
        while True:
            try:
                case = todo.get_nowait()
            except queue.Empty:
                return
            began = time.monotonic()
            self.n_done += 1
            try:
                self.rows[case] = run(lab, case)
            except AssertionError as error:
                raise AssertionError("%s: %s" % (case, error)) from None
            finally:
                print("%6.1f s  %s" % (time.monotonic() - began, case), flush=True)


def run_all(provider, only):
    """The rows of its table, in the order of the cases, and the failures."""
    rows, order, lock = {}, [], threading.Lock()
    for part in CASES[provider]:
        chosen = [c for c in part.cases if only in str(c)]
        order += [c for c in part.rows if only in str(c)]
        for case in sorted(chosen, key=lambda c: not c.is_long()):
            part.todo.put(case)
    lanes = [Lane(provider, CASES[provider], rows, lock) for _ in range(LANES)]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    return [rows[c] for c in order if c in rows], [p for lane in lanes for p in lane.problems]


HEAD = "| call | what happens to it | what belayd concludes | launches | machines | left |\n|---|---|---|---|---|---|\n"


def section(provider, text):
    """The position of the provider's rows: between its table's head and the next blank line."""
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
        problems.append(
            "docs/reference/cloud-failures.md says something else; --write puts this there:\n"
            + "".join(
                difflib.unified_diff(
                    text[start:end].splitlines(True),
                    table.splitlines(True),
                    "failures.md",
                    "this run",
                )
            )
        )
    for problem in problems:
        print("PROBLEM: " + problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
