/* SPDX-License-Identifier: Apache-2.0
 *
 * Fetches what is known of the identity provider (see provider.h). One load at a time, for all who
 * wait. A load that fails leaves what was known before.
 */
#include "scheduler/oidc/provider.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

#define FRESH_MS SECONDS_MS(3600)
#define RETRY_MS SECONDS_MS(2) /* after a failed load; meanwhile its error is repeated */
#define PEM_MAX (1u << 20)
#define SECRET_MAX 4096
#define URL_MAX 2048

struct provider {
    struct provider_options o;
    char *ca_pem;
    struct provider_metadata metadata, next;
    struct jwks *keys; /* NULL: nothing is known yet */
    struct mono loaded_at, failed_at, reloads_from;
    int n_reloads;
    bool is_loading;
    struct list waiting;
    struct err error; /* of the last load that failed */
};

/* ---- the discovery document ---- */

/* The URL without trailing slashes: issuers are compared as given, and paths are appended. */
static char *discovery_url(const char *issuer)
{
    size_t n = strlen(issuer);
    while (n > 0 && issuer[n - 1] == '/')
        n--;
    return mem_printf("%.*s/.well-known/openid-configuration", (int)n, issuer);
}

static char *read_endpoint(struct json_reader *r, const char *key, bool needed)
{
    const char *url = needed ? json_req_str(r, key, URL_MAX) : json_opt_str(r, key, URL_MAX, NULL);
    char shown[STR_SHOW_MAX];
    bool is_plain = url && str_starts(url, "https://");
    for (const char *c = url; is_plain && *c; c++)
        is_plain = *c > ' ' && *c <= '~' && *c != '#';
    if (r->rc == 0 && url && !is_plain)
        json_reader_fail(r, key, "expected https://..., found %s", str_show(url, shown));
    return r->rc == 0 ? mem_strdup(url) : NULL;
}

static bool has_method(const json_t *methods, const char *name)
{
    const json_t *item;
    size_t i;
    json_array_foreach(methods, i,
        item) if (json_is_string(item) && str_eq(json_string_value(item), name)) return true;
    return false;
}

int provider_metadata_parse(
    const char *issuer, const char *text, size_t n, struct provider_metadata *ret, struct err *e)
{
    struct json_reader r;
    json_t *v = NULL;
    char shown[STR_SHOW_MAX];
    *ret = (struct provider_metadata){0};
    int rc = json_parse(text, n, PROVIDER_REPLY_MAX, &v, e);
    if (rc != 0)
        return rc;
    json_reader_init(&r, v, "", e);
    const char *own = json_req_str(&r, "issuer", URL_MAX);
    if (r.rc == 0 && !str_eq(own, issuer))
        json_reader_fail(&r, "issuer", "it is %s there, and %s in oidc: both must be the same",
            str_show(own, shown), issuer);
    ret->authorization_endpoint = read_endpoint(&r, "authorization_endpoint", true);
    ret->token_endpoint = read_endpoint(&r, "token_endpoint", true);
    ret->jwks_uri = read_endpoint(&r, "jwks_uri", true);
    ret->device_endpoint = read_endpoint(&r, "device_authorization_endpoint", false);
    const json_t *methods = json_opt_array(&r, "token_endpoint_auth_methods_supported", 64);
    ret->secret_is_in_body = methods && !has_method(methods, "client_secret_basic") &&
                             has_method(methods, "client_secret_post");
    rc = json_reader_finish_lenient(&r);
    json_decref(v);
    return rc;
}

void provider_metadata_deinit(struct provider_metadata *m)
{
    free(m->authorization_endpoint);
    free(m->token_endpoint);
    free(m->jwks_uri);
    free(m->device_endpoint);
    *m = (struct provider_metadata){0};
}

/* ---- life ---- */

int provider_create(const struct provider_options *o, struct provider **ret, struct err *e)
{
    struct provider *p = mem_alloc(sizeof(*p));
    struct buf text = {0};
    int rc = 0;
    p->o = *o;
    p->loaded_at = p->failed_at = p->reloads_from = MONO_NONE;
    if (o->config->client_secret_file)
        rc = fs_read_secret(o->config->client_secret_file, SECRET_MAX, &text, e);
    buf_wipe(&text);
    if (rc != 0)
        err_wrap(e, "oidc: client_secret_file");
    else if (o->config->ca_file && (rc = fs_read(o->config->ca_file, PEM_MAX, &text, e)) != 0)
        err_wrap(e, "oidc: ca_file");
    if (rc != 0) {
        provider_destroy(p);
        buf_deinit(&text);
        return rc;
    }
    p->ca_pem = o->config->ca_file ? buf_take(&text) : NULL;
    buf_deinit(&text);
    *ret = p;
    return 0;
}

void provider_destroy(struct provider *p)
{
    if (!p)
        return;
    provider_metadata_deinit(&p->metadata);
    provider_metadata_deinit(&p->next);
    jwks_destroy(p->keys);
    free(p->ca_pem);
    free(p);
}

const char *provider_ca(const struct provider *p)
{
    return p->ca_pem;
}

const struct provider_metadata *provider_metadata(const struct provider *p)
{
    return &p->metadata;
}

const struct jwks *provider_keys(const struct provider *p)
{
    return p->keys;
}

/* ---- a load ---- */

static void finish_load(struct provider *p, const struct err *e)
{
    struct list waiting = {0};
    p->is_loading = false;
    if (e) {
        p->error = *e;
        p->failed_at = clock_mono(p->o.clock);
        log_warn("the identity provider's endpoints and keys cannot be read", log_err(e));
    } else {
        p->loaded_at = clock_mono(p->o.clock);
    }
    /* who waits may begin another load */
    for (struct link *n; (n = list_pop(&p->waiting));)
        list_push_back(&waiting, n);
    for (struct link *n; (n = list_pop(&waiting));) {
        struct provider_wait *w = LIST_ENTRY(n, struct provider_wait, in_provider);
        w->fn(w, p->keys ? NULL : &p->error);
    }
}

static void get(struct provider *p, const char *url, http_done_fn done)
{
    http_start(p->o.http,
        &(struct http_request){.method = "GET",
            .url = url,
            .headers = {"Accept: application/json"},
            .timeout_ms = PROVIDER_CALL_MS,
            .max_reply_bytes = PROVIDER_REPLY_MAX,
            .tls = {.ca_pem = p->ca_pem}},
        done, p);
}

static int check_reply(const struct err *failure, const struct http_reply *r, struct err *e)
{
    if (failure) {
        *e = *failure;
        return e->kind;
    }
    return r->status == 200 ? 0 : err_set(e, ERR_IO, "HTTP status %d", r->status);
}

static void on_keys(void *ctx, const struct err *failure, const struct http_reply *r)
{
    struct provider *p = ctx;
    struct jwks *keys = NULL;
    struct err e;
    int rc = check_reply(failure, r, &e);
    if (rc == 0)
        rc = jwks_parse(buf_str(&r->body), r->body.len, &keys, &e);
    if (rc == 0) {
        provider_metadata_deinit(&p->metadata);
        jwks_destroy(p->keys);
        p->metadata = p->next;
        p->keys = keys;
    } else {
        err_wrap(&e, "the identity provider's keys at %s", p->next.jwks_uri);
        provider_metadata_deinit(&p->next);
    }
    p->next = (struct provider_metadata){0};
    finish_load(p, rc == 0 ? NULL : &e);
}

static void on_document(void *ctx, const struct err *failure, const struct http_reply *r)
{
    struct provider *p = ctx;
    struct err e;
    int rc = check_reply(failure, r, &e);
    if (rc == 0)
        rc = provider_metadata_parse(
            p->o.config->issuer, buf_str(&r->body), r->body.len, &p->next, &e);
    if (rc == 0) {
        get(p, p->next.jwks_uri, on_keys);
        return;
    }
    provider_metadata_deinit(&p->next);
    char *url = discovery_url(p->o.config->issuer);
    err_wrap(&e, "the identity provider's description at %s", url);
    free(url);
    finish_load(p, &e);
}

static void load(struct provider *p, struct provider_wait *w)
{
    list_push_back(&p->waiting, &w->in_provider);
    if (p->is_loading)
        return;
    p->is_loading = true;
    char *url = discovery_url(p->o.config->issuer);
    get(p, url, on_document);
    free(url);
}

bool provider_ready(struct provider *p, struct provider_wait *w)
{
    struct mono now = clock_mono(p->o.clock);
    bool failed_lately = mono_is_set(p->failed_at) && now.ms - p->failed_at.ms < RETRY_MS;
    if (p->keys && (failed_lately || now.ms - p->loaded_at.ms < FRESH_MS))
        return true;
    load(p, w);
    return false;
}

bool provider_reload(struct provider *p, struct provider_wait *w)
{
    struct mono now = clock_mono(p->o.clock);
    if (!mono_is_set(p->reloads_from) || now.ms - p->reloads_from.ms >= PROVIDER_RELOADS_MS) {
        p->reloads_from = now;
        p->n_reloads = 0;
    }
    if (p->n_reloads >= PROVIDER_RELOADS_MAX)
        return false;
    p->n_reloads++;
    load(p, w);
    return true;
}
