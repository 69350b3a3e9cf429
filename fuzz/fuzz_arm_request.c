/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator's Azure: calls, one per line, METHOD TARGET BODY, to a region with two pools; lines
 * beginning with META go to the metadata service of the first machine, META METHOD TARGET BODY. For
 * any request the reply is JSON (or a leaf's text) with an HTTP status, no more instances run than
 * there is capacity for, and parts belong to existing machines.
 */
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "emulator/arm/arm.h"
#include "emulator/arm/metadata.h"
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_MAX 20
#define NOON_MS 1787400000000
#define CAPACITY 3
#define WORD_MAX 4096
#define TOKEN_TTL_MS 3600000
#define SUBSCRIPTION "00000000-0000-0000-0000-000000000001"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
    struct region region;
    struct journal journal;
    struct arm arm;
    struct wall now;
    char *authorization;
};

static void start(struct world *w, const struct region_options *o,
    const struct arm_account *account, struct arm_auth *auth)
{
    struct market_pool *pools = mem_array(2, sizeof(*pools));
    struct buf token = {0};
    for (int i = 0; i < 2; i++) {
        STR_COPY(pools[i].zone, i ? "2" : "1");
        STR_COPY(pools[i].type, "Standard_D8s_v5");
        pools[i].capacity[CLOUD_SPOT] = pools[i].capacity[CLOUD_ON_DEMAND] = CAPACITY;
        pools[i].price_uusd_h[CLOUD_SPOT] = pools[i].price_uusd_h[CLOUD_ON_DEMAND] = 500000;
    }
    *w = (struct world){.now = {NOON_MS}};
    region_init(&w->region, o, &w->journal, pools, 2, NULL, NULL, w->now);
    arm_init(&w->arm, &w->region, account, auth);
    buf_adds(&token, "Bearer ");
    arm_auth_token(auth, "c", ARM_AUDIENCE, TOKEN_TTL_MS, w->now, &token);
    w->authorization = buf_take(&token);
}

static void stop(struct world *w)
{
    arm_deinit(&w->arm);
    region_deinit(&w->region);
    journal_deinit(&w->journal);
    free(w->authorization);
}

static void check(const struct world *w)
{
    for (size_t i = 0; i < w->region.market.n_pools; i++)
        assert(w->region.market.pools[i].in_use[CLOUD_SPOT] <= CAPACITY &&
               w->region.market.pools[i].in_use[CLOUD_ON_DEMAND] <= CAPACITY);
    for (size_t i = 0; i < w->arm.n_resources; i++) {
        const struct arm_resource *owner = w->arm.resources[i]->owner;
        bool is_there = !owner;
        for (size_t k = 0; k < w->arm.n_resources; k++)
            is_there = is_there || w->arm.resources[k] == owner;
        assert(is_there);
    }
}

static void check_json(const char *text, size_t n)
{
    json_t *v = NULL;
    struct err e;
    int rc = json_parse(text, n, 16u << 20, &v, &e);
    assert(rc == 0);
    (void)rc;
    json_decref(v);
}

/* A copy of the text up to the next blank; advances *at past it. */
static char *word(const char **at, const char *end)
{
    const char *blank = memchr(*at, ' ', (size_t)(end - *at));
    const char *stop_at = blank ? blank : end;
    size_t n = (size_t)(stop_at - *at);
    char *text = mem_strndup(*at, n < WORD_MAX ? n : WORD_MAX);
    *at = blank ? blank + 1 : end;
    return text;
}

static void call_api(struct world *w, const char *method, const char *path, const char *query,
    const char *body, size_t n)
{
    const struct arm_request q = {.method = method,
        .path = path,
        .query = query,
        .base = "http://127.0.0.1:1",
        .authorization = w->authorization,
        .body = body,
        .body_len = n};
    struct arm_reply reply;
    char action[ARM_ACTION_MAX];
    arm_action(&q, action);
    arm_call(&w->arm, &q, w->now, &reply);
    char *text = arm_reply_text(&reply);
    assert(reply.status >= 200 && reply.status <= 504);
    if (text)
        check_json(text, strlen(text));
    free(text);
    arm_reply_deinit(&reply);
}

static void call_metadata(struct world *w, const char *method, const char *path, const char *query,
    const char *body, size_t n)
{
    const struct arm_metadata_request q = {.method = method,
        .path = path,
        .query = query,
        .metadata = "true",
        .body = body,
        .body_len = n};
    struct arm_metadata_reply reply;
    if (w->region.n_instances == 0)
        return;
    arm_metadata_answer(&w->arm, w->region.instances[0], &q, w->now, TOKEN_TTL_MS, &reply);
    assert(reply.status >= 200 && reply.status <= 504);
    if (!reply.is_text && reply.body.len > 0)
        check_json(buf_str(&reply.body), reply.body.len);
    buf_deinit(&reply.body);
}

static void call(struct world *w, const char *at, const char *end)
{
    char *method = word(&at, end);
    bool is_metadata = str_eq(method, "META");
    if (is_metadata) {
        free(method);
        method = word(&at, end);
    }
    char *target = word(&at, end), *question = strchr(target, '?');
    const char *query = question ? question + 1 : "";
    if (question)
        *question = '\0';
    (is_metadata ? call_metadata : call_api)(w, method, target, query, at, (size_t)(end - at));
    check(w);
    free(method);
    free(target);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct region_options options = {.provider = "azure",
        .name = "eastus",
        .account = SUBSCRIPTION,
        .seed = 1,
        .boot_delay_ms = 1000,
        .notice_ms = 2000};
    static const struct arm_account account = {
        .subscription = SUBSCRIPTION, .page = 2, .retry_after_s = 1};
    static const struct arm_client clients[] = {{"c", "s"}};
    struct arm_auth auth = {
        .tenant = "t", .clients = clients, .n_clients = 1, .token_ttl_ms = TOKEN_TTL_MS};
    struct world w;
    const char *at = (const char *)data, *end = at + size;
    log_set_level(LOG_ERROR);
    start(&w, &options, &account, &auth);
    for (int i = 0; i < CALLS_MAX && at < end; i++, w.now.ms += 700) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop_at = newline ? newline : end;
        call(&w, at, stop_at);
        at = stop_at + 1;
    }
    stop(&w);
    return 0;
}
