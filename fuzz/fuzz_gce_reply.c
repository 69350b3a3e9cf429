/* SPDX-License-Identifier: Apache-2.0
 *
 * Compute Engine's replies and related inputs. The first byte selects the parser: '0' an operation,
 * '1' an instance, '2' a listing, '3' preemptions, '4' a key file, '5' a token, '6' the name of a
 * type, '7' disks, '8' consoles, anything else a refusal.
 */
#include "base/mem.h"
#include "cloud/catalogue.h"
#include "cloud/console.h"
#include "cloud/gcp/credentials.h"
#include "cloud/gcp/gce.h"
#include "fuzz/check.h"
#include <openssl/crypto.h>
#include <stdint.h>
#include <stdlib.h>

#define REGION "us-central1"
#define ZONE "us-central1-a"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* It is put in a path. */
static void check_name(const char *name)
{
    assert(name[0] && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(name));
}

/* Names of types are unique: splitting and joining one gives the same name. */
static int read_type(const char *text, size_t n, struct err *e)
{
    struct catalogue_parts p;
    struct catalogue_type t;
    struct err other = {0};
    char again[CATALOGUE_NAME_MAX];
    char *type = mem_strndup(text, n);
    int rc = catalogue_split("gcp", type, &p, e), found = catalogue_find("gcp", type, &t, &other);
    if (rc == 0) {
        STR_COPY(again, p.machine);
        assert(!p.gpu || catalogue_attach(again, sizeof(again), p.n_gpus, p.gpu->name));
        assert(str_eq(again, type) && strlen(type) < CLOUD_NAME_MAX);
        assert((p.gpu != NULL) == (p.n_gpus > 0));
    }
    assert(found == 0
               ? rc == 0 && str_eq(t.type, type) && t.gpus >= p.n_gpus && t.on_demand_uusd_h > 0
               : found == other.kind);
    assert(rc == 0 || found != 0);
    free(type);
    return rc;
}

static void check_instance(const struct cloud_instance *i)
{
    const char *slash = strchr(i->id, '/');
    assert(slash && strlen(i->id) < sizeof(i->id) && str_starts(i->id, i->zone));
    check_name(i->zone);
    check_name(slash + 1);
    assert(i->type[0] == '\0' ||
           strspn(i->type, "abcdefghijklmnopqrstuvwxyz0123456789-+") == strlen(i->type));
    assert(strlen(i->token) < sizeof(i->token) && strlen(i->cluster) < sizeof(i->cluster));
    assert(str_is_utf8(i->reason, strlen(i->reason)));
    assert(!i->reclaimed || i->state == CLOUD_GONE);
}

static int read_operation(const char *body, size_t n, struct err *e)
{
    struct gce_operation op;
    int rc = gce_parse_operation(body, n, &op, e);
    if (rc == 0) {
        check_name(op.name);
        if (op.failed.kind != ERR_NONE)
            check_error(op.failed.kind, &op.failed);
    }
    return rc;
}

static int read_instance(const char *body, size_t n, struct err *e)
{
    struct cloud_instance i;
    int rc = gce_parse_instance(body, n, &i, e);
    if (rc == 0)
        check_instance(&i);
    return rc;
}

static void check_page(const struct cloud_instances *l, const char *page)
{
    for (size_t i = 0; i < l->n; i++)
        check_instance(&l->list[i]);
    assert(strlen(page) <= GCE_PAGE_TOKEN_MAX);
}

static int read_list(const char *body, size_t n, struct err *e)
{
    struct cloud_instances l = {0};
    char page[GCE_PAGE_TOKEN_MAX + 1] = "";
    int rc = gce_parse_list(body, n, REGION, &l, page, e);
    if (rc == 0)
        check_page(&l, page);
    cloud_instances_deinit(&l);
    return rc;
}

static int read_disks(const char *body, size_t n, struct err *e)
{
    struct cloud_volumes l = {0};
    char page[GCE_PAGE_TOKEN_MAX + 1] = "";
    int rc = gce_parse_disks(body, n, REGION, &l, page, e);
    for (size_t i = 0; rc == 0 && i < l.n; i++) {
        const struct cloud_volume *v = &l.list[i];
        check_name(v->name);
        check_name(v->zone);
        check_name(v->type);
        assert(strlen(v->id) < sizeof(v->id) && v->gib >= 0 && v->gib <= CLOUD_VOLUME_GIB_MAX);
    }
    assert(strlen(page) <= GCE_PAGE_TOKEN_MAX);
    cloud_volumes_deinit(&l);
    return rc;
}

static int read_preempted(const char *body, size_t n, struct err *e)
{
    struct cloud_instances l = {0};
    char page[GCE_PAGE_TOKEN_MAX + 1] = "";
    int rc = gce_parse_preempted(body, n, "lab", ZONE, &l, page, e);
    if (rc == 0)
        check_page(&l, page);
    cloud_instances_deinit(&l);
    return rc;
}

static int read_key(const char *body, size_t n, struct err *e)
{
    struct gcp_key key;
    struct buf assertion = {0};
    int rc = gcp_key_parse(body, n, &key, e);
    if (rc == 0) {
        assert(key.client_email[0] && key.private_key_pem[0]);
        (void)gcp_token_uri_is_trusted(key.token_uri, "https://compute.googleapis.com");
        rc = gcp_key_assertion(
            &key, "https://oauth2.googleapis.com/token", (struct wall){0}, &assertion, e);
        OPENSSL_cleanse(&key, sizeof(key));
    }
    assert(rc == 0 || assertion.len == 0);
    buf_deinit(&assertion);
    return rc;
}

static int read_token(const char *body, size_t n, struct err *e)
{
    struct oauth_token token;
    int rc = oauth_parse_reply(n % 3 ? 200 : 400 + (int)(n % 200), body, n, &token, e);
    if (rc == 0) {
        assert(token.text[0] && token.expires_in_s > 0);
        assert(!strpbrk(token.text, " \t\r\n"));
    }
    return rc;
}

static int read_console(const char *body, size_t n, struct err *e)
{
    struct buf out = {0};
    int rc = gce_parse_console(body, n, &out, e);
    assert(out.len <= CLOUD_CONSOLE_MAX && (out.len == 0 || out.data[out.len - 1] == '\n'));
    for (size_t i = 0; i < out.len; i++)
        assert(out.data[i] == '\n' || (out.data[i] >= ' ' && out.data[i] < 0x7f));
    buf_deinit(&out);
    return rc;
}

static int read_refusal(const char *body, size_t n, struct err *e)
{
    int rc = gce_parse_error(400 + (int)(n % 200), body, n, e);
    assert(rc != 0);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const readers[])(const char *, size_t, struct err *) = {read_operation,
        read_instance, read_list, read_preempted, read_key, read_token, read_type, read_disks,
        read_console, read_refusal};
    struct err e = {0};
    if (size == 0)
        return 0;
    size_t which = data[0] >= '0' && data[0] < '9' ? (size_t)(data[0] - '0') : 9;
    int rc = readers[which]((const char *)data + 1, size - 1, &e);
    if (rc != 0)
        check_error(rc, &e);
    return 0;
}
