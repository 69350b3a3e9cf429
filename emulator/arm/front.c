/* SPDX-License-Identifier: Apache-2.0
 *
 * Azure: its keys in the configuration, Azure Resource Manager over arm.h, the metadata service
 * over arm/metadata.h. Azure's three hosts (management, login, prices) are one address here, with
 * different paths.
 */
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "emulator/arm/arm.h"
#include "emulator/arm/metadata.h"
#include "emulator/config_section.h"
#include "emulator/front.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON_TYPE "application/json; charset=utf-8"
#define CLIENTS_MAX 16
#define LIST_MAX 100
#define TEXT_MAX 512
#define TENANT "00000000-0000-0000-0000-00000000000a"

struct arm_options {
    char tenant[ARM_AUTH_TEXT_MAX];
    struct arm_client clients[CLIENTS_MAX];
    size_t n_clients;
    const char **groups, **images, **subnets;
    int64_t token_ttl_ms, spot_cores, nic_reserved_ms;
    int page, retry_after_s;
};

struct azure {
    struct arm arm;
    struct arm_account account;
    struct arm_auth auth;
    int64_t role_ttl_ms;
};

/* ---- Configuration ---- */

static void read_clients(struct config_section *s, struct arm_options *o)
{
    const struct yaml_node *seq = yaml_opt_seq(&s->r, "clients", CLIENTS_MAX);
    for (size_t k = 0; seq && k < seq->n_items && s->r.rc == 0; k++) {
        struct yaml_reader r;
        config_inner_init(s, &r, seq->items[k]);
        const char *id = yaml_req_str(&r, "client_id", ARM_AUTH_TEXT_MAX - 1);
        const char *secret = yaml_req_str(&r, "client_secret", ARM_AUTH_TEXT_MAX - 1);
        config_inner_finish(s, &r);
        if (s->r.rc < 0)
            return;
        STR_COPY(o->clients[k].id, id);
        STR_COPY(o->clients[k].secret, secret);
        o->n_clients = k + 1;
    }
    if (o->n_clients == 0)
        yaml_reader_fail(&s->r, NULL,
            "clients: at least one client_id with its client_secret is needed to call with");
}

/* Like config_names, for texts that are not names: resource ids, URNs. */
static const char **read_texts(struct config_section *s, const char *key)
{
    const struct yaml_node *seq = yaml_opt_seq(&s->r, key, LIST_MAX);
    if (!seq)
        return NULL;
    const char **texts = mem_array(seq->n_items + 1, sizeof(*texts));
    for (size_t k = 0; k < seq->n_items; k++) {
        const struct yaml_node *item = seq->items[k];
        if (item->type != YAML_SCALAR || !item->text[0] || strlen(item->text) > TEXT_MAX) {
            yaml_reader_fail(&s->r, item, "expected a text of 1 to %d characters", TEXT_MAX);
            break;
        }
        texts[k] = mem_strdup(item->text);
    }
    return texts;
}

static void *read_options(struct config_section *s)
{
    struct arm_options *o = mem_alloc(sizeof(*o));
    STR_COPY(o->tenant, yaml_opt_str(&s->r, "tenant", ARM_AUTH_TEXT_MAX - 1, TENANT));
    read_clients(s, o);
    o->groups = config_names(s, "resource_groups");
    o->images = read_texts(s, "images");
    o->subnets = read_texts(s, "subnets");
    o->token_ttl_ms = yaml_opt_duration_ms(&s->r, "token_ttl", SECONDS_MS(3600));
    o->spot_cores = yaml_opt_i64(&s->r, "spot_cores", 0, 1000000, 0);
    o->page = (int)yaml_opt_i64(&s->r, "page", 1, 1000, 100);
    o->retry_after_s = (int)yaml_opt_i64(&s->r, "retry_after_s", 0, 600, 1);
    o->nic_reserved_ms = SECONDS_MS(yaml_opt_i64(&s->r, "nic_reserved_s", 0, 3600, 0));
    return o;
}

static void free_options(void *options)
{
    struct arm_options *o = options;
    if (!o)
        return;
    config_names_free(o->groups);
    config_names_free(o->images);
    config_names_free(o->subnets);
    explicit_bzero(o->clients, sizeof(o->clients));
    free(o);
}

/* ---- State ---- */

static json_t *describe(void *state, struct wall now)
{
    struct azure *azure = state;
    return arm_state(&azure->arm, now);
}

static int open_azure(const struct front_setup *setup, void **ret_state, struct err *e)
{
    const struct arm_options *o = setup->options;
    struct azure *azure = mem_alloc(sizeof(*azure));
    (void)e;
    azure->account = (struct arm_account){.subscription = setup->region->o->account,
        .groups = o->groups,
        .images = o->images,
        .subnets = o->subnets,
        .spot_cores = o->spot_cores,
        .page = o->page,
        .retry_after_s = o->retry_after_s,
        .nic_reserved_ms = o->nic_reserved_ms};
    azure->auth = (struct arm_auth){.tenant = o->tenant,
        .clients = o->clients,
        .n_clients = o->n_clients,
        .token_ttl_ms = o->token_ttl_ms};
    random_bytes(azure->auth.key, sizeof(azure->auth.key));
    azure->role_ttl_ms = setup->role_ttl_ms;
    arm_init(&azure->arm, setup->region, &azure->account, &azure->auth);
    azure->arm.console = setup->console;
    azure->arm.console_ctx = setup->console_ctx;
    arm_add_volumes(&azure->arm);
    setup->region->describe = describe;
    setup->region->describe_ctx = azure;
    *ret_state = azure;
    return 0;
}

static void close_azure(void *state)
{
    struct azure *azure = state;
    if (!azure)
        return;
    arm_deinit(&azure->arm);
    explicit_bzero(&azure->auth, sizeof(azure->auth));
    free(azure);
}

static int announce(
    void *state, const struct region *region, const char *url, json_t *ports, struct err *e)
{
    const struct azure *azure = state;
    (void)region;
    json_object_set_new(ports, "azure_tenant", json_text(azure->auth.tenant));
    json_object_set_new(ports, "azure_subscription", json_text(azure->account.subscription));
    (void)url, (void)e;
    return 0;
}

/* ---- The API ---- */

/* Takes over the content of the inner reply. */
static void move_reply(struct front_reply *reply, struct arm_reply *inner)
{
    char *text = arm_reply_text(inner);
    buf_clear(&reply->body);
    buf_adds(&reply->body, text ? text : "");
    free(text);
    reply->status = inner->status;
    reply->content_type = JSON_TYPE;
    reply->n_headers = 0;
    front_reply_header(reply, "x-ms-request-id", "%s", inner->request_id);
    for (size_t k = 0; k < inner->n_headers; k++)
        front_reply_header(reply, inner->headers[k].name, "%s", inner->headers[k].value);
    STR_COPY(reply->request_id, inner->request_id);
    arm_reply_deinit(inner);
}

static bool is_refused(const struct front_site *s, const char *action, struct arm_reply *reply)
{
    struct azure *azure = s->state;
    struct fault fault;
    const char *code = front_refusal(s->region, action, "TooManyRequests", &fault);
    if (!code)
        return false;
    if (str_eq(action, "virtualMachines/write")) {
        s->region->counts.launch_calls++;
        s->region->counts.refusals++;
    }
    *reply = (struct arm_reply){0};
    arm_error(&azure->arm, code, NULL, reply);
    return true;
}

static void api(
    const struct front_site *s, const struct front_request *r, struct front_reply *reply)
{
    struct azure *azure = s->state;
    struct arm_reply inner;
    char base[300];
    const char *host = front_header(r, "Host");
    snprintf(base, sizeof(base), "http://%.256s", host ? host : "127.0.0.1");
    const struct arm_request q = {.method = r->method,
        .path = r->path,
        .query = front_query(r),
        .base = base,
        .authorization = front_header(r, "Authorization"),
        .body = r->body,
        .body_len = r->body_len};
    arm_action(&q, reply->action);
    bool is_blob = arm_console_is_blob(&q);
    if (is_blob)
        STR_COPY(reply->action, ARM_ACTION_BLOB);
    bool is_fault = is_refused(s, reply->action, &inner);
    if (is_blob && !is_fault) {
        reply->status =
            arm_console_blob(&azure->arm, &q, s->now, &reply->body, &reply->content_type);
        return;
    }
    if (!is_fault)
        arm_call(&azure->arm, &q, s->now, &inner);
    reply->is_noted = str_ends(reply->action, "/write") || str_ends(reply->action, "/delete");
    move_reply(reply, &inner);
}

static void api_error(const struct front_site *s, const char *code, struct front_reply *reply)
{
    struct azure *azure = s->state;
    struct arm_reply inner = {0};
    STR_COPY(inner.request_id, reply->request_id);
    arm_error(&azure->arm, code, NULL, &inner);
    move_reply(reply, &inner);
}

/* ---- The metadata service ---- */

static void move_metadata(struct front_reply *reply, struct arm_metadata_reply *inner)
{
    reply->status = inner->status;
    reply->content_type = inner->is_text ? "text/plain; charset=utf-8" : JSON_TYPE;
    reply->body = inner->body;
}

static void metadata(
    const struct front_site *s, const struct front_request *r, struct front_reply *reply)
{
    struct azure *azure = s->state;
    struct arm_metadata_reply inner;
    const struct arm_metadata_request q = {.method = r->method,
        .path = r->path,
        .query = front_query(r),
        .metadata = front_header(r, "Metadata"),
        .forwarded_for = front_header(r, "X-Forwarded-For"),
        .body = r->body,
        .body_len = r->body_len};
    arm_metadata_answer(&azure->arm, s->instance, &q, s->now, azure->role_ttl_ms, &inner);
    move_metadata(reply, &inner);
}

static void metadata_error(int status, struct front_reply *reply)
{
    struct arm_metadata_reply inner = {0};
    arm_metadata_error(status, &inner);
    move_metadata(reply, &inner);
}

const struct front arm_front = {.name = "azure",
    .port_key = "azure",
    .region = "eastus",
    .account = "00000000-0000-0000-0000-000000000001",
    .account_key = "subscription",
    .disk_type = "Premium_LRS",
    .notice_s = 30,
    .role_ttl_ms = SECONDS_MS(86400),
    .body_max = ARM_BODY_MAX,
    .garbage = "{\"name\":\"",
    .garbage_type = JSON_TYPE,
    .internal_error = "InternalServerError",
    .read_options = read_options,
    .free_options = free_options,
    .open = open_azure,
    .close = close_azure,
    .announce = announce,
    .api = api,
    .api_error = api_error,
    .metadata = metadata,
    .metadata_error = metadata_error};
