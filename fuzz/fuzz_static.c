/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages between belayd and a host of a static pool. The first byte selects the parser: '0' a
 * host's reply, '1' its reply to a failure, '2' ssh's last output, '3' a host's name, '4' an
 * instance's id, anything else a request on the host.
 */
#include "agent/host.h"
#include "check.h"
#include "cloud/static/protocol.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_reply(const char *text, size_t n, int code, struct err *e)
{
    struct runner_result r = {.exit_code = code};
    struct static_report report;
    buf_add(code == 255 ? &r.errors : &r.output, text, n);
    int rc = static_parse_reply(&r, &report, e);
    if (rc == 0 && report.claim.id[0]) {
        struct cloud_instance i;
        static_to_instance("rack1", &report.claim, &i);
        assert(static_claim_of_id(i.id) && strcmp(static_claim_of_id(i.id), report.claim.id) == 0);
    }
    buf_deinit(&r.output);
    buf_deinit(&r.errors);
    return rc;
}

static int read_name(const char *text, size_t n, struct err *e)
{
    char name[STATIC_HOST_MAX + 1], *s = strndup(text, n);
    int port, rc = static_parse_host(s, name, &port, e);
    assert(rc != 0 || (name[0] && name[0] != '-' && port >= 0 && port <= 65535));
    free(s);
    return rc;
}

static int read_id(const char *text, size_t n)
{
    char *s = strndup(text, n);
    const char *claim = static_claim_of_id(s);
    assert(!claim || (claim > s + 1 && strlen(claim) == STATIC_CLAIM_ID));
    free(s);
    return 0;
}

static int read_request(const char *text, size_t n, struct err *e)
{
    struct host_request q;
    int rc = host_request_parse(text, n, &q, e);
    if (rc == 0) {
        assert(q.what != HOST_CLAIM || (q.token[0] && q.cluster[0] && q.user_data));
        host_request_deinit(&q);
    }
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = {0};
    if (size == 0)
        return 0;
    const char *text = (const char *)data + 1;
    size_t n = size - 1;
    int rc = 0;
    if (data[0] >= '0' && data[0] <= '2')
        rc = read_reply(text, n, data[0] == '0' ? 0 : data[0] == '1' ? 1 : 255, &e);
    else if (data[0] == '3')
        rc = read_name(text, n, &e);
    else if (data[0] == '4')
        rc = read_id(text, n);
    else
        rc = read_request(text, n, &e);
    if (rc != 0)
        check_error(rc, &e);
    return 0;
}
