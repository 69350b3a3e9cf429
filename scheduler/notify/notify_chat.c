/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/notify/notify_chat.h"

#include "base/json.h"
#include "base/str.h"
#include "base/time.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SLACK_HEADER_MAX 150
#define SLACK_SECTION_MAX 3000
#define SLACK_TEXT_MAX 12000 /* of all sections */
#define TEAMS_TEXT_MAX 12000 /* bytes; at most twice as many in JSON, of 28 KB with the card */
#define PAGERDUTY_SUMMARY_MAX 1024
#define TITLE_MAX 120

/* The first max bytes; a text that is cut ends with "...". */
static json_t *cut_text(const char *text, size_t max)
{
    struct buf b = {0};
    if (strlen(text) <= max)
        return json_text(text);
    buf_add(&b, text, str_cut(text, strlen(text), max - 3));
    buf_adds(&b, "...");
    json_t *v = json_text(buf_str(&b));
    buf_deinit(&b);
    return v;
}

static void add_object(struct buf *out, json_t *o)
{
    char *text = json_dump_text(o);
    buf_adds(out, text);
    free(text);
    json_decref(o);
}

/* ---- slack ---- */

/* Adds characters of text, with &, < and > as entities, as long as they fit into max bytes. Returns
 * the number of bytes of text that were added. */
static size_t add_escaped(struct buf *b, const char *text, size_t max)
{
    size_t n = 0, used = 0;
    while (text[n]) {
        const char *entity = text[n] == '&'   ? "&amp;"
                             : text[n] == '<' ? "&lt;"
                             : text[n] == '>' ? "&gt;"
                                              : NULL;
        size_t of = 1;
        while (((unsigned char)text[n + of] & 0xc0) == 0x80)
            of++;
        size_t size = entity ? strlen(entity) : of;
        if (used + size > max)
            break;
        if (entity)
            buf_adds(b, entity);
        else
            buf_add(b, text + n, of);
        used += size;
        n += of;
    }
    return n;
}

static json_t *slack_section(const char *text, size_t *ret_taken)
{
    struct buf b = {0};
    *ret_taken = add_escaped(&b, text, SLACK_SECTION_MAX);
    json_t *section = json_pack("{s:s, s:{s:s, s:o, s:b}}", "type", "section", "text", "type",
        "mrkdwn", "text", json_text(buf_str(&b)), "verbatim", 1);
    buf_deinit(&b);
    return section;
}

static void slack(const char *title, const char *text, struct buf *out)
{
    struct buf notice = {0};
    json_t *blocks = json_array();
    add_escaped(&notice, title, SLACK_SECTION_MAX);
    json_array_append_new(
        blocks, json_pack("{s:s, s:{s:s, s:o, s:b}}", "type", "header", "text", "type",
                    "plain_text", "text", cut_text(title, SLACK_HEADER_MAX), "emoji", 0));
    for (size_t at = 0, taken; text[at] && at < SLACK_TEXT_MAX; at += taken) {
        json_array_append_new(blocks, slack_section(text + at, &taken));
        if (taken == 0)
            break;
    }
    add_object(out, json_pack("{s:o, s:o}", "text", json_text(buf_str(&notice)), "blocks", blocks));
    buf_deinit(&notice);
}

/* ---- teams ---- */

static json_t *teams_text(const char *text, size_t max, bool is_title)
{
    return json_pack("{s:s, s:[{s:s, s:o, s:s, s:s}]}", "type", "RichTextBlock", "inlines", "type",
        "TextRun", "text", cut_text(text, max), "weight", is_title ? "Bolder" : "Default", "size",
        is_title ? "Medium" : "Default");
}

static void teams(const char *title, const char *text, struct buf *out)
{
    json_t *body = json_array();
    json_array_append_new(body, teams_text(title, TITLE_MAX * 4, true));
    if (text[0])
        json_array_append_new(body, teams_text(text, TEAMS_TEXT_MAX, false));
    add_object(out,
        json_pack("{s:s, s:[{s:s, s:n, s:{s:s, s:s, s:s, s:o, s:{s:s}}}]}", "type", "message",
            "attachments", "contentType", "application/vnd.microsoft.card.adaptive", "contentUrl",
            "content", "$schema", "http://adaptivecards.io/schemas/adaptive-card.json", "type",
            "AdaptiveCard", "version", "1.4", "body", body, "msteams", "width", "Full"));
}

/* ---- pagerduty ---- */

/* The severity of what is wrong; NULL if nothing is. */
static const char *severity_of(const struct outbox_row *r)
{
    switch (r->kind) {
    case NOTIFY_FAIL:
    case NOTIFY_TIME_LIMIT:
    case NOTIFY_INVALID_DEPEND:
    case NOTIFY_BOOTS:
    case NOTIFY_LATE:
    case NOTIFY_NODE_DRAINED:
        return "error";
    case NOTIFY_BUDGET:
        return r->pct >= 100 ? "error" : "warning";
    case NOTIFY_TIME_LIMIT_50:
    case NOTIFY_TIME_LIMIT_80:
    case NOTIFY_TIME_LIMIT_90:
    case NOTIFY_SPEND:
        return "warning";
    default:
        return NULL;
    }
}

/* What is wrong until it is resolved. */
static void add_dedup_key(const struct notify_facts *f, struct buf *b)
{
    const struct outbox_row *r = f->row;
    buf_printf(b, "belay-%.60s-", f->cluster_uid);
    if (r->cron != CORE_ID_NONE || (f->job && f->job->cron != CORE_ID_NONE))
        buf_printf(b, "cron-%" PRId64, r->cron != CORE_ID_NONE ? r->cron : f->job->cron);
    else if (f->job)
        buf_printf(b, "job-%" PRId64, r->job);
    else if (r->node[0])
        buf_printf(b, "node-%s", r->node);
    else if (r->kind == NOTIFY_SPEND)
        buf_printf(b, "spend-%s-%s-%" PRId64, spend_of_names[r->spend_of], r->subject, r->day.ms);
    else
        buf_printf(b, "%s-%s", r->pool[0] ? "pool" : "budget", r->pool[0] ? r->pool : r->budget);
}

static bool pagerduty(
    const struct notify_facts *f, const char *title, const char *routing_key, struct buf *out)
{
    const struct outbox_row *r = f->row;
    const char *severity = severity_of(r);
    bool resolves = r->kind == NOTIFY_END && r->end == END_SUCCEEDED;
    struct buf key = {0}, details = {0};
    char at[TIME_ISO_MAX];
    struct err unused;
    json_t *custom = NULL;
    if (!severity && !resolves)
        return false;
    add_dedup_key(f, &key);
    json_t *o = json_pack("{s:o, s:s, s:s}", "routing_key", json_text(routing_key), "event_action",
        resolves ? "resolve" : "trigger", "dedup_key", buf_str(&key));
    if (!resolves) {
        notify_body(f, &details);
        if (json_parse(buf_str(&details), details.len, 65536, &custom, &unused) != 0)
            custom = json_object();
        time_format_iso(r->at, at);
        json_object_set_new(o, "client", json_string("belay"));
        json_object_set_new(o, "payload",
            json_pack("{s:o, s:s, s:s, s:s, s:s, s:o}", "summary",
                cut_text(title, PAGERDUTY_SUMMARY_MAX), "source", f->cluster, "severity", severity,
                "timestamp", at, "class", notify_event_names[r->kind], "custom_details", custom));
    }
    add_object(out, o);
    buf_wipe(&key);
    buf_deinit(&details);
    return true;
}

/* ---- all ---- */

bool notify_chat_body(const struct notify_facts *f, enum notify_format format,
    const char *routing_key, struct buf *out)
{
    struct buf title = {0}, text = {0};
    bool is_sent = true;
    buf_printf(&title, "[belay %s] ", f->cluster);
    notify_title(f, &title);
    notify_more(f, &text);
    if (format == NOTIFY_SLACK)
        slack(buf_str(&title), buf_str(&text), out);
    else if (format == NOTIFY_TEAMS)
        teams(buf_str(&title), buf_str(&text), out);
    else
        is_sent = pagerduty(f, buf_str(&title), routing_key, out);
    buf_deinit(&title);
    buf_deinit(&text);
    return is_sent;
}
