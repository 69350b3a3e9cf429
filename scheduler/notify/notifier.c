/* SPDX-License-Identifier: Apache-2.0
 *
 * See notifier.h. Invariants:
 *  1. No input of a user reaches a shell: sendmail is run with the address as a separate argument
 *     after "--".
 *  2. A user's URL is connected to only where the guard allows it; a webhook of the configuration
 *     is not restricted. Whatever the cause of a failure, its user sees the same text after the
 *     same number of tries: neither statuses nor errors reveal what answers in a network that only
 *     belayd can reach, or which names its resolver knows.
 *  3. One mail at a time is sent to the SMTP server: its thread belongs to a small shared pool.
 */
#include "scheduler/notify/notifier.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/log_pace.h"
#include "base/mem.h"
#include "base/net/smtp.h"
#include "base/str.h"
#include "base/uv/http_client.h"
#include "scheduler/notify/night_reader.h"
#include "scheduler/notify/notify_chat.h"
#include "scheduler/notify/notify_text.h"
#include "scheduler/core/lifecycle/digest.h"
#include <ifaddrs.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

#define HTTP_MS 20000
#define REPLY_MAX 65536
#define SENDMAIL_MS 30000
#define SENDMAIL_OUTPUT_MAX 65536
#define SMTP_MS 25000
#define FILE_MAX 4096
/* the slots of the outbox, then those of reports */
#define DELIVERIES_MAX (OUTBOX_AT_ONCE + NOTIFIER_REPORTS_AT_ONCE)

struct delivery {
    struct notifier *notifier;
    bool is_busy, is_refused; /* is_refused: by the guard */
    /* the user must not learn what answers at the URL, or whether anything does */
    bool is_of_user;
    bool uses_smtp;
    outbox_done_fn done;
    void *ctx;
    char host[NOTIFY_HOST_MAX];
    struct http_call *call;
    struct run *run;
    struct timer failed; /* reports a failure later, never inside start */
    struct err e;
    int rc;
    /* for use by the thread: the configuration may change meanwhile */
    char *to, *from, *smtp, *user, *ca_file;
    struct buf text, password;
    /* a morning digest: */
    struct digest *digest; /* NULL for other notifications */
    struct night_wait wait;
    struct outbox_row row;
};

struct notifier {
    struct notifier_options o;
    struct outbox_port port;
    struct http_client *http;
    struct night_reader *nights;
    struct delivery deliveries[DELIVERIES_MAX];
    struct delivery *at_thread;   /* NULL if none */
    struct log_pace url_failures; /* limits the log of users' URLs that failed */
    bool destroyed, in_use; /* destroyed: freed with the last delivery, but not while in_use */
};

/* ---- the end of a delivery ---- */

static void release(struct notifier *n)
{
    for (size_t i = 0; i < DELIVERIES_MAX; i++)
        if (n->deliveries[i].is_busy)
            return;
    if (n->destroyed && !n->in_use) {
        free(n);
    }
}

static void on_failed(struct timer *t, void *ctx);

static void finish(struct delivery *l, int rc, const struct err *e)
{
    struct notifier *n = l->notifier;
    outbox_done_fn done = l->done;
    void *ctx = l->ctx;
    if (!n->destroyed) /* a mail on the thread may outlive the timers */
        timer_stop(n->o.timers, &l->failed);
    free(l->to);
    free(l->from);
    free(l->smtp);
    free(l->user);
    free(l->ca_file);
    free(l->digest);
    buf_wipe(&l->text); /* may have a routing key */
    buf_wipe(&l->password);
    *l = (struct delivery){.notifier = n};
    timer_init(&l->failed, on_failed, l);
    if (n->destroyed)
        release(n);
    else
        done(ctx, rc ? e : NULL);
}

static void on_failed(struct timer *t, void *ctx)
{
    struct delivery *l = ctx;
    const struct err e = l->e;
    (void)t;
    finish(l, l->rc, &e);
}

static void fail_later(struct delivery *l, int rc)
{
    l->rc = rc;
    timer_start(l->notifier->o.timers, &l->failed, 0);
}

/* ---- webhooks ---- */

static void own_addresses(struct notify_own *own)
{
    struct ifaddrs *list = NULL;
    own->is_incomplete = getifaddrs(&list) != 0;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next)
        if (i->ifa_addr &&
            (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6))
            notify_own_add(own, i->ifa_addr);
    if (list)
        freeifaddrs(list);
}

static bool may_connect(void *ctx, const struct sockaddr *address)
{
    struct delivery *l = ctx;
    struct notify_own own = {0};
    own_addresses(&own);
    l->is_refused = !notify_guard_allows(&l->notifier->o.config->guard, l->host, address, &own);
    return !l->is_refused;
}

/* Returns ERR_UNAVAILABLE if the receiver is busy or broken and may recover, ERR_INVALID if it
 * refused for good. */
static int check_status(int status, const char *host, struct err *e)
{
    if (status >= 200 && status < 300)
        return 0;
    bool later = status >= 500 || status == 408 || status == 425 || status == 429;
    return err_set(e, later ? ERR_UNAVAILABLE : ERR_INVALID, "%s answered %d%s", host, status,
        status >= 300 && status < 400 ? ", and redirects are not followed" : "");
}

static void on_reply(void *ctx, const struct err *e, const struct http_reply *reply)
{
    struct delivery *l = ctx;
    struct err why;
    int rc;
    if (reply) /* from an allowed address, even if the guard refused another one of the host */
        rc = check_status(reply->status, l->host, &why);
    else if (l->is_refused)
        rc = err_set(&why, ERR_DENIED,
            "%s has an address that users' notifications are not sent to (notify_allow)", l->host);
    else
        rc = err_set(&why, ERR_UNAVAILABLE, "%s %s", l->host,
            e->kind == ERR_TIMEOUT  ? "did not answer in time"
            : e->kind == ERR_DENIED ? "has no certificate that is trusted here"
                                    : "cannot be reached");
    l->call = NULL;
    if (rc != 0 && l->is_of_user) {
        struct notifier *n = l->notifier;
        int64_t left_out;
        if (!n->destroyed &&
            log_pace_admits(&n->url_failures, clock_mono(n->o.timers->clock), &left_out))
            log_info("a user's URL was not notified", log_s("host", l->host), log_err(&why),
                log_i("left_out", left_out));
        rc = err_set(&why, ERR_UNAVAILABLE,
            "%s was not notified: it did not accept the request, or is not allowed (notify_allow)",
            l->host);
    }
    finish(l, rc, &why);
}

static char *signature(const struct buf *secret, const struct buf *body)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    struct buf out = {0};
    HMAC(EVP_sha256(), secret->data, (int)secret->len, (const unsigned char *)body->data, body->len,
        mac, &n);
    buf_adds(&out, "X-Belay-Signature: sha256=");
    for (unsigned i = 0; i < n; i++)
        buf_printf(&out, "%02x", mac[i]);
    return buf_take(&out);
}

/* Posts the delivery's text. id NULL: none; secret NULL: not signed. */
static void post_text(struct delivery *l, const char *name, const char *id, const char *url,
    const struct buf *secret, bool is_users)
{
    char *event = mem_printf("X-Belay-Event: %s", name);
    char *number = id ? mem_printf("X-Belay-Id: %s", id) : NULL,
         *signed_by = secret ? signature(secret, &l->text) : NULL;
    const struct http_request r = {.method = "POST",
        .url = url,
        .headers = {"Content-Type: application/json", event, "User-Agent: belay",
            number ? number : signed_by, number ? signed_by : NULL},
        .body = l->text.data,
        .body_len = l->text.len,
        .timeout_ms = HTTP_MS,
        .max_reply_bytes = REPLY_MAX,
        .may_connect = is_users ? may_connect : NULL,
        .may_connect_ctx = l};
    l->call = http_start(l->notifier->http, &r, on_reply, l);
    free(event);
    free(number);
    free(signed_by);
}

static void post(struct delivery *l, const struct notify_facts *f, const char *url,
    const struct buf *secret, bool is_users)
{
    struct buf id = {0};
    notify_id(f, &id);
    notify_body(f, &l->text);
    post_text(l, notify_event_names[f->row->kind], buf_str(&id), url, secret, is_users);
    buf_deinit(&id);
}

static int read_line(const char *path, struct buf *out, struct err *e)
{
    int rc = fs_read_secret(path, FILE_MAX, out, e);
    while (rc == 0 && out->len > 0 && strchr("\r\n \t", out->data[out->len - 1]))
        out->data[--out->len] = '\0';
    if (rc != 0)
        e->kind = ERR_IO; /* retried: the file may be corrected */
    return rc ? ERR_IO : 0;
}

/* The body in the form of a chat or paging service. A service that has nothing to do with this
 * change counts as notified. */
static int post_chat(struct delivery *l, const struct notify_facts *f, const struct config_hook *h,
    const char *url, struct err *e)
{
    struct buf key = {0};
    int rc = h->key_file ? read_line(h->key_file, &key, e) : 0;
    if (rc == 0 && notify_chat_body(f, h->format, buf_str(&key), &l->text))
        post_text(l, notify_event_names[f->row->kind], NULL, url, NULL, false);
    else if (rc == 0)
        fail_later(l, 0);
    buf_wipe(&key);
    return rc;
}

/* ---- destinations of the job's user ---- */

/* user: whose URL it is. format is not NOTIFY_PAGERDUTY. */
static int start_sealed(struct delivery *l, const struct notify_facts *f, const char *user,
    const char *sealed, enum notify_format format, struct err *e)
{
    char *url;
    int rc = notify_unseal(l->notifier->o.sealer, user, sealed, &url, e);
    if (rc != 0)
        return rc;
    rc = notify_check_url(url, l->host, e);
    l->is_of_user = true;
    if (rc == 0 && format == NOTIFY_JSON)
        post(l, f, url, NULL, true);
    else if (rc == 0 && notify_chat_body(f, format, "", &l->text))
        post_text(l, notify_event_names[f->row->kind], NULL, url, NULL, true);
    else if (rc == 0)
        fail_later(l, 0);
    explicit_bzero(url, strlen(url));
    free(url);
    return rc;
}

static int start_url(struct delivery *l, const struct notify_facts *f, const char *user,
    const json_t *notify, const char *number, struct err *e)
{
    const char *sealed = json_string_value(
        json_array_get(json_object_get(notify, "urls"), (size_t)strtol(number, NULL, 10)));
    if (!sealed)
        return err_set(e, ERR_NOT_FOUND, "the job, or the cron entry, has no such URL");
    return start_sealed(l, f, user, sealed, NOTIFY_JSON, e);
}

/* ---- mail ---- */

static void on_mailed(void *ctx, const struct err *e, const struct runner_result *result)
{
    struct delivery *l = ctx;
    struct err why;
    int rc = 0;
    l->run = NULL;
    if (e)
        rc = err_set(&why, e->kind == ERR_NOT_FOUND ? ERR_NOT_FOUND : ERR_UNAVAILABLE, "%s: %s",
            l->notifier->o.config->sendmail,
            e->kind == ERR_NOT_FOUND
                ? "is not there: install a mail server, or set mail: smtp in belayd's configuration"
                : "it could not be run, or did not end");
    else if (result->exit_code != 0) /* EX_NOUSER, EX_NOHOST of sysexits.h */
        rc = err_set(&why,
            result->exit_code == 67 || result->exit_code == 68 ? ERR_INVALID : ERR_UNAVAILABLE,
            "%s ended with exit code %d", l->notifier->o.config->sendmail, result->exit_code);
    finish(l, rc, &why);
}

static void start_sendmail(struct delivery *l)
{
    const struct config_notify *c = l->notifier->o.config;
    const char *const argv[] = {c->sendmail, "-i", "-f", c->from, "--", l->to, NULL};
    const struct runner_command command = {.argv = argv,
        .input = l->text.data,
        .input_len = l->text.len,
        .timeout_ms = SENDMAIL_MS,
        .max_output_bytes = SENDMAIL_OUTPUT_MAX};
    l->run = runner_start(l->notifier->o.runner, &command, on_mailed, l);
}

static void on_thread(void *ctx)
{
    struct delivery *l = ctx;
    const struct smtp_mail m = {.url = l->smtp,
        .user = l->user,
        .password = l->password.len > 0 ? buf_str(&l->password) : NULL,
        .ca_file = l->ca_file,
        .from = l->from,
        .to = l->to,
        .text = l->text.data,
        .len = l->text.len,
        .timeout_ms = SMTP_MS};
    l->rc = smtp_send(&m, &l->e);
}

static void next_at_thread(struct notifier *n);

static void on_sent(void *ctx)
{
    struct delivery *l = ctx;
    struct notifier *n = l->notifier;
    const struct err e = l->e;
    int rc = l->rc;
    n->at_thread = NULL;
    if (!n->destroyed)
        next_at_thread(n);
    if (rc == ERR_DENIED)
        rc = ERR_UNAVAILABLE; /* retried: the password may be corrected */
    struct err result = e;
    result.kind = rc;
    finish(l, rc, &result);
}

static void next_at_thread(struct notifier *n)
{
    for (size_t i = 0; i < DELIVERIES_MAX && !n->at_thread; i++)
        if (n->deliveries[i].uses_smtp) {
            n->at_thread = &n->deliveries[i];
            n->at_thread->uses_smtp = false;
            uv_run_work(n->o.loop, on_thread, on_sent, n->at_thread);
        }
}

static const char *line_end(const struct config_notify *c)
{
    return c->smtp ? "\r\n" : "\n";
}

/* Mails the delivery's text, headers included. */
static int mail_text(struct delivery *l, const char *to, struct err *e)
{
    const struct config_notify *c = l->notifier->o.config;
    int rc = c->password_file ? read_line(c->password_file, &l->password, e) : 0;
    if (rc != 0)
        return rc;
    l->to = mem_strdup(to);
    if (!c->smtp) {
        start_sendmail(l);
        return 0;
    }
    l->from = mem_strdup(c->from);
    l->smtp = mem_strdup(c->smtp);
    l->user = mem_strdup(c->user);
    l->ca_file = mem_strdup(c->ca_file);
    l->uses_smtp = true;
    next_at_thread(l->notifier);
    return 0;
}

static int start_mail(
    struct delivery *l, const struct notify_facts *f, const char *to, struct err *e)
{
    const struct config_notify *c = l->notifier->o.config;
    int rc = notify_check_address(to, e);
    if (rc != 0)
        return rc;
    notify_mail(f, c->from, to, line_end(c), &l->text);
    return mail_text(l, to, e);
}

/* ---- destinations of the configuration ---- */

static int start_hook(
    struct delivery *l, const struct notify_facts *f, const char *name, struct err *e)
{
    const struct config_notify *c = l->notifier->o.config;
    struct buf url = {0}, secret = {0};
    int rc = 0;
    size_t i = 0;
    while (i < c->n_hooks && !str_eq(c->hooks[i].name, name))
        i++;
    if (i == c->n_hooks)
        return err_set(e, ERR_NOT_FOUND, "belayd's configuration no longer has a webhook %s", name);
    const struct config_hook *h = &c->files[i];
    if (h->mail_to)
        return start_mail(l, f, h->mail_to, e);
    if (h->url_file)
        rc = read_line(h->url_file, &url, e);
    if (rc == 0 && !h->url_file)
        buf_adds(&url, h->url);
    if (rc == 0 && h->secret_file)
        rc = read_line(h->secret_file, &secret, e);
    if (rc == 0 && notify_check_url(buf_str(&url), l->host, e) != 0)
        rc = err_set(e, ERR_IO, "the url_file of webhook %s holds no URL", name);
    if (rc == 0 && h->format != NOTIFY_JSON)
        rc = post_chat(l, f, h, buf_str(&url), e);
    else if (rc == 0)
        post(l, f, buf_str(&url), h->secret_file ? &secret : NULL, false);
    buf_wipe(&url);
    buf_wipe(&secret);
    return rc;
}

/* ---- reports ---- */

int notifier_send(struct notifier *n, const struct notify_report *r, const char *to, bool is_url,
    outbox_done_fn done, void *ctx, struct err *e)
{
    struct delivery *l = n->deliveries + OUTBOX_AT_ONCE;
    int rc;
    while (l < n->deliveries + DELIVERIES_MAX && l->is_busy)
        l++;
    if (l == n->deliveries + DELIVERIES_MAX)
        return err_set(e, ERR_UNAVAILABLE, "%d reports are being sent: try again in a minute",
            NOTIFIER_REPORTS_AT_ONCE);
    l->is_busy = true;
    l->done = done;
    l->ctx = ctx;
    if (is_url) {
        rc = notify_check_url(to, l->host, &l->e);
        notify_report_body(r, n->o.cluster_uid, n->o.cluster, &l->text);
        if (rc == 0)
            post_text(l, "report", NULL, to, NULL, true);
    } else {
        notify_report_mail(r, n->o.cluster_uid, n->o.cluster, n->o.config->from, to,
            line_end(n->o.config), &l->text);
        rc = mail_text(l, to, &l->e);
    }
    if (rc != 0)
        fail_later(l, rc);
    return 0;
}

/* Fails all reports while belayd's API, which owns the clients' requests, still exists. */
static void give_up_reports(struct notifier *n)
{
    struct err e;
    err_set(&e, ERR_UNAVAILABLE, "belayd is stopping");
    for (size_t i = OUTBOX_AT_ONCE; i < DELIVERIES_MAX; i++)
        if (n->deliveries[i].is_busy)
            n->deliveries[i].done(n->deliveries[i].ctx, &e);
}

void notifier_set_budgets(struct notifier *n, const struct config_budget *budgets, size_t n_budgets)
{
    n->o.budgets = budgets;
    n->o.n_budgets = n_budgets;
}

void notifier_set_digest_zone(struct notifier *n, const struct time_zone *zone)
{
    n->o.digest_zone = zone;
}

/* ---- all deliveries ---- */

/* notify: the addresses of a job's specification. */
static int start_of(struct delivery *l, const struct notify_facts *f, const char *user,
    const json_t *notify, struct err *e)
{
    const char *to = json_string_value(json_object_get(notify, "mail_user"));
    return str_starts(f->row->target, "url:") ? start_url(l, f, user, notify, f->row->target + 4, e)
                                              : start_mail(l, f, to && *to ? to : user, e);
}

/* The target is "mail:N", with the index N of an address of the budget. */
static int start_of_budget(struct delivery *l, const struct notify_facts *f, struct err *e)
{
    const struct notifier_options *o = &l->notifier->o;
    long k = str_starts(f->row->target, "mail:") ? strtol(f->row->target + 5, NULL, 10)
                                                 : BUDGET_MAILS_MAX;
    for (size_t i = 0; i < o->n_budgets && k >= 0 && k < BUDGET_MAILS_MAX; i++)
        if (str_eq(o->budgets[i].options.name, f->row->budget) && k < o->budgets[i].options.n_mails)
            return start_mail(l, f, o->budgets[i].mails[k], e);
    return err_set(e, ERR_NOT_FOUND,
        "belayd's configuration no longer has this address of budget %s", f->row->budget);
}

static int start_of_user(struct delivery *l, const struct notify_facts *f, struct err *e)
{
    struct spec_change spec = {0};
    int rc = db_read_spec(l->notifier->o.reader, f->job->id, &spec, e);
    json_t *notify = rc == 0 && spec.notify_json ? json_loads(spec.notify_json, 0, NULL) : NULL;
    if (rc == 0)
        rc = start_of(l, f, f->job->user, notify, e);
    json_decref(notify);
    spec_change_deinit(&spec);
    return rc;
}

/* To the user of a cron entry, as its jobs would notify. */
static int start_of_cron(struct delivery *l, const struct notify_facts *f, struct err *e)
{
    char *text = NULL;
    int rc = db_read_cron_job(l->notifier->o.reader, f->cron->id, &text, e);
    json_t *job = rc == 0 ? json_loads(text, 0, NULL) : NULL;
    if (rc == 0)
        rc = start_of(l, f, f->cron->user, json_object_get(job, "notify"), e);
    json_decref(job);
    free(text);
    return rc;
}

/* To an address of the configuration ("mail:N"), or of a user: where their morning digest goes, or
 * their name. An address that is configured no more counts as notified. */
static int start_of_spending(struct delivery *l, const struct notify_facts *f, struct err *e)
{
    const struct config_spend *c = l->notifier->o.spend;
    const char *user = f->row->user;
    long k = str_starts(f->row->target, "mail:") ? strtol(f->row->target + 5, NULL, 10) : -1;
    if (user[0]) {
        const char *to = core_digest_mail(tick_model(l->notifier->o.tick), user);
        return start_mail(l, f, to ? to : user, e);
    }
    if (k >= 0 && k < c->n_mails)
        return start_mail(l, f, c->mails[k], e);
    fail_later(l, 0);
    return 0;
}

/* ---- morning digests ---- */

/* To an address of the configuration ("mail:N"), or the address or URL of the user who subscribed.
 * A subscription that has ended, and an address that is configured no more, count as notified. */
static int send_digest(struct delivery *l, const struct notify_facts *f, struct err *e)
{
    const struct notifier_options *o = &l->notifier->o;
    const struct digest_row *of = core_digest_of(tick_model(o->tick), l->row.user);
    const char *to = NULL;
    if (of && of->url[0] && str_starts(l->row.target, "url:"))
        return start_sealed(l, f, l->row.user, of->url, of->format, e);
    long k = str_starts(l->row.target, "mail:") ? strtol(l->row.target + 5, NULL, 10) : -1;
    if (l->row.user[0])
        to = str_eq(l->row.target, "mail") && of && of->mail[0] ? of->mail : NULL;
    else if (k >= 0 && k < o->digest->options.n_mails)
        to = o->digest->mails[k];
    if (to)
        return start_mail(l, f, to, e);
    fail_later(l, 0);
    return 0;
}

static void on_night(void *ctx, const struct err *e, const struct night *night)
{
    struct delivery *l = ctx;
    const struct notifier *n = l->notifier;
    const struct notify_facts f = {.cluster_uid = n->o.cluster_uid,
        .cluster = n->o.cluster,
        .row = &l->row,
        .digest = l->digest};
    int rc = 0;
    if (e) {
        l->e = *e;
        fail_later(l, l->e.kind = ERR_IO); /* retried */
        return;
    }
    l->digest->night = *night;
    bool nothing = digest_is_empty(l->digest) && !n->o.digest->when_empty;
    if (!nothing)
        rc = str_starts(l->row.target, "hook:") ? start_hook(l, &f, l->row.target + 5, &l->e)
                                                : send_digest(l, &f, &l->e);
    if (nothing || rc != 0)
        fail_later(l, rc);
}

/* What happened is read once for all recipients, then the text is sent. */
static void start_digest(struct delivery *l, const struct outbox_row *row)
{
    const struct notifier_options *o = &l->notifier->o;
    l->row = *row;
    l->digest = mem_alloc(sizeof(*l->digest));
    *l->digest =
        (struct digest){.from = row->digest_from, .to = row->digest_to, .zone = o->digest_zone};
    STR_COPY(l->digest->user, row->user);
    digest_look(l->digest, tick_model(o->tick), tick_now(o->tick));
    l->wait = (struct night_wait){.from = row->digest_from,
        .to = row->digest_to,
        .user = l->digest->user,
        .done = on_night,
        .ctx = l};
    night_reader_get(l->notifier->nights, &l->wait);
}

static void start(
    struct outbox_port *port, const struct outbox_row *row, outbox_done_fn done, void *ctx)
{
    struct notifier *n = (struct notifier *)((char *)port - offsetof(struct notifier, port));
    struct delivery *l = n->deliveries;
    struct job_row job;
    struct cron_row cron;
    while (l->is_busy)
        l++;
    l->is_busy = true;
    l->done = done;
    l->ctx = ctx;
    if (row->kind == NOTIFY_DIGEST) {
        start_digest(l, row);
        return;
    }
    const struct notify_facts f = {.cluster_uid = n->o.cluster_uid,
        .cluster = n->o.cluster,
        .row = row,
        .job = row->job == CORE_ID_NONE ? NULL : &job,
        .cron = row->cron == CORE_ID_NONE ? NULL : &cron};
    int rc = f.job    ? db_read_job(n->o.reader, row->job, &job, &l->e)
             : f.cron ? db_read_cron(n->o.reader, row->cron, &cron, &l->e)
                      : 0;
    if (rc == 0)
        rc = str_starts(row->target, "hook:") ? start_hook(l, &f, row->target + 5, &l->e)
             : f.job                          ? start_of_user(l, &f, &l->e)
             : f.cron                         ? start_of_cron(l, &f, &l->e)
             : row->kind == NOTIFY_SPEND      ? start_of_spending(l, &f, &l->e)
                                              : start_of_budget(l, &f, &l->e);
    if (rc != 0)
        fail_later(l, rc);
}

struct notifier *notifier_create(const struct notifier_options *o)
{
    struct notifier *n = mem_alloc(sizeof(*n));
    *n = (struct notifier){.o = *o, .port.start = start, .http = uv_http_client_create(o->loop)};
    n->nights = night_reader_create(o->loop, o->timers, o->tick, o->db_path);
    uv_http_client_limit(n->http, DELIVERIES_MAX);
    for (size_t i = 0; i < DELIVERIES_MAX; i++) {
        n->deliveries[i].notifier = n;
        timer_init(&n->deliveries[i].failed, on_failed, &n->deliveries[i]);
    }
    return n;
}

struct outbox_port *notifier_port(struct notifier *n)
{
    return &n->port;
}

void notifier_destroy(struct notifier *n)
{
    if (!n)
        return;
    n->destroyed = n->in_use = true;
    give_up_reports(n);
    night_reader_destroy(n->nights);
    for (size_t i = 0; i < DELIVERIES_MAX; i++) {
        struct delivery *l = &n->deliveries[i];
        timer_stop(n->o.timers, &l->failed);
        l->uses_smtp = false;
        runner_cancel(n->o.runner, l->run);
        if (l->is_busy && l != n->at_thread && !l->run && !l->call)
            finish(l, 0, NULL);
    }
    uv_http_client_destroy(n->http);
    n->in_use = false;
    release(n);
}
