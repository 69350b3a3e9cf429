/* SPDX-License-Identifier: Apache-2.0
 *
 * S3: its part of the configuration, and the check of requests before s3/api.c. Signatures are
 * Version 4 in the Authorization header, over a payload whose hash is given and matches the body;
 * every x-amz- header is signed.
 */
#include "emulator/s3/front.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define USUAL_QUOTA (1024 * 1024 * (int64_t)1024)

/* ---- Configuration ---- */

void s3_read_options(struct config_section *s, struct s3_options *ret_options)
{
    static const char *const yes_no[] = {"true", "false", NULL};
    const struct yaml_node *map = yaml_opt_map(&s->r, "s3");
    struct config_section inner = {.file = s->file, .e = s->r.rc == 0 ? s->e : NULL};
    *ret_options = (struct s3_options){0};
    if (!map)
        return;
    yaml_reader_init(&inner.r, s->file, map, inner.e);
    ret_options->buckets = config_names(&inner, "buckets");
    ret_options->port = (int)yaml_opt_i64(&inner.r, "port", 0, 65535, 0);
    ret_options->has_conditions = yaml_opt_enum(&inner.r, "conditional_writes", yes_no, 0) == 0;
    static const char *const encryptions[] = {"AES256", "aws:kms", NULL};
    int encryption = yaml_opt_enum(&inner.r, "require_encryption", encryptions, -1);
    ret_options->encryption = encryption < 0 ? NULL : encryptions[encryption];
    ret_options->quota_bytes = yaml_opt_i64(&inner.r, "quota_bytes", 0, USUAL_QUOTA, USUAL_QUOTA);
    ret_options->page = yaml_opt_i64(&inner.r, "page", 1, S3_PAGE_MAX, S3_PAGE_MAX);
    size_t n = 0;
    while (ret_options->buckets && ret_options->buckets[n])
        n++;
    if (n == 0 || n > S3_BUCKETS_MAX)
        yaml_reader_fail(&inner.r, NULL, "buckets: expected 1 to %d names", S3_BUCKETS_MAX);
    config_inner_finish(s, &inner.r);
}

/* ---- State ---- */

void s3_state_describe(const struct s3_state *state, json_t *list)
{
    const struct s3_objects *o = &state->account.objects;
    for (size_t k = 0; k < o->n_buckets; k++) {
        const struct s3_bucket *b = &o->buckets[k];
        size_t bytes = 0, n_uploads = 0;
        for (size_t i = 0; i < b->n; i++)
            bytes += b->objects[i]->data.len;
        LIST_FOREACH (&o->uploads, l)
            n_uploads += LIST_ENTRY(l, struct s3_upload, link)->bucket == b;
        json_array_append_new(list,
            json_pack("{s:s, s:s, s:I, s:I, s:I}", "type", "bucket", "id", b->name, "objects",
                (json_int_t)b->n, "bytes", (json_int_t)bytes, "uploads", (json_int_t)n_uploads));
    }
}

void s3_open_state(struct s3_state *state, const struct s3_options *o,
    const struct keyring *keyring, const char *region)
{
    if (!o->buckets)
        return;
    state->keyring = keyring;
    state->account.region = region;
    state->account.has_conditions = o->has_conditions;
    state->account.encryption = o->encryption;
    state->account.quota_bytes = (size_t)o->quota_bytes;
    state->account.page = o->page;
    for (size_t k = 0; o->buckets[k]; k++)
        s3_objects_add_bucket(&state->account.objects, o->buckets[k]);
}

void s3_close_state(struct s3_state *state)
{
    s3_objects_deinit(&state->account.objects);
}

/* ---- Requests ---- */

static bool is_in(const char *names, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = names; p; p = strchr(p, ';') ? strchr(p, ';') + 1 : NULL)
        if (strncasecmp(p, name, n) == 0 && (p[n] == ';' || p[n] == '\0'))
            return true;
    return false;
}

/* The code of a refusal, with its message in *ret_text (kind NONE: the usual one), or NULL. */
static const char *check_payload(const struct front_request *r, struct err *ret_text)
{
    const char *given = front_header(r, "x-amz-content-sha256");
    const char *authorization = front_header(r, "Authorization");
    struct sigv4_claim claim;
    char ours[SIGV4_HEX_MAX];
    *ret_text = (struct err){0};
    if (!authorization)
        return NULL; /* left to the keyring to refuse */
    if (!given) {
        err_set(ret_text, ERR_INVALID,
            "Missing required header for this request: x-amz-content-sha256");
        return "InvalidRequest";
    }
    sigv4_sha256_hex(r->body, r->body_len, ours);
    if (!str_eq(given, ours)) {
        err_set(ret_text, ERR_INVALID,
            "The provided 'x-amz-content-sha256' header does not match what was computed.");
        return strlen(given) == strlen(ours) ? "XAmzContentSHA256Mismatch" : "InvalidRequest";
    }
    if (sigv4_parse_authorization(authorization, &claim, NULL) < 0)
        return NULL;
    for (size_t k = 0; k < r->n_headers; k++)
        if (strncasecmp(r->headers[k].name, "x-amz-", 6) == 0 &&
            !is_in(claim.signed_headers, r->headers[k].name)) {
            err_set(ret_text, ERR_DENIED,
                "There were headers present in the request which were not signed: %s",
                r->headers[k].name);
            return "AccessDenied";
        }
    return NULL;
}

/* *ret_policy: of the caller's session, borrowed; NULL if it has none. */
static const char *check_caller(const struct front_site *s, const struct front_request *r,
    const struct policy **ret_policy, struct err *ret_text)
{
    const struct s3_state *state = s->state;
    const char *code = check_payload(r, ret_text);
    if (code)
        return code;
    const struct keyring_request request = {.method = r->method,
        .target = r->target,
        .headers = r->headers,
        .n_headers = r->n_headers,
        .body = r->body,
        .body_len = r->body_len,
        .service = "s3",
        .body_sha256 = front_header(r, "x-amz-content-sha256")};
    code = keyring_check(state->keyring, &request, state->account.region, s->clock, ret_text);
    const struct keyring_key *caller = code ? NULL : keyring_caller(state->keyring, &request);
    *ret_policy = caller && caller->policy.statements ? &caller->policy : NULL;
    return code;
}

static void api(
    const struct front_site *s, const struct front_request *r, struct front_reply *reply)
{
    struct s3_state *state = s->state;
    struct s3_call c = {.account = &state->account,
        .request = r,
        .faults = &s->region->faults,
        .now = s->now,
        .reply = reply};
    struct fault fault;
    struct err text;
    uint64_t id = prng_u64(&s->region->request_ids);
    snprintf(reply->request_id, sizeof(reply->request_id), "%016llX", (unsigned long long)id);
    const char *code = check_caller(s, r, &c.policy, &text);
    if (code) {
        s3_api_error(code, text.kind != ERR_NONE ? text.text : NULL, state->account.region, reply);
    } else if (s3_api_route(&c) && s3_api_may(&c)) {
        code = front_refusal(s->region, reply->action, "SlowDown", &fault);
        if (code)
            s3_api_error(code, NULL, state->account.region, reply);
        else
            s3_api_run(&c);
    }
    form_deinit(&c.query);
    front_reply_header(reply, "x-amz-request-id", "%s", reply->request_id);
}

static void api_error(const struct front_site *s, const char *code, struct front_reply *reply)
{
    const struct s3_state *state = s->state;
    s3_api_error(code, NULL, state->account.region, reply);
}

const struct front s3_front = {.name = "s3",
    .port_key = "s3",
    .body_max = S3_BODY_MAX,
    .garbage = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBuck",
    .garbage_type = S3_CONTENT_TYPE,
    .internal_error = "InternalError",
    .api = api,
    .api_error = api_error};
