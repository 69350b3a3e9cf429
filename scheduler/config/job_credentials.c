/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/job_credentials.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

static enum scoped_kind kind_of(const struct s3_location *p)
{
    return p->dialect == STORE_KEYS_AWS      ? SCOPED_AWS
           : p->dialect == STORE_KEYS_GOOGLE ? SCOPED_GOOGLE
                                             : SCOPED_AZURE;
}

struct scoped_options job_credentials_scoped(
    const struct job_credentials *c, const struct s3_location *p, char **ret_service_url)
{
    size_t container = strlen(p->bucket) + 1;
    size_t dir = strlen(p->dir);
    bool names_key = p->dialect == STORE_KEYS_AWS && str_starts(p->kms_key, "arn:");
    *ret_service_url =
        mem_printf("%s%.*s", p->root, (int)(dir > container ? dir - container : 0), p->dir);
    return (struct scoped_options){.kind = kind_of(p),
        .bucket = p->bucket,
        .life_ms = c->life_ms,
        .sts_url = c->sts_url,
        .region = p->region,
        .role_arn = c->role_arn,
        .kms_key = c->kms_key  ? c->kms_key
                   : names_key ? p->kms_key
                               : NULL,
        .account = p->account,
        .service_url = *ret_service_url};
}

int job_credentials_check(const struct job_credentials *c, struct err *e)
{
    struct s3_location p;
    char *url;
    if (!s3_location_is_one(c->store, NULL))
        return err_set(e, ERR_INVALID,
            "a store in a directory has no credentials: store_credentials: job is for s3://, gs:// "
            "and az://");
    int rc = s3_location_parse(c->store, &p, e);
    if (rc != 0)
        return rc;
    const struct scoped_options s = job_credentials_scoped(c, &p, &url);
    rc = scoped_check(&s, e);
    free(url);
    s3_location_deinit(&p);
    return rc;
}
