/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator's Compute Engine: requests, one per line, to a region with two pools, one of them
 * with attached GPUs and a quota of them. A line is METHOD TARGET BODY; before the method '@' sends
 * it to the metadata server of the first instance, '!' omits the token, and '$' uses the target as
 * an assertion in place of the token. Every answer has one of Google's statuses and, from the API,
 * is JSON; no more instances run than there is capacity for, and there is no access without a
 * token.
 */
#include "emulator/gce/gce.h"
#include "fuzz/check.h"
#include "fuzz/emulated.h"
#include <stdint.h>
#include <stdlib.h>

#define REQUESTS_MAX 30
#define GPUS_MAX 2
#define TOKEN_TTL_MS 3600000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct visit {
    struct region region;
    struct journal journal;
    struct gce gce;
    struct wall now;
    char bearer[GCE_TOKEN_MAX + 16];
};

static void check_reply(
    const struct visit *v, const struct front_reply *reply, bool is_metadata, bool is_stranger)
{
    static const int statuses[] = {200, 301, 400, 401, 403, 404, 405, 409, 429, 500, 503};
    size_t k = 0;
    while (k < sizeof(statuses) / sizeof(statuses[0]) && statuses[k] != reply->status)
        k++;
    assert(k < sizeof(statuses) / sizeof(statuses[0]) && reply->content_type);
    assert(reply->wait_ms >= 0 && reply->wait_ms <= TOKEN_TTL_MS);
    assert(!is_stranger || is_metadata || reply->status == 401 || reply->status == 400);
    if (!is_metadata && reply->wait_ms == 0) {
        json_t *body = NULL;
        int rc = json_parse(buf_str(&reply->body), reply->body.len, 16u << 20, &body, NULL);
        assert(rc == 0);
        (void)rc;
        json_decref(body);
    }
    for (size_t p = 0; p < v->region.market.n_pools; p++)
        for (int m = 0; m < 2; m++)
            assert(v->region.market.pools[p].in_use[m] <= EMULATED_CAPACITY);
    assert(v->region.market.pools[1].in_use[0] + v->region.market.pools[1].in_use[1] <= GPUS_MAX);
}

static void ask(struct visit *v, char *line)
{
    bool is_metadata = line[0] == '@', is_stranger = line[0] == '!', is_assertion = line[0] == '$';
    char *rest = line + (is_metadata || is_stranger || is_assertion), *method = strsep(&rest, " "),
         *target = strsep(&rest, " ");
    if (!target)
        return;
    char *shown = is_assertion ? mem_printf("Bearer %s", target) : mem_strdup(v->bearer);
    char *path = is_assertion ? mem_strdup("/") : mem_strndup(target, strcspn(target, "?"));
    const struct http_header headers[] = {{"Metadata-Flavor", "Google"}, {"Authorization", shown}};
    const struct front_request r = {.method = method,
        .path = path,
        .target = is_assertion ? "/" : target,
        .headers = headers,
        .n_headers = is_stranger ? 1 : 2,
        .body = rest ? rest : "",
        .body_len = rest ? strlen(rest) : 0};
    const struct front_site site = {.region = &v->region,
        .state = &v->gce,
        .now = v->now,
        .clock = v->now,
        .instance = is_metadata && v->region.n_instances > 0 ? v->region.instances[0] : NULL};
    struct front_reply reply = {.status = 200};
    region_advance(&v->region, v->now);
    if (site.instance)
        gce_metadata(&site, &r, &reply);
    else
        gce_api(&site, &r, &reply);
    check_reply(v, &reply, site.instance != NULL, is_stranger);
    buf_deinit(&reply.body);
    free(path);
    free(shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static EVP_PKEY *key; /* making one takes longer than a thousand requests */
    char *text = mem_strndup((const char *)data, size), *rest = text;
    struct visit v = {
        .now = {EMULATED_NOON_MS}, .gce = {.rate_limit = 1000, .role_ttl_ms = TOKEN_TTL_MS}};
    struct gce_account *agent = &v.gce.auth.accounts[0];
    emulated_start(&v.region, &v.journal);
    STR_COPY(v.region.market.pools[1].type, "n1-standard-8+t4");
    v.gce.quotas[v.gce.n_quotas++] =
        (struct gce_quota){.name = "NVIDIA_T4_GPUS", .limit = GPUS_MAX};
    STR_COPY(agent->email, "a@p.example");
    if (!key) {
        int rc = gce_auth_make_key(agent, NULL);
        assert(rc == 0);
        (void)rc;
        key = agent->key;
    }
    EVP_PKEY_up_ref(key);
    agent->key = key;
    v.gce.auth.n_accounts = 1;
    const struct gce_caller caller = {.account = agent, .has_scope = true};
    snprintf(v.bearer, sizeof(v.bearer), "Bearer %s",
        gce_auth_issue(&v.gce.auth, &caller, "", TOKEN_TTL_MS, v.now)->text);
    for (int k = 0; k < REQUESTS_MAX && rest; k++, v.now.ms += 700)
        ask(&v, strsep(&rest, "\n"));
    gce_auth_deinit(&v.gce.auth);
    free(v.gce.operations);
    region_deinit(&v.region);
    journal_deinit(&v.journal);
    free(text);
    return 0;
}
