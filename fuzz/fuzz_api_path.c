/* SPDX-License-Identifier: Apache-2.0
 *
 * The target of a request to belayd: it matches at most one route, with the numbers in the path; a
 * query parameter is in range, or is answered with 400 and its fallback is used.
 */
#include "base/mem.h"
#include "base/vtimers.h"
#include "base/uv/http_server_private.h"
#include "fuzz/check.h"
#include "scheduler/api/api_private.h"
#include <stdint.h>
#include <stdlib.h>

#define FALLBACK INT64_C(-77)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every form in belayd's route table. */
static const char *const routes[] = {"/api/v1/jobs", "/api/v1/jobs/#", "/api/v1/jobs/#/why",
    "/api/v1/jobs/#/logs", "/api/v1/nodes/#/drain", "/metrics", "/agent/v1/output/#/#"};
#define N_ROUTES (sizeof(routes) / sizeof(routes[0]))

/* The route's path with these numbers equals the input, except for leading zeros. */
static void check_path(const char *route, const int64_t ids[2], const char *path)
{
    char number[24];
    for (int n = 0; *route; route++) {
        if (*route != '#') {
            assert(*route == *path);
            path++;
            continue;
        }
        snprintf(number, sizeof(number), "%lld", (long long)ids[n++]);
        path += strspn(path, "0");
        assert(str_starts(path, number));
        path += strlen(number);
    }
    assert(*path == '\0');
}

static void check_routes(const char *path)
{
    int found = 0;
    for (size_t i = 0; i < N_ROUTES; i++) {
        int64_t ids[2] = {0};
        if (!api_match(routes[i], path, ids))
            continue;
        found++;
        assert(ids[0] >= 0 && ids[1] >= 0);
        check_path(routes[i], ids, path);
    }
    assert(found <= 1);
}

/* Whether the query was refused; resets the exchange. */
static bool take_refusal(struct http_exchange *x, bool is_fine)
{
    assert(is_fine == (x->state != ANSWERED) && is_fine == (x->reply_body.len == 0));
    if (is_fine)
        return false;
    assert(x->status == 400);
    buf_deinit(&x->reply_body);
    buf_deinit(&x->reply_fields);
    x->state = HANDED;
    return true;
}

static void check_queries(struct request *q)
{
    int64_t n;
    struct wall w;
    bool all;
    if (take_refusal(q->x, api_query_i64(q, "after", 0, INT64_MAX, FALLBACK, &n)))
        assert(n == FALLBACK);
    assert(n >= 0 || n == FALLBACK);
    if (take_refusal(q->x, api_query_i64(q, "offset", -(1LL << 40), 200, FALLBACK, &n)))
        assert(n == FALLBACK);
    assert(n >= -(1LL << 40) && n <= 200);
    if (take_refusal(q->x, api_query_time(q, "from", &w)))
        assert(!wall_is_set(w));
    if (!take_refusal(q->x, api_query_state(q, "active", &all)))
        assert(!all || str_eq(http_request_query(q->x, "state"), "all"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *raw = mem_strndup((const char *)data, size);
    struct vtimers vt;
    struct http_server server = {.timers = &vt.timers};
    struct http_exchange x = {.server = &server, .state = HANDED};
    struct request q = {.x = &x};
    struct err e = {0};
    int rc = http_target_parse(raw, &x.target, &e);
    vtimers_init(&vt, 0);
    if (rc == 0) {
        check_routes(x.target.path);
        check_queries(&q);
        http_target_deinit(&x.target);
    } else {
        check_error(rc, &e);
    }
    vtimers_deinit(&vt);
    free(raw);
    return 0;
}
