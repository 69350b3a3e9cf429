/* SPDX-License-Identifier: Apache-2.0
 *
 * Google Cloud: its keys in the configuration, the keys of its service accounts, and the front's
 * table.
 */
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "emulator/config_section.h"
#include "emulator/gce/gce.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE_LIMIT 1500
#define RATE_LIMIT_MAX 1000000000
#define PUBLIC_KEY_MAX 16384
#define QUOTA_MAX 1000000

/* The configuration keys of Google Cloud's section. */
struct options {
    struct {
        char email[GCE_EMAIL_MAX];
        enum gce_role role;
        /* PEM; empty: a key pair is made, and its private half written to: */
        struct buf public_key;
        char *key_file; /* NULL for EMAIL.json in the emulator's directory */
    } accounts[GCE_ACCOUNTS_MAX];
    size_t n_accounts;
    int64_t rate_limit;
    struct gce_quota quotas[GCE_QUOTAS_MAX];
    size_t n_quotas;
    struct gce_cpu_quota cpu_quotas[GCE_CPU_QUOTAS_MAX];
    size_t n_cpu_quotas;
    struct gce_family_quota family_quotas[GCE_CPU_QUOTAS_MAX];
    size_t n_family_quotas;
};

/* ---- Configuration ---- */

/* A simplified address check: text before and after the '@'. It is also used as a file name. */
static bool is_email(const char *text)
{
    const char *at = strchr(text, '@');
    return at && at > text && at[1] && !strchr(at + 1, '@') && text[0] != '.' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@") ==
               strlen(text);
}

static void read_public_key(struct config_section *s, struct yaml_reader *r, struct buf *out)
{
    const struct yaml_node *node = yaml_opt(r, "public_key");
    const char *name = yaml_opt_str(r, "public_key", CONFIG_PATH_MAX, NULL);
    struct gce_account trial = {0};
    struct err e;
    if (!name || r->rc < 0)
        return;
    char *path = config_resolve(s->file, name);
    if (fs_read(path, PUBLIC_KEY_MAX, out, &e) < 0 ||
        gce_auth_read_key(&trial, buf_str(out), out->len, &e) < 0)
        yaml_reader_fail(r, node, "%s: %s", name, e.text);
    EVP_PKEY_free(trial.key);
    free(path);
}

static void read_account(struct config_section *s, struct options *o, const struct yaml_node *map)
{
    static const char *const roles[] = {"admin", "viewer", "none", NULL};
    struct yaml_reader r;
    size_t k = o->n_accounts;
    config_inner_init(s, &r, map);
    const char *email = yaml_req_str(&r, "email", GCE_EMAIL_MAX - 1);
    const char *key_file = yaml_opt_str(&r, "key_file", CONFIG_PATH_MAX, NULL);
    o->accounts[k].role = (enum gce_role)yaml_opt_enum(&r, "role", roles, GCE_ROLE_ADMIN);
    read_public_key(s, &r, &o->accounts[k].public_key);
    o->n_accounts++;
    if (r.rc == 0 && !is_email(email))
        yaml_reader_fail(&r, NULL,
            "email: expected an address such as agent@my-project.iam.gserviceaccount.com");
    if (r.rc == 0 && key_file && o->accounts[k].public_key.len > 0)
        yaml_reader_fail(&r, NULL, "key_file: cannot be written when only the public key is given");
    for (size_t i = 0; i < k && r.rc == 0; i++)
        if (str_eq(o->accounts[i].email, email))
            yaml_reader_fail(&r, NULL, "email: %s is given twice", email);
    if (r.rc == 0) {
        STR_COPY(o->accounts[k].email, email);
        o->accounts[k].key_file = key_file ? config_resolve(s->file, key_file) : NULL;
    }
    config_inner_finish(s, &r);
}

static void read_quotas(struct config_section *s, struct options *o)
{
    const struct yaml_node *map = yaml_opt_map(&s->r, "gpu_quotas");
    struct yaml_reader r;
    if (!map)
        return;
    config_inner_init(s, &r, map);
    for (size_t k = 0; gce_quota_name(k); k++) {
        const char *name = gce_quota_name(k);
        int64_t limit = yaml_opt_i64(&r, name, 0, QUOTA_MAX, -1);
        if (limit >= 0)
            o->quotas[o->n_quotas++] = (struct gce_quota){name, limit};
    }
    config_inner_finish(s, &r);
}

static void read_cpu_quotas(struct config_section *s, struct options *o)
{
    const struct yaml_node *map = yaml_opt_map(&s->r, "cpu_quotas");
    for (size_t k = 0; map && k < map->n_items && s->r.rc == 0; k++) {
        const struct yaml_node *row = map->items[k];
        struct gce_cpu_quota *q = &o->cpu_quotas[o->n_cpu_quotas];
        if (o->n_cpu_quotas == GCE_CPU_QUOTAS_MAX || row->type != YAML_SCALAR ||
            !STR_COPY(q->name, row->key) || !str_ends(q->name, "CPUS") ||
            str_to_i64(row->text, 0, QUOTA_MAX, "vCPUs", &q->limit, NULL) < 0) {
            yaml_reader_fail(
                &s->r, row, "expected at most %d lines like N2_CPUS: 64", GCE_CPU_QUOTAS_MAX);
            return;
        }
        o->n_cpu_quotas++;
    }
}

static void read_family_quotas(struct config_section *s, struct options *o)
{
    const struct yaml_node *map = yaml_opt_map(&s->r, "family_quotas");
    for (size_t k = 0; map && k < map->n_items && s->r.rc == 0; k++) {
        const struct yaml_node *row = map->items[k];
        struct gce_family_quota *q = &o->family_quotas[o->n_family_quotas];
        if (o->n_family_quotas == GCE_CPU_QUOTAS_MAX || row->type != YAML_SCALAR ||
            !STR_COPY(q->family, row->key) ||
            strspn(q->family, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != strlen(q->family) ||
            str_to_i64(row->text, 0, QUOTA_MAX, "vCPUs", &q->limit, NULL) < 0) {
            yaml_reader_fail(
                &s->r, row, "expected at most %d lines like C4: 64", GCE_CPU_QUOTAS_MAX);
            return;
        }
        o->n_family_quotas++;
    }
}

static void *read_options(struct config_section *s)
{
    struct options *o = mem_alloc(sizeof(*o));
    const struct yaml_node *seq = yaml_opt_seq(&s->r, "service_accounts", GCE_ACCOUNTS_MAX);
    for (size_t k = 0; seq && k < seq->n_items && s->r.rc == 0; k++)
        read_account(s, o, seq->items[k]);
    if (o->n_accounts == 0)
        yaml_reader_fail(
            &s->r, NULL, "service_accounts: at least one is needed to get a token for");
    o->rate_limit = yaml_opt_i64(&s->r, "rate_limit", 1, RATE_LIMIT_MAX, RATE_LIMIT);
    read_quotas(s, o);
    read_cpu_quotas(s, o);
    read_family_quotas(s, o);
    return o;
}

static void free_options(void *options)
{
    struct options *o = options;
    for (size_t k = 0; o && k < o->n_accounts; k++) {
        buf_deinit(&o->accounts[k].public_key);
        free(o->accounts[k].key_file);
    }
    free(o);
}

/* ---- State ---- */

static void close_gce(void *state)
{
    struct gce *gce = state;
    if (!gce)
        return;
    for (size_t k = 0; k < gce->auth.n_accounts; k++)
        free(gce->key_files[k]);
    gce_auth_deinit(&gce->auth);
    free(gce->operations);
    free(gce);
}

static int open_account(
    struct gce *gce, const struct options *o, size_t k, const char *dir, struct err *e)
{
    struct gce_account *account = &gce->auth.accounts[gce->auth.n_accounts++];
    const struct buf *pem = &o->accounts[k].public_key;
    STR_COPY(account->email, o->accounts[k].email);
    account->role = o->accounts[k].role;
    if (pem->len > 0)
        return gce_auth_read_key(account, buf_str(pem), pem->len, e);
    gce->key_files[k] = o->accounts[k].key_file ? mem_strdup(o->accounts[k].key_file)
                                                : mem_printf("%s/%s.json", dir, account->email);
    return gce_auth_make_key(account, e);
}

static int open_gce(const struct front_setup *setup, void **ret_state, struct err *e)
{
    const struct options *o = setup->options;
    struct gce *gce = mem_alloc(sizeof(*gce));
    int rc = 0;
    gce->rate_limit = o->rate_limit;
    gce->n_quotas = o->n_quotas;
    memcpy(gce->quotas, o->quotas, sizeof(o->quotas));
    gce->n_cpu_quotas = o->n_cpu_quotas;
    memcpy(gce->cpu_quotas, o->cpu_quotas, sizeof(o->cpu_quotas));
    gce->n_family_quotas = o->n_family_quotas;
    memcpy(gce->family_quotas, o->family_quotas, sizeof(o->family_quotas));
    gce->role_ttl_ms = setup->role_ttl_ms;
    for (size_t k = 0; rc == 0 && k < o->n_accounts; k++)
        rc = open_account(gce, o, k, setup->dir, e);
    gce->console = setup->console;
    gce->console_ctx = setup->console_ctx;
    *ret_state = gce;
    return rc;
}

/* The file that Google's console offers for download, except for the token endpoint's address. */
static int write_key_file(const struct gce_account *account, const char *project, const char *url,
    const char *path, struct err *e)
{
    struct buf pem = {0};
    int rc = gce_auth_write_key(account, &pem, e);
    if (rc == 0) {
        json_t *o = json_object();
        json_object_set_new(o, "type", json_string("service_account"));
        json_object_set_new(o, "project_id", json_string(project));
        json_object_set_new(o, "private_key_id", json_string(account->key_id));
        json_object_set_new(o, "private_key", json_text(buf_str(&pem)));
        json_object_set_new(o, "client_email", json_string(account->email));
        json_object_set_new(o, "client_id", json_string("100000000000000000001"));
        json_object_set_new(o, "token_uri", json_sprintf("%s/token", url));
        json_object_set_new(o, "universe_domain", json_string("googleapis.com"));
        char *text = json_dump_text(o);
        json_wipe(o);
        rc = fs_write_atomic(path, text, strlen(text), 0600, e);
        explicit_bzero(text, strlen(text));
        free(text);
    }
    buf_wipe(&pem);
    return rc;
}

static int announce(
    void *state, const struct region *region, const char *url, json_t *ports, struct err *e)
{
    const struct gce *gce = state;
    json_t *files = json_object();
    int rc = 0;
    for (size_t k = 0; rc == 0 && k < gce->auth.n_accounts; k++) {
        const struct gce_account *account = &gce->auth.accounts[k];
        if (!gce->key_files[k])
            continue;
        rc = write_key_file(account, region->o->account, url, gce->key_files[k], e);
        json_object_set_new(files, account->email, json_text(gce->key_files[k]));
    }
    json_object_set_new(ports, "gcp_project", json_string(region->o->account));
    json_object_set_new(ports, "gcp_key_files", files);
    return rc;
}

static void make_id(struct prng *ids, char *out, size_t size)
{
    /* more than 2^53 */
    snprintf(out, size, "%lld", 1000000000000000000LL + (long long)(prng_u64(ids) >> 2));
}

const struct front gce_front = {.name = "gcp",
    .port_key = "gcp",
    .region = "us-central1",
    .account = "my-project",
    .account_key = "project",
    .disk_type = "pd-standard",
    .notice_s = 30,
    .role_ttl_ms = SECONDS_MS(GCE_TOKEN_TTL_S),
    .body_max = GCE_BODY_MAX,
    .garbage = "{\"kind\":\"compute#operat",
    .garbage_type = GCE_JSON_TYPE,
    .internal_error = "backendError",
    .make_id = make_id,
    .read_options = read_options,
    .free_options = free_options,
    .open = open_gce,
    .close = close_gce,
    .announce = announce,
    .api = gce_api,
    .api_error = gce_api_error,
    .metadata = gce_metadata,
    .metadata_error = gce_metadata_error};
