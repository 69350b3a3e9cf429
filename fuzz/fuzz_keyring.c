/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator's check of signatures. Lines: the target, the Authorization header, the date, a
 * token; the rest is the body. Unchanged it must be refused, in XML; signed by us it must be
 * accepted, and refused again after one byte of the body has changed.
 */
#include "emulator/ec2/ec2.h"
#include "emulator/keyring.h"
#include "cloud/xml.h"
#include "fuzz/check.h"
#include "fuzz/emulated.h"
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct wall now = {EMULATED_NOON_MS};

static void check_refused(struct region *r, const char *code, const struct err *e)
{
    struct ec2_reply reply = {0};
    struct xml x;
    struct err why;
    assert(code && code[0]);
    ec2_api_error(r, code, e->kind != ERR_NONE ? e->text : NULL, &reply);
    int rc = xml_open(&x, buf_str(&reply.body), reply.body.len, &why);
    assert(rc == 0);
    (void)rc;
    xml_close(&x);
    buf_deinit(&reply.body);
}

static void check_foreign(
    struct region *r, const struct keyring *k, char *const lines[4], const char *body)
{
    const struct http_header headers[] = {{"Host", "h"}, {"Authorization", lines[1]},
        {"X-Amz-Date", lines[2]}, {"X-Amz-Security-Token", lines[3]}};
    const struct keyring_request request = {"POST", lines[0], headers, 4, body, strlen(body)};
    struct err e;
    check_refused(r, keyring_check(k, &request, "us-east-1", now, &e), &e);
}

static void check_own(struct region *r, const struct keyring *k, const char *target, char *body)
{
    char hash[SIGV4_HEX_MAX], date[SIGV4_TIMESTAMP_MAX];
    struct buf authorization = {0};
    struct err e;
    size_t n = strlen(body);
    sigv4_timestamp(now, date);
    sigv4_sha256_hex(body, n, hash);
    struct http_header headers[3] = {{"Host", "h"}, {"X-Amz-Date", date}};
    const struct sigv4_request request = {"POST", target, headers, 2, hash};
    const struct sigv4_scope scope = {date, "us-east-1", "ec2"};
    if (sigv4_authorization(&request, &scope, "AKID", "SECRET", &authorization, &e) == 0) {
        headers[2] = (struct http_header){"Authorization", buf_str(&authorization)};
        const struct keyring_request q = {"POST", target, headers, 3, body, n};
        assert(!keyring_check(k, &q, "us-east-1", now, &e));
        if (n > 0) {
            body[n / 2] ^= 1;
            check_refused(r, keyring_check(k, &q, "us-east-1", now, &e), &e);
        }
    }
    buf_deinit(&authorization);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size), *rest = text, *lines[4];
    struct region region;
    struct journal journal = {0};
    struct keyring keyring = {0};
    for (size_t i = 0; i < 4; i++) {
        char *line = strsep(&rest, "\n");
        lines[i] = line ? line : text + strlen(text);
    }
    char *body = rest ? rest : text + strlen(text);
    emulated_start(&region, &journal);
    keyring_add(&keyring, "AKID", "SECRET");
    check_foreign(&region, &keyring, lines, body);
    check_own(&region, &keyring, lines[0], body);
    keyring_deinit(&keyring);
    region_deinit(&region);
    journal_deinit(&journal);
    free(text);
    return 0;
}
