/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies of the services behind scoped credentials. The first byte selects the parser: '0' an
 * assumed role, '1' its refusal, '2' an exchanged token, '3' a user delegation key (and what it
 * signs), anything else that key's refusal.
 */
#include "base/str.h"
#include "cloud/aws/sts.h"
#include "cloud/azure/sas.h"
#include "cloud/gcp/downscope.h"
#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_header_text(const char *s)
{
    for (; *s; s++)
        if (*s <= ' ' || *s > '~')
            return false;
    return true;
}

static int read_role(const char *body, size_t n, struct err *e)
{
    struct aws_credentials c;
    int rc = sts_parse_assume_role(body, n, &c, e);
    assert(rc != 0 ||
           (c.access_key[0] && c.secret_key[0] && c.session_token[0] && wall_is_set(c.expires)));
    assert(rc != 0 || (is_header_text(c.access_key) && is_header_text(c.session_token)));
    return rc;
}

static int read_refusal(const char *body, size_t n, struct err *e)
{
    unsigned remedies;
    int kind = sts_parse_error(400 + (int)(n % 200), body, n, &remedies, e);
    assert(kind != ERR_NONE && str_is_utf8(e->text, strlen(e->text)));
    return kind;
}

static int read_exchange(const char *body, size_t n, struct err *e)
{
    struct oauth_token t;
    int rc = gcp_downscope_parse(n % 2 ? 200 : 400, body, n, 600, &t, e);
    assert(rc != 0 ||
           (t.text[0] && is_header_text(t.text) && t.expires_in_s >= 1 && t.expires_in_s <= 600));
    return rc;
}

static int read_key(const char *body, size_t n, struct err *e)
{
    const struct sas_scope scope = {
        .account = "lab1", .container = "jobs", .expiry = {1787400000000}};
    struct sas_key key;
    struct buf query = {0};
    int rc = sas_parse_key(body, n, &key, e);
    if (rc == 0) {
        sas_sign(&key, &scope, &query);
        assert(is_header_text(buf_str(&query)) && query.len < 1024);
    }
    buf_deinit(&query);
    return rc;
}

static int read_key_refusal(const char *body, size_t n, struct err *e)
{
    return sas_parse_error(400 + (int)(n % 200), n % 3 ? NULL : "ServerBusy", body, n, e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const readers[])(const char *, size_t, struct err *) = {
        read_role, read_refusal, read_exchange, read_key, read_key_refusal};
    if (size == 0)
        return 0;
    size_t which = data[0] >= '0' && data[0] < '4' ? (size_t)(data[0] - '0') : 4;
    struct err e = {0};
    int rc = readers[which]((const char *)data + 1, size - 1, &e);
    assert(rc == 0 || (rc == (int)e.kind && e.text[0]));
    return 0;
}
