/* SPDX-License-Identifier: Apache-2.0
 *
 * The metadata server of an instance (http://metadata.google.internal/computeMetadata/v1/). Its
 * content is a JSON tree built for each request; a path selects a node. Names are spelled as in
 * paths; in recursive JSON they are camelCase, except for custom attributes. Tokens are not part of
 * the tree.
 */
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "emulator/gce/gce.h"
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOT "/computeMetadata/v1"
#define TEXT_TYPE "application/text"
#define JSON_TYPE "application/json"
#define HTML_TYPE "text/html; charset=UTF-8"
#define WAIT_MAX_S 3600
#define ETAG_MAX 17
#define ATTRIBUTES "attributes" /* user-defined names */

static void project_number(const char *project, char out[16])
{
    snprintf(out, 16, "%012llu",
        (unsigned long long)(100000000000ULL + hash_text(project) % 899999999999ULL));
}

static void set_headers(struct front_reply *reply)
{
    reply->n_headers = 0;
    front_reply_header(reply, "Metadata-Flavor", "Google");
    front_reply_header(reply, "Server", "Metadata Server for VM");
}

void gce_metadata_error(int status, struct front_reply *reply)
{
    static const struct {
        int status;
        const char *title, *text;
    } pages[] = {{400, "Bad Request", "Your client has issued a malformed or illegal request."},
        {403, "Forbidden", "Your client does not have permission to get the URL from this server."},
        {404, "Not Found", "The requested URL was not found on this server."},
        {405, "Method Not Allowed", "The request method is inappropriate for the URL."},
        {503, "Service Unavailable", "The service is unavailable. Please try again later."}};
    const char *title = "Error", *text = "That is an error.";
    for (size_t k = 0; k < sizeof(pages) / sizeof(pages[0]); k++)
        if (pages[k].status == status) {
            title = pages[k].title;
            text = pages[k].text;
        }
    set_headers(reply);
    reply->status = status;
    reply->content_type = HTML_TYPE;
    buf_clear(&reply->body);
    buf_printf(&reply->body,
        "<!DOCTYPE html>\n<html lang=en>\n  <title>Error %d (%s)!!1</title>\n  <p><b>%d.</b> "
        "<ins>That's an "
        "error.</ins>\n  <p>%s\n</html>\n",
        status, title, status, text);
}

/* ---- The tree ---- */

static void set_text(json_t *o, const char *key, const char *text)
{
    json_object_set_new(o, key, json_text(text));
}

static json_t *account_json(const struct launch_spec *s)
{
    json_t *o = json_object(), *scopes = json_array();
    for (size_t k = 0; k < s->scopes.n; k++)
        json_array_append_new(scopes, json_text(s->scopes.list[k].key));
    json_object_set_new(o, "aliases", json_pack("[s]", "default"));
    set_text(o, "email", s->profile);
    json_object_set_new(o, "scopes", scopes);
    return o;
}

static json_t *accounts_json(const struct launch_spec *s)
{
    json_t *o = json_object();
    if (s->profile[0]) {
        json_object_set_new(o, s->profile, account_json(s));
        json_object_set_new(o, "default", account_json(s));
    }
    return o;
}

static json_t *attributes_json(const struct launch_spec *s)
{
    json_t *o = json_object();
    for (size_t k = 0; k < s->attributes.n; k++)
        set_text(o, s->attributes.list[k].key, s->attributes.list[k].value);
    return o;
}

static json_t *instance_json(const struct region *r, const struct instance *i)
{
    const struct launch_spec *s = &i->reservation->spec;
    bool is_spot = s->market == CLOUD_SPOT;
    char number[16];
    project_number(r->o->account, number);
    json_t *o = json_object();
    json_object_set_new(o, ATTRIBUTES, attributes_json(s));
    set_text(o, "cpu-platform", "Intel Cascade Lake");
    set_text(o, "description", "");
    json_object_set_new(
        o, "hostname", json_sprintf("%s.%s.c.%s.internal", s->name, i->pool->zone, r->o->account));
    json_object_set_new(o, "id", json_integer((json_int_t)strtoull(i->id, NULL, 10)));
    set_text(o, "image", s->image);
    json_object_set_new(o, "machine-type",
        json_sprintf("projects/%s/machineTypes/%.*s", number, gce_machine_len(i->pool->type),
            i->pool->type));
    set_text(o, "maintenance-event", "NONE");
    set_text(o, "name", s->name);
    json_object_set_new(o, "network-interfaces", json_pack("{s:{s:s}}", "0", "ip", i->private_ip));
    set_text(o, "preempted", wall_is_set(i->noticed_at) ? "TRUE" : "FALSE");
    json_object_set_new(o, "scheduling",
        json_pack("{s:s, s:s, s:s}", "automatic-restart", is_spot ? "FALSE" : "TRUE",
            "on-host-maintenance", s->ends_at_maintenance ? "TERMINATE" : "MIGRATE", "preemptible",
            is_spot ? "TRUE" : "FALSE"));
    json_object_set_new(o, "service-accounts", accounts_json(s));
    json_object_set_new(o, "zone", json_sprintf("projects/%s/zones/%s", number, i->pool->zone));
    return o;
}

static json_t *tree_of(const struct front_site *s)
{
    const char *project = s->region->o->account;
    char number[16];
    json_t *root = json_object(), *o = json_object();
    project_number(project, number);
    json_object_set_new(o, ATTRIBUTES, json_object());
    json_object_set_new(o, "numeric-project-id", json_integer(strtoll(number, NULL, 10)));
    set_text(o, "project-id", project);
    json_object_set_new(root, "instance", instance_json(s->region, s->instance));
    json_object_set_new(root, "project", o);
    return root;
}

/* Borrowed from the tree; NULL if absent. */
static const json_t *walk(const json_t *tree, const char *path)
{
    char name[GCE_EMAIL_MAX + 2];
    const json_t *v = tree;
    while (v && *path) {
        size_t n = strcspn(path, "/");
        if (n >= sizeof(name) || !json_is_object(v))
            return NULL;
        snprintf(name, sizeof(name), "%.*s", (int)n, path);
        v = json_object_get(v, name);
        path += n + (path[n] == '/');
    }
    return v;
}

/* ---- As text and as JSON ---- */

static void camel(const char *name, char *out, size_t size)
{
    size_t n = 0;
    for (; *name && n + 1 < size; name++) {
        if (*name == '-' && name[1] >= 'a' && name[1] <= 'z')
            out[n++] = (char)(*++name - 'a' + 'A');
        else
            out[n++] = *name;
    }
    out[n] = '\0';
}

/* A copy with the names of recursive JSON. */
static json_t *with_camel_names(const json_t *v, bool are_names_ours)
{
    const char *key;
    json_t *value;
    if (!json_is_object(v))
        return json_deep_copy(v);
    json_t *o = json_object();
    json_object_foreach((json_t *)v, key, value)
    {
        char name[GCE_EMAIL_MAX + 2];
        if (are_names_ours && !strchr(key, '@'))
            camel(key, name, sizeof(name));
        else
            STR_COPY(name, key);
        json_object_set_new(o, name, with_camel_names(value, !str_eq(key, ATTRIBUTES)));
    }
    return o;
}

static void add_leaf(struct buf *out, const json_t *v)
{
    if (json_is_string(v))
        buf_add(out, json_string_value(v), json_string_length(v));
    else if (json_is_integer(v))
        buf_printf(out, "%llu", (unsigned long long)json_integer_value(v));
    for (size_t k = 0; k < json_array_size(v); k++)
        buf_printf(out, "%s\n", json_string_value(json_array_get(v, k)));
}

/* A directory: its names, one per line, directories with a slash; recursively: "name/of/leaf
 * value". */
static void add_names(
    struct buf *out, const json_t *v, bool is_recursive, const char *prefix, int depth)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)v, key, value)
    {
        if (is_recursive && json_is_object(value) && depth < 8) {
            char *longer = mem_printf("%s%s/", prefix, key);
            add_names(out, value, true, longer, depth + 1);
            free(longer);
        } else if (is_recursive) {
            buf_printf(out, "%s%s ", prefix, key);
            add_leaf(out, value);
            buf_addc(out, '\n');
        } else {
            buf_printf(out, "%s%s\n", key, json_is_object(value) ? "/" : "");
        }
    }
}

static void add_json(struct buf *out, const json_t *v, bool are_names_ours)
{
    if (json_is_object(v) || json_is_array(v)) {
        json_add(out, with_camel_names(v, are_names_ours));
        return;
    }
    if (json_is_integer(v)) {
        add_leaf(out, v);
        return;
    }
    json_t *list = json_array();
    json_array_append(list, (json_t *)v);
    /* "[...]": not every library version dumps a bare value */
    char *text = json_dump_text(list);
    buf_add(out, text + 1, strlen(text) - 2);
    free(text);
    json_decref(list);
}

/* ---- Waiting ---- */

static void make_etag(const struct buf *body, char out[ETAG_MAX])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    EVP_Digest(buf_str(body), body->len, digest, NULL, EVP_sha256(), NULL);
    for (size_t k = 0; k < 8; k++)
        snprintf(out + 2 * k, 3, "%02x", digest[k]);
}

struct question {
    bool is_recursive, is_json, waits;
    bool is_in_attributes;
    int64_t timeout_s;
    const char *last_etag; /* may be NULL */
};

static bool read_flag(struct form *f, const char *name)
{
    const char *value = form_get(f, "%s", name);
    return str_eq(value, "true") || str_eq(value, "True") || str_eq(value, "TRUE");
}

static int read_question(struct form *f, struct question *q)
{
    const char *alt = form_get(f, "alt"), *timeout = form_get(f, "timeout_sec");
    *q = (struct question){.is_recursive = read_flag(f, "recursive"),
        .waits = read_flag(f, "wait_for_change"),
        .timeout_s = WAIT_MAX_S,
        .last_etag = form_get(f, "last_etag")};
    q->is_json = alt ? str_eq(alt, "json") : q->is_recursive;
    if ((alt && !q->is_json && !str_eq(alt, "text")) ||
        (timeout && str_to_i64(timeout, 0, WAIT_MAX_S, "timeout_sec", &q->timeout_s, NULL) < 0))
        return ERR_INVALID;
    return 0;
}

/* Whether the caller already has this value: it then waits for another. */
static bool has_to_wait(const struct question *q, const struct front_request *r, const char *etag)
{
    const char *known = r->mark ? r->mark : q->last_etag ? q->last_etag : etag;
    return q->waits && !r->is_last && q->timeout_s > 0 && str_eq(known, etag);
}

static void answer_value(const json_t *v, const struct question *q, const struct front_request *r,
    struct front_reply *reply)
{
    char etag[ETAG_MAX];
    if (q->is_json)
        add_json(&reply->body, v, !q->is_in_attributes);
    else if (json_is_object(v))
        add_names(&reply->body, v, q->is_recursive, "", 0);
    else
        add_leaf(&reply->body, v);
    make_etag(&reply->body, etag);
    reply->content_type = q->is_json ? JSON_TYPE : TEXT_TYPE;
    front_reply_header(reply, "ETag", "%s", etag);
    if (!has_to_wait(q, r, etag))
        return;
    reply->wait_ms = SECONDS_MS(q->timeout_s);
    STR_COPY(reply->mark, r->mark ? r->mark : q->last_etag ? q->last_etag : etag);
}

/* ---- Tokens ---- */

/* "instance/service-accounts/ACCOUNT/token", of the instance's own account. */
static bool is_token_path(const struct front_site *s, const char *path)
{
    static const char dir[] = "instance/service-accounts/";
    const char *account = s->instance->reservation->spec.profile;
    if (!account[0] || !str_starts(path, dir))
        return false;
    path += strlen(dir);
    size_t n = strcspn(path, "/");
    bool is_its =
        (strlen(account) == n && strncmp(path, account, n) == 0) || str_starts(path, "default/");
    return is_its && str_eq(path + n, "/token");
}

static void answer_token(const struct front_site *s, struct front_reply *reply)
{
    struct gce *gce = s->state;
    const struct launch_spec *spec = &s->instance->reservation->spec;
    struct gce_caller caller = {.account = gce_auth_find(&gce->auth, spec->profile)};
    for (size_t k = 0; k < spec->scopes.n; k++)
        caller.has_scope |= gce_auth_scope_suffices(spec->scopes.list[k].key);
    const struct gce_token *t =
        gce_auth_issue(&gce->auth, &caller, s->instance->id, gce->role_ttl_ms, s->now);
    reply->content_type = JSON_TYPE;
    buf_printf(&reply->body,
        "{\"access_token\":\"%s\",\"expires_in\":%lld,\"token_type\":\"Bearer\"}", t->text,
        (long long)((t->expires.ms - s->now.ms) / 1000));
}

/* ---- Dispatch ---- */

/* A directory is requested with a trailing slash. */
static void redirect(const char *path, struct front_reply *reply)
{
    reply->status = 301;
    reply->content_type = TEXT_TYPE;
    front_reply_header(reply, "Location", ROOT "/%s/", path);
}

static void answer_path(const struct front_site *s, const struct front_request *r, const char *path,
    struct front_reply *reply)
{
    struct form form = {0};
    struct question q;
    const char *query = front_query(r);
    if (form_parse(query, strlen(query), &form, NULL) < 0 || read_question(&form, &q) < 0) {
        gce_metadata_error(400, reply);
    } else if (is_token_path(s, path)) {
        answer_token(s, reply);
    } else {
        json_t *tree = tree_of(s);
        const json_t *v = walk(tree, path);
        q.is_in_attributes = strstr(path, "/" ATTRIBUTES) != NULL;
        bool is_dir_path = !path[0] || str_ends(path, "/");
        if (!v || (is_dir_path && !json_is_object(v)))
            gce_metadata_error(404, reply);
        else if (json_is_object(v) && !is_dir_path && !q.is_recursive)
            redirect(path, reply);
        else
            answer_value(v, &q, r, reply);
        json_decref(tree);
    }
    form_deinit(&form);
}

void gce_metadata(
    const struct front_site *s, const struct front_request *r, struct front_reply *reply)
{
    set_headers(reply);
    reply->content_type = TEXT_TYPE;
    if (front_header(r, "X-Forwarded-For") ||
        !str_eq(front_header(r, "Metadata-Flavor"), "Google")) {
        gce_metadata_error(403, reply);
    } else if (!str_eq(r->method, "GET") && !str_eq(r->method, "HEAD")) {
        gce_metadata_error(405, reply);
    } else if (str_eq(r->path, "/") || str_eq(r->path, "/computeMetadata/")) {
        buf_adds(&reply->body, r->path[1] ? "v1/\n" : "computeMetadata/\n");
    } else if (str_eq(r->path, ROOT) || str_starts(r->path, ROOT "/")) {
        answer_path(s, r, r->path[strlen(ROOT)] ? r->path + strlen(ROOT) + 1 : "", reply);
    } else {
        gce_metadata_error(404, reply);
    }
}
