/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies to an agent, from belayd or a proxy in between. The first byte selects the status, the
 * rest is the body. Only belayd's own reply counts as "not found", because an agent then drops its
 * data.
 */
#include "agent/peer.h"
#include "base/json.h"
#include "fuzz/check.h"
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool says_not_found(const struct buf *body)
{
    json_t *v = NULL;
    bool says = json_parse(buf_str(body), body->len, SIZE_MAX, &v, NULL) == 0 &&
                str_eq(json_string_value(json_object_get(json_object_get(v, "error"), "kind")),
                    "not-found");
    json_decref(v);
    return says;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int statuses[] = {200, 400, 401, 403, 404, 409, 429, 500, 503, 507};
    struct http_reply reply = {0};
    struct err e = {0};
    if (size == 0)
        return 0;
    reply.status = statuses[data[0] % (sizeof(statuses) / sizeof(statuses[0]))];
    buf_add(&reply.body, data + 1, size - 1);
    int rc = peer_check(NULL, &reply, &e);
    assert((rc == 0) == (reply.status == 200));
    if (rc != 0)
        check_error(rc, &e);
    assert(rc != ERR_NOT_FOUND || says_not_found(&reply.body));
    buf_deinit(&reply.body);
    return 0;
}
