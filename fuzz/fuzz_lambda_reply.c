/* SPDX-License-Identifier: Apache-2.0
 *
 * Lambda's replies. The first byte selects the parser: '0' launch, '1' instances, '2' terminate,
 * '3' types, '4' an API key, anything else a refusal.
 */
#include "cloud/lambda/api.h"
#include "check.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_launch(const char *body, size_t n, struct err *e)
{
    char id[CLOUD_NAME_MAX];
    int rc = lambda_parse_launch(body, n, id, e);
    assert(rc != 0 || (id[0] && strlen(id) < sizeof(id)));
    return rc;
}

static int read_instances(const char *body, size_t n, struct err *e)
{
    struct cloud_instances l = {0};
    int rc = lambda_parse_instances(body, n, "us-west-2", &l, e);
    for (size_t i = 0; rc == 0 && i < l.n; i++) {
        const struct cloud_instance *x = &l.list[i];
        assert(x->id[0] && strcmp(x->zone, "us-west-2") == 0 && x->market == CLOUD_ON_DEMAND);
        assert(!x->reclaimed || x->state == CLOUD_GONE);
    }
    cloud_instances_deinit(&l);
    return rc;
}

static int read_terminate(const char *body, size_t n, struct err *e)
{
    static const char *const ids[] = {"0920"};
    return lambda_parse_terminate(body, n, ids, 1, e);
}

static int read_types(const char *body, size_t n, struct err *e)
{
    struct lambda_types t = {0};
    int rc = lambda_parse_types(body, n, "us-west-2", &t, e);
    for (size_t i = 0; rc == 0 && i < t.n; i++)
        assert(t.list[i].name[0] && t.list[i].uusd_h >= 0);
    free(t.list);
    return rc;
}

static int read_key(const char *body, size_t n, struct err *e)
{
    char key[LAMBDA_KEY_MAX + 1];
    int rc = lambda_parse_key(body, n, key, e);
    assert(rc != 0 || (key[0] && !strpbrk(key, "\r\n "))); /* it is put in a header line */
    return rc;
}

static int read_refusal(const char *body, size_t n, struct err *e)
{
    int kind = lambda_parse_error(300 + (int)(n % 300), body, n, e);
    assert(kind != ERR_NONE);
    return kind;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const readers[])(const char *, size_t, struct err *) = {
        read_launch, read_instances, read_terminate, read_types, read_key, read_refusal};
    if (size == 0)
        return 0;
    size_t which = data[0] >= '0' && data[0] < '5' ? (size_t)(data[0] - '0') : 5;
    struct err e = {0};
    int rc = readers[which]((const char *)data + 1, size - 1, &e);
    if (rc != 0)
        check_error(rc, &e);
    return 0;
}
