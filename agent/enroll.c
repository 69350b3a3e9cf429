/* SPDX-License-Identifier: Apache-2.0
 *
 *                 +-- failed: backoff --+
 *                 v                     |
 *   start ---> joining ----------------+---> joined ---- 2/3 of its life ---> renewing --+
 *                 ^                            ^  ^                              |  ^     | failed:
 *                 +------ refused, expired ----+  +------------ renewed ---------+  +-----+ backoff
 *
 * One request at a time; the timer waits either for the next try or for the renewal. A wrong clock
 * costs at most one early renewal at each start of the agent.
 */
#include "agent/enroll.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#define CALL_MS 30000
#define UPTIME_TEXT_MAX 128
#define RETRY_BASE_MS 400 /* first wait 200 .. 400 ms */
#define RETRY_CAP_MS 60000
#define SKEW_MAX_MS SECONDS_MS(300) /* a larger difference of the clocks causes a warning */
/* recheck periodically, because the wall clock may jump */
#define RENEW_SLEEP_MAX_MS SECONDS_MS(3600)

static void on_timer(struct timer *timer, void *ctx);

static void retry(struct enroll *en, const char *what, const struct err *e)
{
    int64_t wait_ms = prng_backoff_ms(en->prng, en->tries++, RETRY_BASE_MS, RETRY_CAP_MS);
    log_error(what, log_s("server", en->config->server), log_err(e), log_i("retry_in_ms", wait_ms));
    timer_start(en->timers, &en->timer, wait_ms);
}

static void watch_life(struct enroll *en)
{
    int64_t left_ms = identity_renew_in_ms(en->id, en->timers->clock);
    en->renewing = true;
    timer_start(
        en->timers, &en->timer, left_ms > RENEW_SLEEP_MAX_MS ? RENEW_SLEEP_MAX_MS : left_ms);
}

/* Compares this clock with belayd's, which has just issued a certificate. Warns once. */
static void check_clock(struct enroll *en)
{
    int64_t ahead_ms = clock_wall(en->timers->clock).ms - en->id->issued_at.ms;
    if (en->warned_of_clock || (ahead_ms <= SKEW_MAX_MS && ahead_ms >= -SKEW_MAX_MS))
        return;
    en->warned_of_clock = true;
    log_warn(ahead_ms > 0 ? "this machine's clock is ahead of belayd's: correct whichever is wrong"
                          : "this machine's clock is behind belayd's: correct whichever is wrong",
        log_i("ms", ahead_ms > 0 ? ahead_ms : -ahead_ms));
}

static int take(
    struct enroll *en, const struct err *failed, const struct http_reply *reply, struct err *e)
{
    struct wire_joined joined;
    int rc = peer_check(failed, reply, e);
    if (!rc)
        rc = wire_joined_decode(buf_str(&reply->body), reply->body.len, &joined, e);
    if (!rc)
        rc = identity_accept(en->id, &joined, clock_mono(en->timers->clock), e);
    if (!rc) {
        en->tries = 0;
        check_clock(en);
    }
    return rc;
}

/* ---- join ---- */

static void on_join_reply(void *ctx, const struct err *failed, const struct http_reply *reply)
{
    struct enroll *en = ctx;
    struct err e;
    en->call = NULL;
    if (en->stopped)
        return;
    if (take(en, failed, reply, &e)) {
        retry(en, "joining the cluster failed", &e);
        return;
    }
    config_forget_token(en->config);
    log_info("joined", log_s("cluster", en->id->node.cluster), log_i("node", en->id->node.node),
        log_s("name", en->id->node.name));
    watch_life(en);
    en->on_joined(en->ctx);
}

/* Seconds since the machine's start, with two decimals; -1 if the file has no such number. */
static double uptime_in(const char *path)
{
    struct buf text = {0};
    struct err e;
    char *end;
    double s = -1;
    if (fs_read(path, UPTIME_TEXT_MAX, &text, &e) == 0) {
        s = strtod(buf_str(&text), &end);
        s = end == buf_str(&text) || !(s >= 0 && s < 1e12) ? -1 : s;
    }
    buf_deinit(&text);
    return s;
}

/* From the begin of the boot script (scheduler/userdata.sh) until now; 0 if unknown: the machine
 * has none, or was restarted since. */
static int64_t start_ms(const struct config *c)
{
    char *path = mem_printf("%s/booted", c->dir);
    double began = uptime_in(path), now = uptime_in("/proc/uptime");
    free(path);
    return began >= 0 && now > began ? (int64_t)(1000 * (now - began)) : 0;
}

static int join_message(const struct enroll *en, struct buf *out, struct err *e)
{
    struct wire_join m = {.cpus = en->resources.cpus,
        .memory_mib = en->resources.memory_mib,
        .gpus = en->resources.gpus};
    int rc = config_token(en->config, m.token, sizeof(m.token), e);
    if (!rc)
        rc = identity_csr(en->id, en->config->name, m.csr_pem, sizeof(m.csr_pem), e);
    STR_COPY(m.host, en->config->name);
    STR_COPY(m.version, BELAY_VERSION);
    m.criu = en->criu->can;
    STR_COPY(m.criu_text, en->criu->text);
    STR_COPY(m.features, en->config->features);
    STR_COPY(m.resources, en->config->resources);
    STR_COPY(m.gpu_model, en->resources.gpu.model);
    m.gpu_memory_mib = en->resources.gpu.memory_mib;
    m.start_ms = start_ms(en->config);
    STR_COPY(m.provider, en->provider);
    STR_COPY(m.instance_id, en->instance_id);
    if (!rc)
        wire_join_encode(&m, out);
    OPENSSL_cleanse(m.token, sizeof(m.token));
    return rc;
}

static void join(struct enroll *en)
{
    struct buf body = {0};
    struct err e;
    if (join_message(en, &body, &e))
        retry(en, "joining the cluster is not possible", &e);
    else
        en->call =
            peer_post(en->peer, "/agent/v1/join", body.data, body.len, CALL_MS, on_join_reply, en);
    buf_wipe(&body);
}

/* ---- renew ---- */

static void on_renew_reply(void *ctx, const struct err *failed, const struct http_reply *reply)
{
    struct enroll *en = ctx;
    struct err e;
    en->call = NULL;
    if (en->stopped)
        return;
    if (!en->renewing) { /* the certificate was refused meanwhile */
        timer_start(en->timers, &en->timer, 0);
        return;
    }
    if (take(en, failed, reply, &e)) {
        retry(en, "renewing the node's certificate failed", &e);
        return;
    }
    log_info("certificate renewed");
    watch_life(en);
}

static void renew(struct enroll *en)
{
    struct wire_renew m;
    struct buf body = {0};
    struct err e;
    if (identity_csr(en->id, en->id->node.name, m.csr_pem, sizeof(m.csr_pem), &e)) {
        retry(en, "renewing the node's certificate is not possible", &e);
        return;
    }
    wire_renew_encode(&m, &body);
    en->call =
        peer_post(en->peer, "/agent/v1/renew", body.data, body.len, CALL_MS, on_renew_reply, en);
    buf_deinit(&body);
}

/* ---- the timer ---- */

static void on_timer(struct timer *timer, void *ctx)
{
    struct enroll *en = ctx;
    (void)timer;
    if (!en->renewing)
        join(en);
    else if (identity_renew_in_ms(en->id, en->timers->clock) > 0)
        watch_life(en);
    else
        renew(en);
}

void enroll_start(struct enroll *en)
{
    timer_init(&en->timer, on_timer, en);
    if (identity_is_joined(en->id))
        watch_life(en);
    else
        join(en);
}

bool enroll_refused(struct enroll *en)
{
    char token[129];
    struct err e;
    if (!en->renewing)
        return true; /* already joining */
    if (config_token(en->config, token, sizeof(token), &e))
        return false;
    OPENSSL_cleanse(token, sizeof(token));
    log_warn("joining again", log_i("old_node", en->id->node.node));
    identity_forget(en->id);
    en->renewing = false;
    en->tries = 0;
    if (en->call)
        http_cancel(en->peer->http, en->call);
    else
        timer_start(en->timers, &en->timer, 0);
    return true;
}

void enroll_stop(struct enroll *en)
{
    en->stopped = true;
    timer_stop(en->timers, &en->timer);
    http_cancel(en->peer->http, en->call);
}
