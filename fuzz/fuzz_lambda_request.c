/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator's Lambda Cloud: requests, one per line, to a region with two pools. A line is METHOD
 * TARGET BODY; '!' before the method uses the target as the Authorization header in place of the
 * right one. Every answer has one of Lambda's statuses and is JSON, except the proxy's; no more
 * instances run than there is capacity for, and there is no access without a key.
 */
#include "emulator/lambda/cloud.h"
#include "fuzz/check.h"
#include "fuzz/emulated.h"
#include <stdint.h>
#include <stdlib.h>

#define REQUESTS_MAX 30
#define KEY "right"
#define REPLY_MAX (16u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct visit {
    struct region region;
    struct journal journal;
    struct lambda_cloud cloud;
    struct wall now;
};

static void check_reply(const struct visit *v, const struct front_reply *reply, bool is_stranger)
{
    static const int statuses[] = {200, 400, 401, 404, 405, 429};
    size_t k = 0;
    json_t *body = NULL;
    while (k < sizeof(statuses) / sizeof(statuses[0]) && statuses[k] != reply->status)
        k++;
    assert(k < sizeof(statuses) / sizeof(statuses[0]) && reply->content_type);
    assert(!is_stranger || reply->status == 401);
    int rc = json_parse(buf_str(&reply->body), reply->body.len, REPLY_MAX, &body, NULL);
    assert((rc == 0) == (reply->status != 429));
    assert(rc != 0 || (json_object_get(body, "data") != NULL) == (reply->status == 200));
    (void)rc;
    json_decref(body);
    for (size_t p = 0; p < v->region.market.n_pools; p++)
        assert(v->region.market.pools[p].in_use[CLOUD_ON_DEMAND] <= EMULATED_CAPACITY);
}

/* Either form of the right key: an input that guesses it is authenticated. */
static bool is_right(const char *shown)
{
    return str_eq(shown, "Bearer " KEY) || str_starts(shown, "Basic ");
}

static void ask(struct visit *v, char *line)
{
    bool is_stranger = line[0] == '!';
    char *rest = line + is_stranger, *method = strsep(&rest, " "),
         *target = is_stranger ? rest : strsep(&rest, " ");
    if (!target)
        return;
    const struct http_header header = {"Authorization", is_stranger ? target : "Bearer " KEY};
    char *path = mem_strndup(is_stranger ? "/api/v1/instances" : target, strcspn(target, "?"));
    const struct front_request r = {.method = method,
        .path = path,
        .target = is_stranger ? path : target,
        .headers = &header,
        .n_headers = 1,
        .body = !is_stranger && rest ? rest : "",
        .body_len = !is_stranger && rest ? strlen(rest) : 0};
    const struct front_site site = {
        .region = &v->region, .state = &v->cloud, .now = v->now, .clock = v->now};
    struct front_reply reply = {.status = 200};
    region_advance(&v->region, v->now);
    lambda_cloud_api(&site, &r, &reply);
    check_reply(v, &reply, is_stranger && !is_right(target));
    buf_deinit(&reply.body);
    free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct lambda_cloud_file_system file_systems[] = {{"data", "us-east-1a"}};
    char *text = mem_strndup((const char *)data, size), *rest = text;
    struct visit v = {.now = {EMULATED_NOON_MS},
        .cloud = {.keys = {KEY},
            .n_keys = 1,
            .file_systems = file_systems,
            .n_file_systems = 1,
            .request_every_ms = 500,
            .launch_every_ms = 1000}};
    emulated_start(&v.region, &v.journal);
    for (int k = 0; k < REQUESTS_MAX && rest; k++, v.now.ms += 700)
        ask(&v, strsep(&rest, "\n"));
    region_deinit(&v.region);
    journal_deinit(&v.journal);
    free(text);
    return 0;
}
