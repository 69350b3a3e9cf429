# SPDX-License-Identifier: Apache-2.0
"""Strict receivers of webhooks: what Slack, Teams and PagerDuty document, and nothing else, is
accepted. The sources are named in scheduler/notify/notify_chat.h.

Each check raises ValueError with the reason; the server then answers 400, as these services do.
"""

import http.server
import json
import queue
import re
import threading


def need(condition, why):
    if not condition:
        raise ValueError(why)


def members(value, required, optional=()):
    need(isinstance(value, dict), "not an object: %r" % (value,))
    need(set(required) <= set(value), "missing: %s" % (set(required) - set(value)))
    need(
        set(value) <= {*required, *optional}, "unknown: %s" % (set(value) - {*required, *optional})
    )


def text(value, most, least=1):
    need(isinstance(value, str) and least <= len(value) <= most, "text of %d: %r" % (most, value))


def escaped(value):
    need(not re.search(r"[<>]|&(?!(amp|lt|gt);)", value), "not escaped: %r" % value)


def slack_text(value, types, most):
    members(value, {"type", "text"}, {"emoji", "verbatim"})
    need(value["type"] in types, "type of a text: %r" % value["type"])
    need("emoji" not in value or value["type"] == "plain_text", "emoji is for plain_text")
    need("verbatim" not in value or value["type"] == "mrkdwn", "verbatim is for mrkdwn")
    text(value["text"], most)
    if value["type"] == "mrkdwn":
        escaped(value["text"])


def slack(body):
    members(body, {"text"}, {"blocks"})
    text(body["text"], 40000)
    escaped(body["text"])
    blocks = body.get("blocks", [])
    need(len(blocks) <= 50, "more than 50 blocks")
    for block in blocks:
        members(block, {"type", "text"})
        if block["type"] == "header":
            slack_text(block["text"], {"plain_text"}, 150)
        else:
            need(block["type"] == "section", "block %r" % block["type"])
            slack_text(block["text"], {"plain_text", "mrkdwn"}, 3000)
    need(sum(len(b["text"]["text"]) for b in blocks) <= 13000, "msg_blocks_too_long")


def teams(body, size):
    need(size <= 28 * 1024, "RequestEntityTooLarge")
    members(body, {"type", "attachments"})
    need(body["type"] == "message" and len(body["attachments"]) == 1, "one attachment of a message")
    attachment = body["attachments"][0]
    members(attachment, {"contentType", "content"}, {"contentUrl"})
    need(attachment["contentType"] == "application/vnd.microsoft.card.adaptive", "no adaptive card")
    need(attachment.get("contentUrl") is None, "contentUrl must be null")
    card = attachment["content"]
    members(card, {"type", "version", "body"}, {"$schema", "msteams"})
    need(card["type"] == "AdaptiveCard" and card["version"] == "1.4", "AdaptiveCard 1.4")
    need(card.get("msteams") in (None, {"width": "Full"}), "msteams")
    need(card["body"], "an empty card")
    for element in card["body"]:
        members(element, {"type", "inlines"})
        need(element["type"] == "RichTextBlock", "element %r" % element["type"])
        for run in element["inlines"]:
            members(run, {"type", "text"}, {"weight", "size"})
            need(run["type"] == "TextRun", "inline %r" % run["type"])
            need(run.get("weight", "Default") in {"Default", "Lighter", "Bolder"}, "weight")
            need(run.get("size", "Default") in {"Small", "Default", "Medium", "Large"}, "size")
            text(run["text"], 28 * 1024)


def pagerduty(body, size):
    need(size <= 512 * 1024, "more than 512 KB")
    members(body, {"routing_key", "event_action", "dedup_key"}, {"payload", "client", "client_url"})
    need(len(body["routing_key"]) == 32, "Length of 'routing_key' is incorrect")
    text(body["dedup_key"], 255)
    need(body["event_action"] in {"trigger", "resolve"}, "event_action")
    need(body["event_action"] != "trigger" or "payload" in body, "'payload' is missing")
    if "payload" in body:
        payload = body["payload"]
        members(
            payload,
            {"summary", "source", "severity"},
            {"timestamp", "component", "group", "class", "custom_details"},
        )
        text(payload["summary"], 1024)
        text(payload["source"], 1024)
        need(payload["severity"] in {"critical", "error", "warning", "info"}, "severity")
        need(
            re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", payload.get("timestamp")),
            "timestamp",
        )
        need(isinstance(payload.get("custom_details", {}), dict), "custom_details")


class Chat:
    """Serves /slack, /teams and /pagerduty; what was accepted and refused are queues of
    (path, body or reason)."""

    def __init__(self):
        self.accepted, self.refused = queue.Queue(), queue.Queue()
        chat = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                data = self.rfile.read(int(self.headers["Content-Length"]))
                try:
                    need(self.headers["Content-Type"].startswith("application/json"), "type")
                    body = json.loads(data.decode())
                    status = chat.check(self.path, body, len(data))
                    chat.accepted.put((self.path, body))
                except ValueError as e:
                    status = 400
                    chat.refused.put((self.path, "%s: %s" % (e, data)))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d" % self.http.server_port

    @staticmethod
    def check(path, body, size):
        if path == "/slack":
            slack(body)
            return 200
        if path == "/teams":
            teams(body, size)
            return 202
        need(path == "/pagerduty", "no such service")
        pagerduty(body, size)
        return 202

    def close(self):
        self.http.shutdown()
        self.http.server_close()
