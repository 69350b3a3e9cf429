/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/notify/notify_text.h"

#include "base/b64.h"
#include "base/http_date.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "scheduler/core/ledger/anomalies.h"
#include "scheduler/core/model/text.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* bytes of text in one encoded word of RFC 2047: 56 base64 digits, 68 characters with the
 * delimiters, of at most 75 */
#define WORD_BYTES 42

void notify_id(const struct notify_facts *f, struct buf *out)
{
    buf_printf(out, "%s-%" PRId64, f->cluster_uid, f->row->event);
}

static void set_time(json_t *o, const char *key, struct wall at)
{
    char text[TIME_ISO_MAX];
    if (wall_is_set(at))
        time_format_iso(at, text);
    json_object_set_new(o, key, wall_is_set(at) ? json_string(text) : json_null());
}

static bool has_ended(enum notify_event kind)
{
    return kind == NOTIFY_END || kind == NOTIFY_FAIL || kind == NOTIFY_TIME_LIMIT ||
           kind == NOTIFY_INVALID_DEPEND;
}

static void budget_body(const struct notify_facts *f, struct buf *out)
{
    const struct outbox_row *r = f->row;
    struct buf id = {0};
    notify_id(f, &id);
    json_t *o = json_pack("{s:s,s:s,s:s,s:s,s:i,s:I,s:I}", "id", buf_str(&id), "event",
        notify_event_names[r->kind], "cluster", f->cluster, "budget", r->budget, "percent",
        (int)r->pct, "spent_uusd", (json_int_t)r->spent_uusd, "cap_uusd", (json_int_t)r->cap_uusd);
    set_time(o, "at", r->at);
    json_add(out, o);
    buf_deinit(&id);
}

static struct anomaly_row anomaly_of(const struct outbox_row *r)
{
    struct anomaly_row a = {.of = r->spend_of,
        .day = r->day,
        .uusd = r->spent_uusd,
        .usual_uusd = r->cap_uusd,
        .weeks = r->pct};
    STR_COPY(a.subject, r->subject);
    return a;
}

static void spend_body(const struct notify_facts *f, struct buf *out)
{
    const struct outbox_row *r = f->row;
    struct buf id = {0};
    char day[TIME_ISO_MAX];
    notify_id(f, &id);
    time_format_iso(r->day, day);
    json_t *o = json_pack("{s:s,s:s,s:s,s:s,s:o,s:o,s:I,s:I,s:i}", "id", buf_str(&id), "event",
        notify_event_names[r->kind], "cluster", f->cluster, "of", spend_of_names[r->spend_of],
        "subject", json_text(r->subject), "day", json_stringn(day, 10), "spent_uusd",
        (json_int_t)r->spent_uusd, "usual_uusd", (json_int_t)r->cap_uusd, "weeks", (int)r->pct);
    set_time(o, "at", r->at);
    json_add(out, o);
    buf_deinit(&id);
}

static void pool_body(const struct notify_facts *f, struct buf *out)
{
    const struct outbox_row *r = f->row;
    struct buf id = {0};
    notify_id(f, &id);
    json_t *o =
        json_pack("{s:s,s:s,s:s,s:s,s:i}", "id", buf_str(&id), "event", notify_event_names[r->kind],
            "cluster", f->cluster, "pool", r->pool, "failed_boots", (int)r->pct);
    set_time(o, "at", r->at);
    json_add(out, o);
    buf_deinit(&id);
}

static void node_body(const struct notify_facts *f, struct buf *out)
{
    const struct outbox_row *r = f->row;
    struct buf id = {0};
    char undo[CORE_NAME_MAX + 32];
    json_t *jobs = json_array();
    notify_id(f, &id);
    snprintf(undo, sizeof(undo), "belay nodes undrain %s", r->node);
    for (const char *p = r->jobs; *p; p += strspn(p, ",")) {
        size_t n = strcspn(p, ",");
        json_array_append_new(jobs, json_stringn(p, n));
        p += n;
    }
    json_t *o = json_pack("{s:s,s:s,s:s,s:o,s:s,s:o,s:o,s:b,s:o}", "id", buf_str(&id), "event",
        notify_event_names[r->kind], "cluster", f->cluster, "node", json_text(r->node), "pool",
        r->pool, "reason", json_text(r->text), "jobs", jobs, "ends", r->pct != 0, "undo",
        json_text(undo));
    set_time(o, "at", r->at);
    json_add(out, o);
    buf_deinit(&id);
}

static void cron_body(const struct notify_facts *f, struct buf *out)
{
    const struct outbox_row *r = f->row;
    struct buf id = {0};
    notify_id(f, &id);
    json_t *o = json_pack("{s:s,s:s,s:s,s:I,s:o,s:o,s:o}", "id", buf_str(&id), "event",
        notify_event_names[r->kind], "cluster", f->cluster, "cron", (json_int_t)r->cron, "name",
        json_text(f->cron->name), "user", json_text(f->cron->user), "text", json_text(r->text));
    set_time(o, "scheduled_at", r->cron_at);
    set_time(o, "done_by", r->done_by);
    set_time(o, "at", r->at);
    json_add(out, o);
    buf_deinit(&id);
}

static void digest_body(const struct notify_facts *f, struct buf *out)
{
    struct buf id = {0};
    notify_id(f, &id);
    json_t *o = digest_json(f->digest);
    json_object_set_new(o, "id", json_string(buf_str(&id)));
    json_object_set_new(o, "event", json_string(notify_event_names[f->row->kind]));
    json_object_set_new(o, "cluster", json_text(f->cluster));
    set_time(o, "at", f->row->at);
    json_add(out, o);
    buf_deinit(&id);
}

static void add_idle_gpus(json_t *o, const struct outbox_row *r)
{
    set_time(o, "idle_since", r->idle_since);
    set_time(o, "parks_at", r->parks_at);
    json_object_set_new(o, "busy_below_percent", json_integer(r->pct));
    json_object_set_new(o, "uusd_per_hour", json_integer(r->spent_uusd));
}

void notify_body(const struct notify_facts *f, struct buf *out)
{
    if (f->digest) {
        digest_body(f, out);
        return;
    }
    if (f->cron) {
        cron_body(f, out);
        return;
    }
    if (f->row->kind == NOTIFY_BOOTS) {
        pool_body(f, out);
        return;
    }
    if (f->row->kind == NOTIFY_NODE_DRAINED) {
        node_body(f, out);
        return;
    }
    if (f->row->kind == NOTIFY_SPEND) {
        spend_body(f, out);
        return;
    }
    if (!f->job) {
        budget_body(f, out);
        return;
    }
    const struct outbox_row *r = f->row;
    struct buf id = {0};
    bool ended = has_ended(r->kind);
    notify_id(f, &id);
    json_t *o =
        json_pack("{s:s,s:s,s:s,s:I,s:I}", "id", buf_str(&id), "event", notify_event_names[r->kind],
            "cluster", f->cluster, "job", (json_int_t)r->job, "attempt", (json_int_t)r->attempt);
    set_time(o, "at", r->at);
    json_object_set_new(o, "ref", json_string(job_ref(f->job).s));
    json_object_set_new(o, "name", json_text(f->job->spec.name));
    json_object_set_new(o, "user", json_text(f->job->user));
    json_object_set_new(
        o, "team", f->job->spec.team[0] ? json_text(f->job->spec.team) : json_null());
    json_object_set_new(
        o, "array", f->job->array == CORE_ID_NONE ? json_null() : json_integer(f->job->array));
    json_object_set_new(o, "array_index",
        f->job->array == CORE_ID_NONE ? json_null() : json_integer(f->job->array_index));
    json_object_set_new(
        o, "end", r->end == END_NONE ? json_null() : json_string(end_kind_names[r->end]));
    json_object_set_new(o, "exit_code", ended ? json_integer(r->exit_code) : json_null());
    set_time(o, "submitted_at", f->job->submitted_at);
    set_time(o, "started_at", f->job->started_at);
    if (r->kind == NOTIFY_IDLE_GPUS)
        add_idle_gpus(o, r);
    char *text = json_dump_text(o);
    buf_adds(out, text);
    free(text);
    json_decref(o);
    buf_deinit(&id);
}

/* Writes for example: job 42 "train" of ann failed (failed), exit code 1 */
static void describe_job(const struct notify_facts *f, struct buf *out)
{
    static const char *const words[NOTIFY_EVENTS] = {[NOTIFY_BEGIN] = "has started",
        [NOTIFY_END] = "has ended",
        [NOTIFY_FAIL] = "failed",
        [NOTIFY_REQUEUE] = "was queued again",
        [NOTIFY_TIME_LIMIT] = "reached its time limit",
        [NOTIFY_TIME_LIMIT_50] = "has used 50 % of its time limit",
        [NOTIFY_TIME_LIMIT_80] = "has used 80 % of its time limit",
        [NOTIFY_TIME_LIMIT_90] = "has used 90 % of its time limit",
        [NOTIFY_INVALID_DEPEND] = "was given up: its dependencies can never come true",
        [NOTIFY_IDLE_GPUS] = "does not use its GPUs"};
    const struct outbox_row *r = f->row;
    buf_printf(out, "job %s \"%s\" of %s %s", job_ref(f->job).s, f->job->spec.name, f->job->user,
        words[r->kind]);
    if (r->kind == NOTIFY_FAIL || r->kind == NOTIFY_END || r->kind == NOTIFY_REQUEUE)
        buf_printf(out, " (%s)",
            r->kind == NOTIFY_REQUEUE ? "its last attempt ended before its time"
                                      : end_kind_names[r->end]);
    if (r->kind == NOTIFY_FAIL)
        buf_printf(out, ", exit code %d", (int)r->exit_code);
}

static void describe_cron(const struct notify_facts *f, struct buf *out)
{
    int minute = f->cron->done_by > 0 ? f->cron->done_by - 1 : 0;
    buf_printf(out, "cron entry \"%s\" of %s is not done by %02d:%02d", f->cron->name,
        f->cron->user, minute / 60, minute % 60);
}

static void describe_spending(const struct outbox_row *r, struct buf *out)
{
    const struct anomaly_row a = anomaly_of(r);
    char text[ANOMALY_TEXT_MAX];
    core_anomaly_text(&a, text);
    buf_adds(out, text);
}

void notify_title(const struct notify_facts *f, struct buf *out)
{
    const struct outbox_row *r = f->row;
    if (f->digest)
        digest_title(f->digest, out);
    else if (f->cron)
        describe_cron(f, out);
    else if (f->job)
        describe_job(f, out);
    else if (r->kind == NOTIFY_SPEND)
        describe_spending(r, out);
    else if (r->kind == NOTIFY_BOOTS)
        buf_printf(out, "pool %s: the last %d machines did not become nodes", r->pool, (int)r->pct);
    else if (r->kind == NOTIFY_NODE_DRAINED)
        buf_printf(out, "belay drained node %s of pool %s: %s", r->node, r->pool, r->text);
    else
        buf_printf(out, "budget %s: %d %% of $%.2f are spent", r->budget, (int)r->pct,
            (double)r->cap_uusd / 1e6);
    for (size_t i = 0; i < out->len; i++)
        if (iscntrl((unsigned char)out->data[i]))
            out->data[i] = '?';
}

/* What happens to its jobs and its machine, and how to undo it. */
static void add_drain_advice(const struct outbox_row *r, struct buf *out)
{
    if (r->jobs[0])
        buf_printf(out, "Jobs: %s. ", r->jobs);
    if (r->pct)
        buf_printf(out,
            "Its jobs are saved and run elsewhere; then its machine is ended, and another one is "
            "launched when jobs need it. To keep the machine: belay nodes undrain %s",
            r->node);
    else
        buf_printf(out,
            "Its jobs are saved and run elsewhere, and it takes no others. After a repair: belay "
            "nodes undrain %s",
            r->node);
}

void notify_more(const struct notify_facts *f, struct buf *out)
{
    const struct outbox_row *r = f->row;
    if (f->digest)
        digest_text(f->digest, out);
    else if (f->cron)
        buf_printf(out, "%s. belay cron history %" PRId64 " has more.", r->text, r->cron);
    else if (f->job)
        buf_printf(out, "belay show %s has more.", job_ref(f->job).s);
    else if (r->kind == NOTIFY_SPEND)
        buf_adds(out, "belay advise --anomalies has more, belay cost --by job names the jobs.");
    else if (r->kind == NOTIFY_BOOTS)
        buf_printf(out, "belay pools show %s has more.", r->pool);
    else if (r->kind == NOTIFY_NODE_DRAINED)
        add_drain_advice(r, out);
    else
        buf_printf(out, "$%.2f are spent. belay budget show %s has more.",
            (double)r->spent_uusd / 1e6, r->budget);
}

/* Since when, what it costs, what will happen and how to prevent it. */
static void describe_idle_gpus(const struct notify_facts *f, const char *eol, struct buf *out)
{
    const struct outbox_row *r = f->row;
    const struct job_ref job = job_ref(f->job);
    char since[TIME_ISO_MAX], parks[TIME_ISO_MAX];
    time_format_iso(r->idle_since, since);
    buf_printf(out,
        "%sSince %s each of them has been less than %d %% busy in every minute. The job costs "
        "$%.2f an hour.%s",
        eol, since, (int)r->pct, (double)r->spent_uusd / 1e6, eol);
    if (!wall_is_set(r->parks_at)) {
        buf_printf(out, "If it is not needed: belay cancel %s%s", job.s, eol);
        return;
    }
    time_format_iso(r->parks_at, parks);
    buf_printf(out,
        "At %s it will be saved and held, unless it uses them.%sTo keep it running: belay update "
        "%s idle-gpus=keep%sTo resume it after it was held: belay release %s%s",
        parks, eol, job.s, eol, job.s, eol);
}

/* Writes a text that is not ASCII as encoded words, split only between UTF-8 characters. */
static void add_subject(struct buf *out, const char *text, const char *eol)
{
    bool ascii = true;
    for (const char *p = text; *p; p++)
        ascii = ascii && (unsigned char)*p < 0x80;
    if (ascii) {
        buf_adds(out, text);
        return;
    }
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
        n = left < WORD_BYTES ? left : WORD_BYTES;
        while (n < left && n > 1 && ((unsigned char)text[n] & 0xc0) == 0x80)
            n--;
        buf_adds(out, "=?utf-8?B?");
        b64_encode(out, text, n);
        buf_adds(out, "?=");
        if (left > n)
            buf_printf(out, "%s ", eol);
    }
}

/* Writes the date of RFC 5322: that of HTTP with a numeric zone. */
static void add_date(struct buf *out, struct wall at)
{
    char date[HTTP_DATE_MAX];
    http_date_write(at, date);
    buf_printf(out, "%.*s+0000", (int)(strlen(date) - strlen("GMT")), date);
}

static void add_digest(const struct digest *d, const char *eol, struct buf *out)
{
    struct buf text = {0};
    digest_text(d, &text);
    for (const char *p = buf_str(&text); *p; p++)
        if (*p == '\n')
            buf_adds(out, eol);
        else
            buf_add(out, p, 1);
    buf_printf(
        out, "%sbelay digest prints it again, belay digest --date DAY that of a day.%s", eol, eol);
    buf_deinit(&text);
}

void notify_mail(const struct notify_facts *f, const char *from, const char *to, const char *eol,
    struct buf *out)
{
    struct buf words = {0}, id = {0};
    char at[TIME_ISO_MAX];
    notify_title(f, &words);
    notify_id(f, &id);
    time_format_iso(f->row->at, at);
    buf_printf(out, "From: %s%sTo: %s%sSubject: [belay %s] ", from, eol, to, eol, f->cluster);
    add_subject(out, buf_str(&words), eol);
    buf_printf(out, "%sDate: ", eol);
    add_date(out, f->row->at);
    buf_printf(out,
        "%sMessage-ID: <%s@belay.invalid>%sAuto-Submitted: auto-generated%sMIME-Version: 1.0%s"
        "Content-Type: text/plain; charset=utf-8%sContent-Transfer-Encoding: 8bit%s%s",
        eol, buf_str(&id), eol, eol, eol, eol, eol, eol);
    if (f->digest)
        add_digest(f->digest, eol, out);
    else if (f->cron)
        buf_printf(out, "%s: %s.%s%sbelay cron history %" PRId64 " has more.%s", buf_str(&words),
            f->row->text, eol, eol, f->row->cron, eol);
    else if (f->job) {
        buf_printf(out, "%s, at %s.%s", buf_str(&words), at, eol);
        if (f->row->kind == NOTIFY_IDLE_GPUS)
            describe_idle_gpus(f, eol, out);
        buf_printf(out, "%sbelay show %s has more.%s", eol, job_ref(f->job).s, eol);
    } else if (f->row->kind == NOTIFY_BOOTS || f->row->kind == NOTIFY_NODE_DRAINED ||
               f->row->kind == NOTIFY_SPEND) {
        buf_printf(out, "%s, at %s.%s%s", buf_str(&words), at, eol, eol);
        notify_more(f, out);
        buf_adds(out, eol);
    } else
        buf_printf(out, "%s, at %s: $%.2f.%s%sbelay budget show %s has more.%s", buf_str(&words),
            at, (double)f->row->spent_uusd / 1e6, eol, eol, f->row->budget, eol);
    buf_deinit(&words);
    buf_deinit(&id);
}

/* ---- reports ---- */

#define LINE_BYTES 57             /* bytes of text in a base64 line of 76 characters */
#define BOUNDARY "=_belay_report" /* cannot occur in base64, which has no "--" */

static void add_part(struct buf *out, const char *type, const char *text, const char *eol)
{
    buf_printf(out, "Content-Type: text/%s; charset=utf-8%sContent-Transfer-Encoding: base64%s%s",
        type, eol, eol, eol);
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
        n = left < LINE_BYTES ? left : LINE_BYTES;
        b64_encode(out, text, n);
        buf_adds(out, eol);
    }
}

void notify_report_mail(const struct notify_report *r, const char *cluster_uid, const char *cluster,
    const char *from, const char *to, const char *eol, struct buf *out)
{
    char *subject = mem_strdup(r->subject);
    for (char *p = subject; *p; p++)
        if (iscntrl((unsigned char)*p))
            *p = '?';
    buf_printf(out, "From: %s%sTo: %s%sSubject: [belay %s] ", from, eol, to, eol, cluster);
    add_subject(out, subject, eol);
    buf_printf(out, "%sDate: ", eol);
    add_date(out, r->at);
    buf_printf(out,
        "%sMessage-ID: <report-%s-%" PRId64
        "@belay.invalid>%sAuto-Submitted: auto-generated%sMIME-Version: 1.0%s",
        eol, cluster_uid, r->at.ms, eol, eol, eol);
    if (r->html) {
        buf_printf(out,
            "Content-Type: multipart/alternative; boundary=\"" BOUNDARY "\"%s%s--" BOUNDARY "%s",
            eol, eol, eol);
        add_part(out, "plain", r->text, eol);
        buf_printf(out, "--" BOUNDARY "%s", eol);
        add_part(out, "html", r->html, eol);
        buf_printf(out, "--" BOUNDARY "--%s", eol);
    } else {
        add_part(out, "plain", r->text, eol);
    }
    free(subject);
}

void notify_report_body(
    const struct notify_report *r, const char *cluster_uid, const char *cluster, struct buf *out)
{
    char at[TIME_ISO_MAX];
    time_format_iso(r->at, at);
    json_t *o = json_pack("{s:s,s:o,s:s,s:s,s:o,s:o}", "event", "report", "cluster",
        json_text(cluster), "cluster_uid", cluster_uid, "at", at, "subject", json_text(r->subject),
        "text", json_text(r->text));
    char *text = json_dump_text(o);
    buf_adds(out, text);
    free(text);
    json_decref(o);
}
