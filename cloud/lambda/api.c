/* SPDX-License-Identifier: Apache-2.0
 *
 * Lambda's Cloud API as bytes. See api.h; field names from the provider's OpenAPI description,
 * version 1.10.
 */
#include "cloud/lambda/api.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/refusal.h"
#include <stdlib.h>
#include <string.h>

#define TAG_CLUSTER "belay:cluster"
#define TAG_TOKEN "belay:instance"
#define TAGS_MAX 256
#define IDS_MAX 1000
#define REGIONS_MAX 1000
#define CODE_MAX 96
/* prefix of error codes from the operator of the machines behind Lambda */
#define FROM_BELOW "provider/"
#define MESSAGE_MAX 300
#define ERROR_BODY_MAX (64u << 10)
#define PRICE_CENTS_MAX 100000000
#define CENT_UUSD 10000

/* ---- requests ---- */

static json_t *tag(const char *key, const char *value)
{
    return json_pack("{s:s, s:o}", "key", key, "value", json_text(value));
}

static void set_image(json_t *body, const struct lambda_machine *m)
{
    if (m->image)
        json_object_set_new(body, "image", json_pack("{s:o}", "id", json_text(m->image)));
    else if (m->image_family)
        json_object_set_new(
            body, "image", json_pack("{s:o}", "family", json_text(m->image_family)));
}

int lambda_build_launch(
    const struct cloud_launch *l, const struct lambda_machine *m, struct buf *out, struct err *e)
{
    if (l->market != CLOUD_ON_DEMAND)
        return err_set(e, ERR_CONFIG, "Lambda has no spot instances");
    if (strlen(l->user_data) > CLOUD_USER_DATA_MAX)
        return err_set(e, ERR_INVALID, "user data of more than %d bytes", CLOUD_USER_DATA_MAX);
    if (!*l->token || strlen(l->token) >= CLOUD_TOKEN_MAX)
        return err_set(e, ERR_INVALID, "the token is empty or too long for a name at Lambda");
    json_t *body = json_object();
    json_object_set_new(body, "region_name", json_text(l->region));
    json_object_set_new(body, "instance_type_name", json_text(l->type));
    json_object_set_new(body, "ssh_key_names", json_pack("[o]", json_text(m->ssh_key)));
    if (m->file_system)
        json_object_set_new(body, "file_system_names", json_pack("[o]", json_text(m->file_system)));
    json_object_set_new(body, "name", json_text(l->token));
    json_object_set_new(
        body, "tags", json_pack("[o, o]", tag(TAG_CLUSTER, l->cluster), tag(TAG_TOKEN, l->token)));
    set_image(body, m);
    json_object_set_new(body, "user_data", json_text(l->user_data));
    json_add_secret(out, body); /* the user data contains one */
    return 0;
}

int lambda_build_terminate(const char *const *ids, size_t n_ids, struct buf *out, struct err *e)
{
    if (n_ids == 0 || n_ids > IDS_MAX)
        return err_set(e, ERR_INVALID, "1 to %d instances can be terminated at once", IDS_MAX);
    json_t *list = json_array();
    for (size_t i = 0; i < n_ids; i++)
        json_array_append_new(list, json_text(ids[i]));
    json_add(out, json_pack("{s:o}", "instance_ids", list));
    return 0;
}

/* ---- replies ---- */

/* Returns data of {"data": ...}, borrowed from *ret_root, which the caller must always free. */
static const json_t *read_data(const char *body, size_t n, json_t **ret_root, struct err *e)
{
    *ret_root = NULL;
    if (json_parse(body, n, LAMBDA_REPLY_MAX, ret_root, e) != 0) {
        err_wrap(e, "Lambda's reply");
        return NULL;
    }
    const json_t *data = json_object_get(*ret_root, "data");
    if (!data)
        err_set(e, ERR_INVALID, "Lambda's reply has no \"data\"");
    return data;
}

static int not_an_array(const char *what, struct err *e)
{
    return err_set(e, ERR_INVALID, "Lambda's reply: %s is not a list, or is too long", what);
}

int lambda_parse_launch(const char *body, size_t n, char ret_id[CLOUD_NAME_MAX], struct err *e)
{
    json_t *root;
    struct json_reader r;
    const json_t *data = read_data(body, n, &root, e);
    int rc = data ? 0 : (int)e->kind;
    if (rc == 0) {
        json_reader_init(&r, data, "data", e);
        const json_t *ids = json_req_array(&r, "instance_ids", IDS_MAX);
        const char *id = json_string_value(json_array_get(ids, 0));
        if (r.rc == 0 && (json_array_size(ids) != 1 || !id || !*id || strlen(id) >= CLOUD_NAME_MAX))
            json_reader_fail(&r, "instance_ids", "expected the id of one instance");
        rc = json_reader_finish_lenient(&r);
        if (rc == 0)
            str_copy(ret_id, CLOUD_NAME_MAX, id);
    }
    json_decref(root);
    return rc;
}

static void set_state(struct cloud_instance *i, const char *status)
{
    i->state = CLOUD_RUNNING;
    if (str_eq(status, "booting"))
        i->state = CLOUD_PENDING;
    else if (str_eq(status, "terminating"))
        i->state = CLOUD_STOPPING;
    else if (str_eq(status, "terminated") || str_eq(status, "preempted"))
        i->state = CLOUD_GONE;
    i->reclaimed = str_eq(status, "preempted");
    if (!str_eq(status, "active") && !str_eq(status, "booting"))
        STR_COPY(i->reason, status);
    str_sanitize(i->reason, strlen(i->reason));
}

/* Our tags are short; longer ones are not ours. */
static void set_tags(struct cloud_instance *i, const json_t *tags)
{
    size_t k;
    json_t *t;
    json_array_foreach(tags, k, t)
    {
        const char *key = json_string_value(json_object_get(t, "key"));
        const char *value = json_string_value(json_object_get(t, "value"));
        if (value && str_eq(key, TAG_CLUSTER) && strlen(value) < sizeof(i->cluster))
            STR_COPY(i->cluster, value);
        else if (value && str_eq(key, TAG_TOKEN) && strlen(value) < sizeof(i->token))
            STR_COPY(i->token, value);
    }
}

static void read_name_of(
    struct json_reader *up, const char *key, char *out, size_t size, struct err *e)
{
    struct json_reader r;
    const json_t *v = json_req_object(up, key);
    if (up->rc != 0)
        return;
    json_reader_init(&r, v, key, e);
    json_req_strcpy(&r, "name", out, size);
    up->rc = json_reader_finish_lenient(&r);
}

static int read_instance(
    const json_t *v, const char *region, struct cloud_instances *out, struct err *e)
{
    struct cloud_instance i = {
        .market = CLOUD_ON_DEMAND, .launched_at = WALL_NONE, .ended_at = WALL_NONE};
    struct json_reader r;
    json_reader_init(&r, v, "an instance", e);
    json_req_strcpy(&r, "id", i.id, sizeof(i.id));
    const char *status = json_req_str(&r, "status", 64);
    read_name_of(&r, "region", i.zone, sizeof(i.zone), e);
    read_name_of(&r, "instance_type", i.type, sizeof(i.type), e);
    const json_t *tags = json_opt_array(&r, "tags", TAGS_MAX);
    if (r.rc == 0 && !i.id[0])
        json_reader_fail(&r, "id", "is empty");
    int rc = json_reader_finish_lenient(&r);
    if (rc != 0 || !str_eq(i.zone, region))
        return rc;
    set_state(&i, status);
    set_tags(&i, tags);
    return cloud_instances_add(out, &i, e);
}

int lambda_parse_instances(
    const char *body, size_t n, const char *region, struct cloud_instances *out, struct err *e)
{
    json_t *root, *v;
    size_t k;
    const json_t *data = read_data(body, n, &root, e);
    int rc = data ? 0 : (int)e->kind;
    if (rc == 0 && (!json_is_array(data) || json_array_size(data) > CLOUD_LIST_MAX))
        rc = not_an_array("data", e);
    json_array_foreach(data, k, v)
    {
        if (rc == 0)
            rc = read_instance(v, region, out, e);
    }
    json_decref(root);
    return rc;
}

static bool names(const json_t *list, const char *id)
{
    size_t k;
    json_t *v;
    json_array_foreach(list, k, v)
    {
        if (str_eq(json_string_value(json_object_get(v, "id")), id))
            return true;
    }
    return false;
}

int lambda_parse_terminate(
    const char *body, size_t n, const char *const *ids, size_t n_ids, struct err *e)
{
    json_t *root;
    struct json_reader r;
    const json_t *data = read_data(body, n, &root, e);
    int rc = data ? 0 : (int)e->kind;
    if (rc == 0) {
        json_reader_init(&r, data, "data", e);
        const json_t *list = json_req_array(&r, "terminated_instances", IDS_MAX);
        rc = json_reader_finish_lenient(&r);
        for (size_t i = 0; rc == 0 && i < n_ids; i++)
            if (!names(list, ids[i]))
                rc = err_set(
                    e, ERR_UNAVAILABLE, "Lambda's reply does not list %s as terminating", ids[i]);
    }
    json_decref(root);
    return rc;
}

static int read_type(
    const char *name, const json_t *v, const char *region, struct lambda_type *t, struct err *e)
{
    struct json_reader r, about;
    size_t k;
    json_t *with;
    *t = (struct lambda_type){0};
    STR_COPY(t->name, name);
    json_reader_init(&r, v, "an instance type", e);
    const json_t *type = json_req_object(&r, "instance_type");
    const json_t *regions = json_opt_array(&r, "regions_with_capacity_available", REGIONS_MAX);
    int rc = json_reader_finish_lenient(&r);
    if (rc != 0)
        return rc;
    json_reader_init(&about, type, "instance_type", e);
    t->uusd_h = CENT_UUSD * json_req_i64(&about, "price_cents_per_hour", 0, PRICE_CENTS_MAX);
    json_array_foreach(regions, k, with)
    {
        if (str_eq(json_string_value(json_object_get(with, "name")), region))
            t->has_capacity = true;
    }
    return json_reader_finish_lenient(&about);
}

int lambda_parse_types(
    const char *body, size_t n, const char *region, struct lambda_types *ret_types, struct err *e)
{
    json_t *root, *v;
    const char *name;
    struct lambda_types types = {0};
    const json_t *data = read_data(body, n, &root, e);
    int rc = data ? 0 : (int)e->kind;
    if (rc == 0 && (!json_is_object(data) || json_object_size(data) > LAMBDA_TYPES_MAX))
        rc = err_set(e, ERR_INVALID,
            "Lambda's reply: data is not a map of at most %d instance types", LAMBDA_TYPES_MAX);
    if (rc == 0)
        types.list = mem_array(json_object_size(data) + 1, sizeof(*types.list));
    json_object_foreach((json_t *)data, name, v)
    {
        if (rc == 0 && *name && strlen(name) < CLOUD_NAME_MAX)
            rc = read_type(name, v, region, &types.list[types.n++], e);
    }
    json_decref(root);
    if (rc == 0)
        *ret_types = types;
    else
        free(types.list);
    return rc;
}

/* ---- refusals ---- */

static const struct refusal refusals[] = {
    {"instance-operations/launch/insufficient-capacity", ERR_NO_CAPACITY},
    {"global/quota-exceeded", ERR_QUOTA, "ask Lambda for a larger quota"},
    {"global/invalid-api-key", ERR_DENIED, "check the API key"},
    {"global/account-inactive", ERR_DENIED, "check the account at cloud.lambda.ai"},
    {"global/invalid-address", ERR_DENIED, "the account needs a billing address"},
    {"global/forbidden", ERR_DENIED},
    {"global/object-does-not-exist", ERR_NOT_FOUND},
    {"global/not-found", ERR_NOT_FOUND},
    {"global/invalid-parameters", ERR_CONFIG,
        "check the pool's types, ssh_key, image and file_system"},
    {"instance-operations/launch/file-system-in-wrong-region", ERR_CONFIG,
        "name a file system of the pool's region"},
    {"instance-operations/launch/file-systems-not-supported", ERR_CONFIG,
        "leave file_system out for this type or region"},
    {"HTTP 404", ERR_NOT_FOUND},
    {NULL},
};

static bool read_error(const char *body, size_t n, char *code, char *message)
{
    json_t *root = NULL;
    if (json_parse(body, n, ERROR_BODY_MAX, &root, NULL) != 0)
        return false;
    const json_t *error = json_object_get(root, "error");
    const char *c = json_string_value(json_object_get(error, "code"));
    const char *m = json_string_value(json_object_get(error, "message"));
    str_copy(code, CODE_MAX, c ? c : "");
    str_copy(message, MESSAGE_MAX, m ? m : "");
    json_decref(root);
    return code[0] != '\0';
}

int lambda_parse_error(int status, const char *body, size_t n, struct err *e)
{
    char code[CODE_MAX], message[MESSAGE_MAX];
    if (!read_error(body, n, code, message)) {
        bool is_redirect = status >= 300 && status < 400;
        return err_set(e, refusal_kind_of_status(refusals, status, ERR_CONFIG),
            "Lambda answered HTTP %d without an error code%s", status,
            is_redirect
                ? "; it redirects to another address, to which the key is not sent: set the "
                  "pool's endpoint"
                : "");
    }
    const struct refusal *r = refusal_find(refusals, code);
    enum err_kind kind =
        r && status != 429 ? r->kind : refusal_kind_of_status(refusals, status, ERR_CONFIG);
    if (kind == ERR_CONFIG && str_starts(code, FROM_BELOW))
        /* an outage or a shortage at Lambda, not a mistake in the pool */
        kind = ERR_NO_CAPACITY;
    return refusal_set("Lambda", kind, code, message, r, e);
}

/* ---- the key ---- */

int lambda_parse_key(const char *text, size_t n, char ret_key[LAMBDA_KEY_MAX + 1], struct err *e)
{
    while (n > 0 && strchr(" \t\r\n", text[n - 1]) && text[n - 1])
        n--;
    while (n > 0 && strchr(" \t\r\n", *text) && *text)
        text++, n--;
    if (n == 0 || n > LAMBDA_KEY_MAX)
        return err_set(e, ERR_CONFIG, "expected an API key of 1 to %d characters and nothing else",
            LAMBDA_KEY_MAX);
    for (size_t i = 0; i < n; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return err_set(
                e, ERR_CONFIG, "expected an API key: one word of letters, digits and signs");
    memcpy(ret_key, text, n);
    ret_key[n] = '\0';
    return 0;
}
