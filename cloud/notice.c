/* SPDX-License-Identifier: Apache-2.0
 *
 * Common code of all providers' readers (see notice_reader.h): rounds and their backoff, and
 * callbacks that may stop the reader.
 */
#include "base/http_date.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/notice.h"
#include "cloud/azure/notice.h"
#include "cloud/gcp/notice.h"
#include <stdio.h>
#include <string.h>

#define POLL_DEFAULT_MS 1000
#define POLL_BACKOFF_CAP_MS 5000
#define IDENTITY_TRIES 10
#define FAILURES_TO_LOG 5

static const struct notice_provider *const providers[] = {
    &aws_notice_provider, &azure_notice_provider, &gcp_notice_provider};
const char *const notice_provider_names[] = {
    "none", "aws", "azure", "gcp", "lambda", "static", NULL};

const char *notice_kind_name(enum notice_kind k)
{
    static const char *const names[] = {"none", "reclaim", "rebalance", "maintenance"};
    return (size_t)k < sizeof(names) / sizeof(names[0]) ? names[k] : "none";
}

/* ---- for the providers ---- */

static void free_reader(struct notice_reader *r)
{
    timer_stop(r->timers, &r->timer);
    r->provider->destroy(r);
}

/* After a callback: false if the callback stopped the reader, which is then freed. */
static bool end_call(struct notice_reader *r)
{
    bool continues = !r->stopped;
    r->calling = false;
    if (!continues)
        free_reader(r);
    return continues;
}

bool notice_reader_report(struct notice_reader *r, const struct notice *n)
{
    r->calling = true;
    r->on_notice(r->ctx, n);
    return end_call(r);
}

static bool finish_identity(struct notice_reader *r, const struct err *e)
{
    r->identity_reported = true;
    r->calling = true;
    r->on_identity(r->ctx, e, e ? NULL : &r->identity);
    return end_call(r);
}

bool notice_reader_report_identity(struct notice_reader *r)
{
    return finish_identity(r, NULL);
}

bool notice_reader_identity_failed(struct notice_reader *r, const struct err *e)
{
    return r->identity_reported || ++r->identity_tries < IDENTITY_TRIES || finish_identity(r, e);
}

/* Tolerance: the reply took a while, and the header is cut to a second. */
#define CLOCKS_AGREE_MS 2000

struct wall notice_provider_now(const struct notice_reader *r, const char *date, bool *ret_is_dated)
{
    struct wall own = clock_wall(r->timers->clock), theirs;
    bool is_dated = http_date_parse(date, &theirs, NULL) == 0;
    if (ret_is_dated)
        *ret_is_dated = is_dated;
    if (!is_dated)
        return own;
    bool agrees = own.ms >= theirs.ms - CLOCKS_AGREE_MS && own.ms <= theirs.ms + CLOCKS_AGREE_MS;
    return agrees ? own : (struct wall){theirs.ms + 500};
}

int64_t notice_left_ms(struct wall at, struct wall provider_now, bool is_dated, bool is_new,
    int64_t least_ms, int64_t most_ms)
{
    int64_t left_ms = wall_is_set(at) ? at.ms - provider_now.ms : 0;
    if (is_new && !is_dated && left_ms < least_ms)
        left_ms = least_ms;
    if (left_ms <= 0 && (is_new || (wall_is_set(at) && !is_dated)))
        left_ms = least_ms;
    return left_ms < 0 ? 0 : left_ms > most_ms ? most_ms : left_ms;
}

/* Finds "+02:00" or "-0700" at the end of text: its position, and the offset. NULL if absent. */
static const char *find_offset(const char *text, int64_t *ret_ms)
{
    size_t n = strlen(text);
    int hours, minutes, used = 0;
    for (size_t length = 5; length <= 6 && length < n; length++) {
        const char *at = text + n - length;
        const char *form = length == 5 ? "%2d%2d%n" : "%2d:%2d%n";
        if ((*at == '+' || *at == '-') && strspn(at + 1, "0123456789:") == length - 1 &&
            sscanf(at + 1, form, &hours, &minutes, &used) == 2 && (size_t)used == length - 1 &&
            hours < 24 && minutes < 60) {
            *ret_ms = (*at == '-' ? -1 : 1) * SECONDS_MS(60) * (60 * hours + minutes);
            return at;
        }
    }
    return NULL;
}

int notice_parse_time(const char *text, struct wall *ret_wall, struct err *e)
{
    char utc[64];
    int64_t offset_ms = 0;
    struct wall at;
    const char *offset = find_offset(text, &offset_ms);
    size_t n = offset ? (size_t)(offset - text) : strlen(text);
    if (n + sizeof("GMT") > sizeof(utc))
        return err_set(e, ERR_INVALID, "a time of %zu bytes", strlen(text));
    snprintf(utc, sizeof(utc), "%.*s%s", (int)n, text,
        !offset                       ? ""
        : n > 0 && text[n - 1] == ' ' ? "GMT"
                                      : "Z");
    if (http_date_parse(utc, &at, NULL) != 0 && time_parse_iso(utc, &at, NULL) != 0) {
        char shown[STR_SHOW_MAX];
        return err_set(e, ERR_INVALID,
            "expected a time like 2026-08-22T12:02:00Z or Sat, 22 Aug 2026 12:00:30 GMT, found %s",
            str_show(text, shown));
    }
    ret_wall->ms = at.ms - offset_ms;
    return 0;
}

static void count_round(struct notice_reader *r, const struct err *e)
{
    if (!e && r->failures >= FAILURES_TO_LOG)
        log_info("metadata service answers again", log_i("failures", r->failures));
    r->failures = e ? r->failures + 1 : 0;
    if (e && r->failures == FAILURES_TO_LOG)
        log_warn("metadata service fails: notices cannot be seen", log_i("failures", r->failures),
            log_err(e));
}

/* False if the reader was freed. */
static bool report_polled(struct notice_reader *r)
{
    r->poll = POLL_NONE;
    if (!r->on_polled)
        return true;
    r->calling = true;
    r->on_polled(r->ctx);
    return end_call(r);
}

static void begin_poll(struct notice_reader *r)
{
    r->poll = POLL_BEGUN;
    timer_start(r->timers, &r->timer, 0);
}

void notice_reader_round_ended(struct notice_reader *r, const struct err *e)
{
    if (r->poll == POLL_WANTED) {
        begin_poll(r);
        return;
    }
    count_round(r, e);
    if (e && !notice_reader_identity_failed(r, e))
        return;
    if (!e && r->poll == POLL_BEGUN && !report_polled(r))
        return;
    int64_t delay = r->poll_ms;
    for (int i = 0; i < r->failures && delay < POLL_BACKOFF_CAP_MS; i++)
        delay = 2 * delay > POLL_BACKOFF_CAP_MS ? POLL_BACKOFF_CAP_MS : 2 * delay;
    timer_start(r->timers, &r->timer, delay);
}

/* ---- for the agent ---- */

static void on_timer(struct timer *t, void *ctx)
{
    struct notice_reader *r = ctx;
    (void)t;
    r->provider->round(r);
}

/* Providers of elastic nodes that give no notice. */
static bool is_silent(const char *provider)
{
    return str_eq(provider, "none") || str_eq(provider, "lambda") || str_eq(provider, "static");
}

static const struct notice_provider *find_provider(const char *name)
{
    for (size_t i = 0; i < sizeof(providers) / sizeof(providers[0]); i++)
        if (str_eq(providers[i]->name, name))
            return providers[i];
    return NULL;
}

struct notice_reader *notice_reader_start(
    const char *provider, const struct notice_reader_options *o)
{
    const struct notice_provider *p = find_provider(provider);
    struct notice_reader *r = NULL;
    struct err e;
    if (is_silent(provider))
        return NULL;
    if (!p) {
        log_error("no notice reader for this provider: reclaims come without notice",
            log_s("provider", provider));
        return NULL;
    }
    if (p->create(o, &r, &e) != 0) {
        log_error("notice reader not started: reclaims come without notice", log_err(&e));
        return NULL;
    }
    r->provider = p;
    r->timers = o->timers;
    r->poll_ms = p->poll_ms > 0 ? p->poll_ms : POLL_DEFAULT_MS;
    if (o->poll_ms > 0)
        r->poll_ms = o->poll_ms;
    r->on_notice = o->on_notice;
    r->on_identity = o->on_identity;
    r->on_polled = o->on_polled;
    r->ctx = o->ctx;
    timer_init(&r->timer, on_timer, r);
    timer_start(r->timers, &r->timer, 0);
    return r;
}

void notice_reader_acknowledge(struct notice_reader *r)
{
    if (r && r->provider->acknowledge)
        r->provider->acknowledge(r);
}

void notice_reader_poll(struct notice_reader *r)
{
    if (!r || r->poll != POLL_NONE)
        return;
    if (timer_is_running(&r->timer)) { /* between two rounds */
        begin_poll(r);
        return;
    }
    r->poll = POLL_WANTED;
    if (r->provider->hasten)
        r->provider->hasten(r);
}

int64_t notice_reader_shutdown_ms(const struct notice_reader *r)
{
    return r && r->provider->shutdown_ms ? r->provider->shutdown_ms(r) : 0;
}

void notice_reader_stop(struct notice_reader *r)
{
    if (!r)
        return;
    if (r->calling)
        r->stopped = true;
    else
        free_reader(r);
}
