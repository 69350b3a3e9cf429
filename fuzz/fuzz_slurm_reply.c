/* SPDX-License-Identifier: Apache-2.0
 *
 * slurmrestd's replies. The first byte selects the parser: '0' submit, '1' jobs, '2' cancel, '3'
 * versions, '4' a login, '5' an endpoint, '7' an id, anything else a refusal.
 */
#include "cloud/slurm/api.h"
#include "cloud/slurm/login.h"
#include "base/mem.h"
#include "check.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_submit(const char *body, size_t n, struct err *e)
{
    int64_t job = 0;
    int rc = slurm_parse_submit(body, n, &job, e);
    assert((rc == 0) == (job > 0));
    return rc;
}

static int read_jobs(const char *body, size_t n, struct err *e)
{
    struct cloud_instances l = {0};
    int rc = slurm_parse_jobs(body, n, "root", &l, e);
    for (size_t i = 0; rc == 0 && i < l.n; i++) {
        const struct cloud_instance *x = &l.list[i];
        char token[CLOUD_TOKEN_MAX];
        int64_t job;
        assert(slurm_split_id(x->id, &job, token, NULL) == 0 && str_eq(token, x->token));
        assert(x->cluster[0] && (!x->reclaimed || x->state == CLOUD_GONE));
    }
    cloud_instances_deinit(&l);
    return rc;
}

static int read_login(const char *body, size_t n, struct err *e)
{
    struct slurm_login x;
    int rc = slurm_parse_login(body, n, &x, e);
    /* both become header lines */
    assert(rc != 0 || (x.user[0] && x.token[0] && !strpbrk(x.token, "\r\n ")));
    assert(rc != 0 || str_is_name(x.user, SLURM_USER_MAX - 1));
    return rc;
}

static int read_endpoint(const char *body, size_t n, struct err *e)
{
    struct slurm_endpoint x = {0};
    char *text = mem_strndup(body, n);
    int rc = slurm_parse_endpoint(text, &x, e);
    assert((rc == 0) == (x.url != NULL));
    free(x.url);
    free(text);
    return rc;
}

static int read_id(const char *body, size_t n, struct err *e)
{
    char token[CLOUD_TOKEN_MAX];
    int64_t job;
    char *text = mem_strndup(body, n);
    int rc = slurm_split_id(text, &job, token, e);
    assert(rc != 0 || (job > 0 && str_ends(text, token)));
    free(text);
    return rc;
}

static int read_refusal(const char *body, size_t n, struct err *e)
{
    int kind = slurm_parse_error(300 + (int)(n % 300), body, n, e);
    assert(kind != ERR_NONE);
    return kind;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const readers[])(const char *, size_t, struct err *) = {read_submit, read_jobs,
        slurm_parse_cancel, slurm_parse_versions, read_login, read_endpoint, read_refusal, read_id};
    if (size == 0)
        return 0;
    size_t which = data[0] >= '0' && data[0] < '8' ? (size_t)(data[0] - '0') : 6;
    struct err e = {0};
    int rc = readers[which]((const char *)data + 1, size - 1, &e);
    if (rc != 0)
        check_error(rc, &e);
    return 0;
}
