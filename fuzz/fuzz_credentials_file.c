/* SPDX-License-Identifier: Apache-2.0
 *
 * The shared credentials file.
 */
#include "cloud/aws/credentials.h"
#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct aws_credentials c;
    struct err e = {0};
    int rc = aws_credentials_parse_file((const char *)data, size, "default", &c, &e);
    if (rc == 0) {
        /* They are put in header lines. */
        assert(c.access_key[0] && c.secret_key[0]);
        assert(!strpbrk(c.access_key, "\r\n ") && !strpbrk(c.session_token, "\r\n "));
    } else {
        assert((rc == ERR_CONFIG || rc == ERR_NOT_FOUND) && rc == (int)e.kind && e.text[0]);
    }
    return 0;
}
