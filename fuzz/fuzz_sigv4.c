/* SPDX-License-Identifier: Apache-2.0
 *
 * Checking a signature on a request from outside. Lines: the target, a header's value, the list of
 * signed headers, the Authorization header.
 */
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/sigv4.h"
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > BYTES_MAX)
        return 0;
    char *text = mem_strndup((const char *)data, size), *rest = text, *lines[4];
    for (size_t i = 0; i < 4; i++) {
        char *line = strsep(&rest, "\n");
        lines[i] = line ? line : text + strlen(text);
    }
    struct http_header headers[] = {{"Host", "h"}, {"X-Note", lines[1]}, {"x-note", lines[1]}};
    struct sigv4_request r = {"GET", lines[0], headers, 3, SIGV4_UNSIGNED_PAYLOAD};
    struct sigv4_scope scope = {"20260822T120000Z", "r", "ec2"};
    struct sigv4_claim claim;
    char signature[SIGV4_HEX_MAX], again[SIGV4_HEX_MAX];
    struct buf authorization = {0};
    struct err e = {0};

    sigv4_canonical_hash(&r, "s3", lines[2], signature, &e);
    sigv4_parse_authorization(lines[3], &claim, &e);
    if (sigv4_authorization(&r, &scope, "AK", "secret", &authorization, &e) == 0) {
        int rc = sigv4_parse_authorization(buf_str(&authorization), &claim, &e);
        assert(rc == 0);
        rc = sigv4_signature(&r, &scope, "secret", claim.signed_headers, again, &e);
        assert(rc == 0 && str_eq(again, claim.signature));
        (void)rc;
    } else {
        assert(e.kind == ERR_INVALID);
    }
    buf_deinit(&authorization);
    free(text);
    return 0;
}
