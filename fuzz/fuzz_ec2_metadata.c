/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator's metadata service. A line is a request: METHOD PATH TOKEN TTL, where TOKEN '@'
 * means the last one issued, and '-' means that the header is absent. The role's keys are never
 * returned without a token.
 */
#include "emulator/ec2/metadata.h"
#include "fuzz/check.h"
#include "fuzz/emulated.h"
#include <stdint.h>
#include <stdlib.h>

#define REQUESTS_MAX 40

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct visitor {
    struct ec2_metadata metadata;
    struct wall now;
    char token[256];
};

static const char *given(const char *word)
{
    return !word || str_eq(word, "-") ? NULL : word;
}

static void check_reply(const struct ec2_metadata_request *r, const struct visitor *v,
    const struct ec2_metadata_reply *reply)
{
    static const int statuses[] = {200, 400, 401, 403, 404, 405};
    size_t i = 0;
    while (i < sizeof(statuses) / sizeof(statuses[0]) && statuses[i] != reply->status)
        i++;
    assert(i < sizeof(statuses) / sizeof(statuses[0]) && reply->content_type);
    if (reply->status == 200 && !str_eq(r->method, "PUT"))
        assert(r->token && str_eq(r->token, v->token)); /* a token cannot be guessed */
    assert((reply->ttl_s > 0) == (reply->status == 200 && str_eq(r->method, "PUT")));
    assert(reply->ttl_s <= EC2_METADATA_TTL_MAX_S);
}

static void ask(struct visitor *v, char *line)
{
    char *rest = line, *words[4];
    for (size_t i = 0; i < 4; i++)
        words[i] = strsep(&rest, " ");
    struct ec2_metadata_request r = {.method = words[0],
        .path = words[1] ? words[1] : "/",
        .token = given(words[2]),
        .ttl = given(words[3]),
        .forwarded_for = given(rest)};
    struct ec2_metadata_reply reply;
    if (str_eq(r.token, "@"))
        r.token = v->token;
    ec2_metadata_answer(&v->metadata, &r, v->now, &reply);
    check_reply(&r, v, &reply);
    if (reply.ttl_s > 0)
        STR_COPY(v->token, buf_str(&reply.body));
    buf_deinit(&reply.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size), *rest = text;
    struct region region;
    struct journal journal = {0};
    struct keyring keyring = {0};
    emulated_start(&region, &journal);
    struct reservation *launched = emulated_launch(&region, CLOUD_SPOT, 1);
    struct visitor v = {.now = {EMULATED_NOON_MS + 2000},
        .metadata = {.region = &region,
            .instance = launched->instances[0],
            .keyring = &keyring,
            .role_ttl_ms = 3600000,
            .secret = "not to be guessed"}};
    for (int i = 0; i < REQUESTS_MAX && rest; i++, v.now.ms += 500)
        ask(&v, strsep(&rest, "\n"));
    keyring_deinit(&keyring);
    region_deinit(&region);
    journal_deinit(&journal);
    free(text);
    return 0;
}
