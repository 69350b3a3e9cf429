# SPDX-License-Identifier: Apache-2.0
"""Every string that a client of the API may write, by the OpenAPI document, with requests in which
each can be replaced by a text of an attacker; and every name of the configuration.

A string is named by its schema and its place there (JobSpec.args[]), or by its operation where the
schema has no name (drain_node.reason). KEY is a name that the client chooses in a mapping, * the
value of it.
"""

import copy
import json

# Texts of an attacker, numbered: with blanks, as names without blanks may be, and short.
FORMS = ("\"'><img src=x onerror=xss(%d)>", "<img/src=x/onerror=xss(%d)>", "<q%d>")

# What some strings have to begin with: without it they are refused, with it the rest is free.
BEGINS = {
    "JobSpec.script": "#!/bin/sh\n# ",
    "JobSpec.cwd": "/",
    "JobSpec.url": "https://x.example/?",
    "JobChange.url": "https://x.example/?",
    "JobSpec.notify.urls[]": "https://x.example/?",
    "JobSpec.notify.mail_user": "ada@",
    "DigestSubscribe.mail": "ada@",
    "DigestSubscribe.url": "https://x.example/?",
    "JobSpec.launch.image": "/",
    "grant_secret.add[]": "user:",
    "grant_secret.remove[]": "user:",
    "create_token.scope": "pool=",
}

# Strings that may be such a text. Whether a page of the console shows it.
ACCEPTED = {
    "JobSpec.script": False,
    "JobSpec.cwd": True,
    "JobSpec.name": True,
    "JobSpec.args[]": False,
    "JobSpec.env.*": False,
    "JobSpec.labels.*": True,
    "JobSpec.url": True,
    "JobSpec.launch.output": False,
    "JobSpec.launch.error": False,
    "JobSpec.launch.input": False,
    "JobSpec.launch.image": False,
    "JobChange.name": True,
    "JobChange.url": True,
    "compared.text": True,
    "grant_secret.add[]": True,
    "add_reservation.reason": True,
    "drain_node.reason": True,
    "apply_pools.file": False,
    "set_secret.owner": True,
    "set_secret.value": False,
    "exec.command[]": True,
}

# Strings that come to no page, and why. The texts of their requests are not tried.
KEPT_OUT = {
    "put_workdir": "files of a job, which no page shows",
    "add_workdir_pieces": "files of a job, which no page shows",
    "agent_workdir_pieces": "asked for by their hashes",
    "agent_output": "output of jobs: LOG of the test",
    "channel_input": "bytes to a program",
    "agent_channel_output": "bytes of a program to a terminal; the console has none",
    "apply_pools.text": "the configuration: NAMES",
    "apply_pools.expect": "compared, and not kept",
    "send_report.mail": "an address, as JobSpec.notify.mail_user",
    "send_report.url": "an address, as JobSpec.notify.urls[]",
    "send_report.subject": "goes into a mail or to a webhook, and is not kept",
    "send_report.text": "goes into a mail or to a webhook, and is not kept",
    "send_report.html": "goes into a mail or to a webhook, and is not kept",
    "login_session.token": "compared, and not kept",
    "login_link.link": "compared, and not kept",
    "login_token.device": "compared, and not kept",
    "login_refresh.refresh": "compared, and not kept",
}

JOB = {"script": "#!/bin/sh\n", "cwd": "/", "hold": True}


def requests(n, undisturbed):
    """schema -> valid requests, which together have all strings that are tried; n makes names new;
    undisturbed: a job whose result can be compared."""
    cron = {
        "name": "c%d" % n,
        "schedule": "0 3 * * *",
        "zone": "UTC",
        "job": {"script": "#!/bin/sh\n", "cwd": "/"},
    }
    during = {"from": "2027-01-0%dT00:00:00Z" % (1 + n % 9), "for_ms": 60000}
    change = [
        {"nodelist": "n"},
        {"exclude": "n"},
        {"gpus": 1, "gpu_model": "a100"},
        {"constraint": "ssd"},
        {"resources": {"r": 1}},
        {"licences": {"l": 1}},
        {"input": {"place": "aws/us-east-1", "bytes": 1}},
        {"url": "https://x.example/"},
        {"pool": "base"},
        {"team": "t"},
        {"qos": "q"},
        {"window": "night"},
    ]
    job = [
        {"name": "x", "args": ["a"], "env": {"X": "a"}, "labels": {"exp": "a"}},
        {"checkpoint": {"at": "06:00", "method": "coop"}},
        {"array": "0-1"},
        {"finish_at": "07:00", "work_ms": 3600000},
        {"launch": {"output": "/o", "error": "/e", "input": "/i"}},
        {"launch": {"image": "/x.sif"}},
        {"launch": {"secrets": ["s"]}},
        {"launch": {"workdir": "0" * 64}},
        {"notify": {"mail_types": ["end"], "mail_user": "ada@x.example"}},
        {"notify": {"urls": ["https://x.example/h"]}},
    ]
    return {
        "JobSpec": [{**JOB, **more} for more in job + change],
        "JobChange": [{"name": "x"}, {"tasks": "0", "name": "x"}, *change],
        "cancel_many": [{"jobs": ["99999"]}],
        "cancel": [{"tasks": "0"}],
        "compared": [{"number": 1, "with": undisturbed, "equal": False, "text": "a"}],
        "add_reservation": [
            {
                "name": "r%d" % n,
                "nodes": "n",
                "zone": "UTC",
                "reason": "a",
                "users": ["ada"],
                **during,
            },
            {"name": "p%d" % n, "pool": "base", "teams": ["t"], **during},
        ],
        "DigestSubscribe": [{"mail": "ada@x.example"}, {"url": "https://x.example/h"}],
        "CronNew": [{**cron, "skip_on": "days"}, {**cron, "only_on": "days", "done_by": "06:00"}],
        "CronChange": [
            {"name": "d%d" % n, "schedule": "0 4 * * *", "zone": "UTC", "done_by": "06:00"},
            {"skip_on": "days"},
            {"only_on": "days"},
        ],
        "run_cron_dates": [{"from": "2026-11-01", "to": "2026-11-02", "dry_run": True}],
        "set_calendar": [{"name": "k", "days": ["2026-12-25"]}],
        "remove_calendar": [{"name": "k"}],
        "drain_node": [{"reason": "a"}],
        "apply_pools": [{"file": "x", "text": "pools: {base: {}}\n", "dry_run": True}],
        "create_token": [
            {"kind": "api", "user": "bob", "scope": "metrics"},
            {"kind": "join", "pool": "base"},
        ],
        "set_secret": [
            {"name": "z", "value": "12345678", "owner": "ada"},
            {"name": "z", "value_hex": "31323334353637383930"},
        ],
        "grant_secret": [
            {"name": "s", "owner": "ada", "add": ["user:bob"]},
            {"name": "s", "remove": ["user:bob"]},
        ],
        "remove_secret": [{"name": "z", "owner": "ada"}],
        "exec": [{"command": ["true"], "tty": True, "term": "xterm"}],
    }


# Names of the configuration, each with one that is a name; NAME is where it stands.
NAMES = {
    "cluster": "cluster: NAME\npools: {base: {}}",
    "pools": "pools: {NAME: {}}",
    "resources of a pool": "pools: {base: {resources: {NAME: 1}}}",
    "users": "users: {NAME: member}",
    "teams": "teams: {NAME: {users: [ada]}}",
    "users of a team": "teams: {t: {users: [NAME]}}",
    "budgets": "budgets: {NAME: {usd_per_month: 1}}",
    "qos": "qos: {NAME: {}}",
    "calendars": "calendars: {NAME: [2026-12-25]}",
    "windows": 'windows: {NAME: {days: mon-fri, from: "22:00", to: "06:00"}}',
    "licences": "licences: {NAME: 1}",
    "node_types": "node_types: {NAME: {watts: {idle: 1, full: 2}}}",
    "racks": "node_types: {x: {watts: {idle: 1, full: 2}}}\n"
    "racks: {NAME: {max_kw: 1, nodes: {x: n1}}}",
    "webhooks": 'webhooks: {NAME: {url: "https://127.0.0.1/"}}',
}


def configuration(text, name):
    """The configuration with this name at NAME."""
    lines = ["listen: 127.0.0.1:0", text.replace("NAME", json.dumps(name))]
    if "cluster:" not in text:
        lines.append("cluster: lab")
    if "pools:" not in text:
        lines.append("pools: {base: {}}")
    return "\n".join(lines) + "\n"


def strings(document):
    """name -> the path of one operation that takes it."""
    found, seen = {}, set()

    def walk(schema, name, path):
        if "$ref" in schema:
            name = schema["$ref"].split("/")[-1]
            if name in seen:
                return
            seen.add(name)
            schema = document["components"]["schemas"][name]
        for part in ("oneOf", "anyOf", "allOf"):
            for other in schema.get(part, ()):
                walk(other, name, path)
        types = schema.get("type")
        if "string" in (types if isinstance(types, list) else [types]):
            if "enum" not in schema and "const" not in schema:
                found[name] = path
        for key, value in schema.get("properties", {}).items():
            walk(value, name + "." + key, path)
        if isinstance(schema.get("additionalProperties"), dict):
            found[name + ".KEY"] = path
            walk(schema["additionalProperties"], name + ".*", path)
        if "items" in schema:
            walk(schema["items"], name + "[]", path)

    for path, item in document["paths"].items():
        for method in ("post", "put", "patch", "delete"):
            body = item.get(method, {}).get("requestBody", {})
            for content in body.get("content", {}).values():
                walk(content["schema"], item[method]["operationId"], path)
    return found


def replaced(body, place, text):
    """The body with the text at this place: its part of the name, without the schema. None if the
    body has no such place."""
    body = copy.deepcopy(body)
    *way, last = place.replace("[]", ".[]").split(".")
    part = body
    for step in way:
        part = part.get(key_of(part, step)) if isinstance(part, dict) else None
    if isinstance(part, list) and last == "[]":
        part[0] = text
    elif isinstance(part, dict) and last == "KEY":
        part[text] = part.pop(key_of(part, "*"))
    elif isinstance(part, dict) and isinstance(part.get(key_of(part, last)), str):
        part[key_of(part, last)] = text
    else:
        return None
    return body


def key_of(part, step):
    return next(iter(part)) if step == "*" else step
