/* SPDX-License-Identifier: Apache-2.0
 *
 * AWS: its keys in the configuration, the check of signatures before ec2/api.c, and IMDS over
 * ec2/metadata.c.
 */
#include "base/mem.h"
#include "base/str.h"
#include "emulator/config_section.h"
#include "emulator/ec2/front.h"
#include "emulator/ec2/metadata.h"
#include "emulator/ec2/pricing.h"
#include "emulator/front.h"
#include "emulator/ec2/sts_api.h"
#include <stdlib.h>
#include <string.h>

#define TARGET_HEADER "X-Amz-Target"
#define VCPU_QUOTA_MAX 1000000000

struct ec2 {
    struct keyring keyring;
    struct ec2_account account;
    struct sts_account sts;
    struct ec2_store store;
    int64_t role_ttl_ms;
    const struct ec2_options *options;
    struct s3_state s3;
    const struct s3_options *s3_options;
};

/* ---- Configuration ---- */

static void read_keys(struct config_section *s, struct ec2_options *o)
{
    const struct yaml_node *seq = yaml_opt_seq(&s->r, "keys", EC2_KEYS_MAX);
    for (size_t k = 0; seq && k < seq->n_items && s->r.rc == 0; k++) {
        struct yaml_reader r;
        config_inner_init(s, &r, seq->items[k]);
        const char *access = yaml_req_str(&r, "access_key", KEYRING_ACCESS_MAX - 1);
        const char *secret = yaml_req_str(&r, "secret_key", KEYRING_SECRET_MAX - 1);
        config_inner_finish(s, &r);
        if (s->r.rc < 0)
            return;
        STR_COPY(o->keys[k].access, access);
        STR_COPY(o->keys[k].secret, secret);
        o->n_keys = k + 1;
    }
    if (o->n_keys == 0)
        yaml_reader_fail(
            &s->r, NULL, "keys: at least one access key is needed to sign requests with");
}

static void read_subnets(struct config_section *s, struct ec2_options *o)
{
    const struct yaml_node *map = yaml_opt_map(&s->r, "subnets");
    if (!map)
        return;
    o->subnets = mem_array(map->n_items + 1, sizeof(*o->subnets));
    for (size_t k = 0; k < map->n_items; k++) {
        const struct yaml_node *zone = map->items[k];
        struct ec2_subnet *subnet = &o->subnets[o->n_subnets];
        if (zone->type != YAML_SCALAR || !str_is_name(zone->key, CLOUD_NAME_MAX - 1) ||
            !str_is_name(zone->text, CLOUD_NAME_MAX - 1)) {
            yaml_reader_fail(&s->r, zone, "expected SUBNET: ZONE, both names");
            return;
        }
        STR_COPY(subnet->id, zone->key);
        STR_COPY(subnet->zone, zone->text);
        o->n_subnets++;
    }
}

static void read_quotas(struct config_section *s, struct ec2_options *o)
{
    const struct yaml_node *map = yaml_opt_map(&s->r, "vcpu_quotas");
    for (size_t k = 0; map && k < map->n_items && s->r.rc == 0; k++) {
        const struct yaml_node *row = map->items[k];
        struct ec2_granted *g = &o->quotas[o->n_quotas];
        if (o->n_quotas == EC2_QUOTAS_MAX || row->type != YAML_SCALAR ||
            !STR_COPY(g->code, row->key) ||
            str_to_i64(row->text, 0, VCPU_QUOTA_MAX, "vCPUs", &g->value, NULL) < 0) {
            yaml_reader_fail(&s->r, row,
                "expected at most %d lines CODE: VCPUS, like L-34B43A08: 64", EC2_QUOTAS_MAX);
            return;
        }
        o->n_quotas++;
    }
}

static void *read_options(struct config_section *s)
{
    struct ec2_options *o = mem_alloc(sizeof(*o));
    o->images = config_names(s, "images");
    o->profiles = config_names(s, "profiles");
    o->roles = config_names(s, "roles");
    o->min_session_s = yaml_opt_i64(&s->r, "min_session_s", 1, 3600, 900);
    o->page = yaml_opt_i64(&s->r, "page", 1, 1000, 0);
    o->image_volume_gib = yaml_opt_i64(&s->r, "image_volume_gib", 1, VOLUME_GIB_MAX, 0);
    read_keys(s, o);
    read_subnets(s, o);
    read_quotas(s, o);
    s3_read_options(s, &o->s3);
    return o;
}

static void free_options(void *options)
{
    struct ec2_options *o = options;
    if (!o)
        return;
    config_names_free(o->images);
    config_names_free(o->profiles);
    config_names_free(o->roles);
    free(o->subnets);
    config_names_free(o->s3.buckets);
    explicit_bzero(o->keys, sizeof(o->keys));
    free(o);
}

/* ---- State ---- */

static json_t *describe(void *state, struct wall now)
{
    const struct ec2 *ec2 = state;
    json_t *list = ec2_store_state(&ec2->store);
    s3_state_describe(&ec2->s3, list);
    keyring_describe(&ec2->keyring, now, list);
    return list;
}

static int open_ec2(const struct front_setup *setup, void **ret_state, struct err *e)
{
    const struct ec2_options *o = setup->options;
    struct ec2 *state = mem_alloc(sizeof(*state));
    (void)e;
    for (size_t k = 0; k < o->n_keys; k++)
        keyring_add(&state->keyring, o->keys[k].access, o->keys[k].secret);
    state->account = (struct ec2_account){.images = o->images,
        .profiles = o->profiles,
        .subnets = o->subnets,
        .n_subnets = o->n_subnets,
        .page = o->page,
        .image_volume_gib = o->image_volume_gib,
        .store = &state->store,
        .console = setup->console,
        .console_ctx = setup->console_ctx};
    state->sts = (struct sts_account){
        .roles = o->roles, .min_session_s = o->min_session_s, .keyring = &state->keyring};
    state->role_ttl_ms = setup->role_ttl_ms;
    setup->region->describe = describe;
    setup->region->describe_ctx = state;
    state->options = o;
    state->s3_options = &o->s3;
    s3_open_state(&state->s3, &o->s3, &state->keyring, setup->region->o->name);
    *ret_state = state;
    return 0;
}

static void close_ec2(void *state)
{
    struct ec2 *ec2 = state;
    if (!ec2)
        return;
    keyring_deinit(&ec2->keyring);
    ec2_store_deinit(&ec2->store);
    s3_close_state(&ec2->s3);
    free(ec2);
}

static void *side_state(void *state, int *ret_port)
{
    struct ec2 *ec2 = state;
    *ret_port = ec2->s3_options->port;
    return ec2->s3_options->buckets ? &ec2->s3 : NULL;
}

static int announce(
    void *state, const struct region *region, const char *url, json_t *ports, struct err *e)
{
    (void)state, (void)url, (void)e;
    json_object_set_new(ports, "region", json_string(region->o->name));
    return 0;
}

/* ---- The API ---- */

/* Takes over the body of the inner reply. */
static void move_reply(struct front_reply *reply, const char *content_type, struct ec2_reply *inner)
{
    buf_deinit(&reply->body);
    reply->status = inner->status;
    reply->content_type = content_type;
    reply->body = inner->body;
    reply->n_headers = 0;
    front_reply_header(reply, "x-amzn-RequestId", "%s", inner->request_id);
    front_reply_header(reply, "Server", "AmazonEC2");
    STR_COPY(reply->request_id, inner->request_id);
}

/* NULL, or the code of the refusal, with its message in e unless it is the usual one. *ret_caller
 * is borrowed. */
static const char *check_caller(const struct front_site *s, const struct front_request *r,
    const char *service, const char *region, const struct keyring_key **ret_caller, struct err *e)
{
    const struct ec2 *ec2 = s->state;
    const struct keyring_request request = {.method = r->method,
        .target = r->target,
        .headers = r->headers,
        .n_headers = r->n_headers,
        .body = r->body,
        .body_len = r->body_len,
        .service = service};
    const char *code = keyring_check(&ec2->keyring, &request, region, s->clock, e);
    *ret_caller = keyring_caller(&ec2->keyring, &request);
    return code;
}

/* Refuses sessions with a policy: the emulated policies know no EC2 action. */
static bool is_limited(const struct keyring_key *caller)
{
    return caller->policy.statements != NULL;
}

/* The parameters are in the body of a POST, in the query of a GET. */
static int read_form(const struct front_request *r, struct form *form, struct err *e)
{
    if (str_eq(r->method, "POST"))
        return form_parse(r->body, r->body_len, form, e);
    const char *query = front_query(r);
    return form_parse(query, strlen(query), form, e);
}

/* Repeating a launch returns what it created, whatever the capacity is by then. */
static bool is_repeated(const struct front_site *s, const char *action, struct form *form)
{
    if (!str_eq(action, "RunInstances"))
        return false;
    const char *token = form_get(form, "ClientToken"),
               *zone = form_get(form, "Placement.AvailabilityZone");
    return token && region_find_token(s->region, token, zone ? zone : "");
}

static bool is_refused(
    const struct front_site *s, const char *action, struct form *form, struct ec2_reply *reply)
{
    static const char throttled[] = "RequestLimitExceeded";
    struct fault fault;
    const char *code = is_repeated(s, action, form)
                           ? front_throttled(s->region, action, throttled)
                           : front_refusal(s->region, action, throttled, &fault);
    if (!code)
        return false;
    if (str_eq(action, "RunInstances")) {
        s->region->counts.launch_calls++;
        s->region->counts.refusals++;
    }
    ec2_api_error(s->region, code, NULL, reply);
    return true;
}

/* The price list, which has its own host at AWS. */
static void price_list(
    const struct front_site *s, const struct front_request *r, struct front_reply *reply)
{
    const struct ec2_pricing_request request = {.target = front_header(r, TARGET_HEADER),
        .content_type = front_header(r, "Content-Type"),
        .body = r->body,
        .body_len = r->body_len};
    struct ec2_reply inner = {0};
    const struct keyring_key *caller;
    struct fault fault;
    struct err e;
    const char *code;
    STR_COPY(reply->action, EC2_PRICING_ACTION);
    if (!str_eq(r->path, "/") || !str_eq(r->method, "POST"))
        ec2_pricing_error(
            s->region, "UnknownOperationException", "POST on the path / only", &inner);
    else if ((code = check_caller(s, r, EC2_PRICING_SERVICE, EC2_PRICING_REGION, &caller, &e)))
        ec2_pricing_error(s->region, code, e.kind != ERR_NONE ? e.text : NULL, &inner);
    else if (is_limited(caller))
        ec2_pricing_error(s->region, "AccessDeniedException", NULL, &inner);
    else if ((code = front_refusal(s->region, EC2_PRICING_ACTION, "ThrottlingException", &fault)))
        ec2_pricing_error(s->region, code, NULL, &inner);
    else
        ec2_pricing_call(s->region, &request, &inner);
    move_reply(reply, EC2_PRICING_CONTENT_TYPE, &inner);
}

/* Service Quotas, which also has a host of its own in each region. */
static bool is_for_quotas(const struct front_request *r)
{
    const char *target = front_header(r, TARGET_HEADER);
    return target && str_starts(target, EC2_QUOTAS_TARGET);
}

static void service_quotas(
    const struct front_site *s, const struct front_request *r, struct front_reply *reply)
{
    const struct ec2 *ec2 = s->state;
    const char *action = front_header(r, TARGET_HEADER) + strlen(EC2_QUOTAS_TARGET);
    const struct ec2_quotas_request request = {.action = action,
        .content_type = front_header(r, "Content-Type"),
        .body = r->body,
        .body_len = r->body_len};
    struct ec2_reply inner = {0};
    const struct keyring_key *caller;
    struct fault fault;
    struct err e;
    const char *code;
    STR_COPY(reply->action, action);
    if (!str_eq(r->path, "/") || !str_eq(r->method, "POST"))
        ec2_quotas_error(
            s->region, action, "UnknownOperationException", "POST on the path / only", &inner);
    else if ((code = check_caller(s, r, EC2_QUOTAS_SERVICE, s->region->o->name, &caller, &e)))
        ec2_quotas_error(s->region, action, code, e.kind != ERR_NONE ? e.text : NULL, &inner);
    else if (is_limited(caller))
        ec2_quotas_error(s->region, action, "AccessDeniedException", NULL, &inner);
    else if ((code = front_refusal(s->region, action, "TooManyRequestsException", &fault)))
        ec2_quotas_error(s->region, action, code, NULL, &inner);
    else
        ec2_quotas_call(s->region, ec2->options->quotas, ec2->options->n_quotas, &request, &inner);
    move_reply(reply, EC2_QUOTAS_CONTENT_TYPE, &inner);
}

/* The Security Token Service, which also has its own host. */
static bool is_for_sts(const struct front_request *r)
{
    const char *authorization = front_header(r, "Authorization");
    return authorization && strstr(authorization, "/sts/aws4_request");
}

static void token_service(
    const struct front_site *s, const struct front_request *r, struct front_reply *reply)
{
    const struct ec2 *ec2 = s->state;
    const struct keyring_key *caller;
    struct ec2_reply inner = {0};
    struct form form = {0};
    struct fault fault;
    struct err e;
    const char *code = check_caller(s, r, "sts", s->region->o->name, &caller, &e);
    STR_COPY(reply->action, STS_ACTION);
    if (code)
        sts_api_error(s->region, code, e.kind != ERR_NONE ? e.text : NULL, &inner);
    else if (!str_eq(r->path, "/") || !str_eq(r->method, "POST") || read_form(r, &form, &e) < 0)
        sts_api_error(
            s->region, "MalformedQueryString", "POST on the path / only, with a form", &inner);
    else if ((code = front_refusal(s->region, reply->action, "Throttling", &fault)))
        sts_api_error(s->region, code, NULL, &inner);
    else
        sts_api_call(s->region, &ec2->sts, caller, &form, s->clock, &inner);
    form_deinit(&form);
    reply->is_noted = true;
    move_reply(reply, EC2_CONTENT_TYPE, &inner);
}

static void api(
    const struct front_site *s, const struct front_request *r, struct front_reply *reply)
{
    const struct ec2 *ec2 = s->state;
    const struct keyring_key *caller;
    struct ec2_reply inner = {0};
    struct form form = {0};
    struct err e;
    const char *code;
    if (front_header(r, TARGET_HEADER) || is_for_sts(r)) {
        (is_for_sts(r)         ? token_service
            : is_for_quotas(r) ? service_quotas
                               : price_list)(s, r, reply);
        return;
    }
    if (!str_eq(r->path, "/") || (!str_eq(r->method, "POST") && !str_eq(r->method, "GET"))) {
        ec2_api_error(s->region, "InvalidAction",
            "The Query API takes POST and GET on the path / only.", &inner);
    } else if ((code = check_caller(s, r, "ec2", s->region->o->name, &caller, &e))) {
        ec2_api_error(s->region, code, e.kind != ERR_NONE ? e.text : NULL, &inner);
    } else if (is_limited(caller)) {
        ec2_api_error(s->region, "UnauthorizedOperation", NULL, &inner);
    } else if (read_form(r, &form, &e) < 0) {
        ec2_api_error(s->region, "MalformedQueryString", e.text, &inner);
    } else {
        const char *action = form_get(&form, "Action");
        STR_COPY(reply->action, action ? action : "");
        if (!is_refused(s, reply->action, &form, &inner))
            ec2_api_call(s->region, &ec2->account, &form, s->now, &inner);
    }
    form_deinit(&form);
    reply->is_noted = str_eq(reply->action, "RunInstances") ||
                      str_eq(reply->action, "CreateFleet") ||
                      str_eq(reply->action, "TerminateInstances");
    move_reply(reply, EC2_CONTENT_TYPE, &inner);
}

static void api_error(const struct front_site *s, const char *code, struct front_reply *reply)
{
    struct ec2_reply inner = {0};
    if (str_eq(reply->action, "GetServiceQuota") ||
        str_eq(reply->action, "GetAWSDefaultServiceQuota")) {
        ec2_quotas_error(s->region, reply->action, code, NULL, &inner);
        move_reply(reply, EC2_QUOTAS_CONTENT_TYPE, &inner);
        return;
    }
    bool is_list = str_eq(reply->action, EC2_PRICING_ACTION),
         is_token = str_eq(reply->action, STS_ACTION);
    STR_COPY(inner.request_id, reply->request_id);
    (is_list       ? ec2_pricing_error
        : is_token ? sts_api_error
                   : ec2_api_error)(s->region, code, NULL, &inner);
    move_reply(reply, is_list ? EC2_PRICING_CONTENT_TYPE : EC2_CONTENT_TYPE, &inner);
}

/* ---- The metadata service ---- */

static void move_metadata(struct front_reply *reply, struct ec2_metadata_reply *inner)
{
    reply->status = inner->status;
    reply->content_type = inner->content_type;
    reply->body = inner->body;
    if (inner->ttl_s > 0)
        front_reply_header(reply, EC2_METADATA_TTL_HEADER, "%lld", (long long)inner->ttl_s);
}

static void metadata(
    const struct front_site *s, const struct front_request *r, struct front_reply *reply)
{
    struct ec2 *ec2 = s->state;
    struct ec2_metadata m = {.region = s->region,
        .instance = s->instance,
        .keyring = &ec2->keyring,
        .role_ttl_ms = ec2->role_ttl_ms};
    const struct ec2_metadata_request request = {.method = r->method,
        .path = r->path,
        .token = front_header(r, EC2_METADATA_TOKEN_HEADER),
        .ttl = front_header(r, EC2_METADATA_TTL_HEADER),
        .forwarded_for = front_header(r, "X-Forwarded-For")};
    struct ec2_metadata_reply inner;
    memcpy(m.secret, s->secret, sizeof(m.secret));
    ec2_metadata_answer(&m, &request, s->now, &inner);
    explicit_bzero(m.secret, sizeof(m.secret));
    move_metadata(reply, &inner);
}

static void metadata_error(int status, struct front_reply *reply)
{
    struct ec2_metadata_reply inner = {0};
    ec2_metadata_error(status, &inner);
    move_metadata(reply, &inner);
}

const struct front ec2_front = {.name = "aws",
    .port_key = "ec2",
    .region = "us-east-1",
    .account = "111122223333",
    .account_key = "account",
    .disk_type = "gp3",
    .notice_s = 120,
    .role_ttl_ms = SECONDS_MS(6 * 3600),
    .body_max = FORM_BYTES_MAX,
    .garbage = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<RunInstancesResp",
    .garbage_type = EC2_CONTENT_TYPE,
    .internal_error = "InternalError",
    .read_options = read_options,
    .free_options = free_options,
    .open = open_ec2,
    .close = close_ec2,
    .announce = announce,
    .api = api,
    .api_error = api_error,
    .metadata = metadata,
    .metadata_error = metadata_error,
    .side = &s3_front,
    .side_state = side_state};
