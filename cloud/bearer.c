/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/bearer.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/azure/credentials.h"
#include "cloud/endpoint.h"
#include "cloud/gcp/credentials.h"
#include <stdlib.h>
#include <string.h>

#define AZURE_LOGIN "https://login.microsoftonline.com"
#define AZURE_AUDIENCE "https://storage.azure.com"
#define PREFIX "Authorization: Bearer "
/* Stores request the next token ten minutes before the end; by then it must be a new one. */
#define EARLY_MS SECONDS_MS(10 * 60)

struct bearer {
    struct gcp_credential_source *gcp; /* exactly one of gcp and azure is set */
    struct azure_credential_source *azure;
    struct oauth_wait wait;
    bool waiting;
    bearer_fn done;
    void *ctx;
};

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static int create_azure(const struct bearer_options *o, struct bearer *b, struct err *e)
{
    const char *authority = environment("AZURE_AUTHORITY_HOST");
    char *login = NULL;
    int rc = cloud_endpoint("AZURE_AUTHORITY_HOST", authority ? authority : AZURE_LOGIN, &login, e);
    struct azure_credential_options a = {.login_url = login,
        .audience = AZURE_AUDIENCE,
        .metadata_url = o->metadata_url,
        .http = o->http,
        .timers = o->timers};
    azure_environment_read(&a.env);
    if (rc == 0)
        rc = azure_credential_source_create(&a, &b->azure, e);
    free(login);
    return rc;
}

static int create_gcp(const struct bearer_options *o, struct bearer *b, struct err *e)
{
    const char *host = environment("GCE_METADATA_HOST");
    char *url = host ? mem_printf("http://%s", host) : NULL;
    const struct gcp_credential_options g = {
        .metadata_url = o->metadata_url ? o->metadata_url : url,
        .http = o->http,
        .timers = o->timers};
    int rc = gcp_credential_source_create(&g, &b->gcp, e);
    free(url);
    return rc;
}

int bearer_create(const struct bearer_options *o, struct bearer **ret_bearer, struct err *e)
{
    struct bearer *b = mem_alloc(sizeof(*b));
    int rc = (o->is_azure ? create_azure : create_gcp)(o, b, e);
    if (rc != 0) {
        free(b);
        return rc;
    }
    oauth_renew_before(bearer_tokens(b), EARLY_MS);
    *ret_bearer = b;
    return 0;
}

void bearer_destroy(struct bearer *b)
{
    if (!b)
        return;
    gcp_credential_source_destroy(b->gcp);
    azure_credential_source_destroy(b->azure);
    free(b);
}

struct oauth *bearer_tokens(struct bearer *b)
{
    return b->azure ? azure_credential_tokens(b->azure) : gcp_credential_oauth(b->gcp);
}

static void on_header(void *ctx, const struct err *e, const char *header)
{
    struct bearer *b = ctx;
    struct err bad;
    b->waiting = false;
    if (!e && !str_starts(header, PREFIX)) {
        err_set(&bad, ERR_INVALID, "the token is not a bearer token");
        e = &bad;
    }
    b->done(b->ctx, e, e ? NULL : header + strlen(PREFIX), e ? 0 : oauth_left_ms(bearer_tokens(b)));
}

bool bearer_get(struct bearer *b, bearer_fn done, void *ctx)
{
    if (b->waiting)
        return false;
    b->waiting = true;
    b->done = done;
    b->ctx = ctx;
    oauth_get(bearer_tokens(b), &b->wait, on_header, b);
    return true;
}

void bearer_refused(struct bearer *b)
{
    if (!b->waiting)
        oauth_refused(bearer_tokens(b), &b->wait);
}
