/* SPDX-License-Identifier: Apache-2.0
 *
 * The EC2 endpoint: checks the signature, lets waiting faults happen, and hands the call to ec2_api.c.
 */
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/emulator/emulator.h"
#include <stdlib.h>
#include <string.h>

/* ---- Who calls ---- */

struct headers {
    struct sigv4_header list[SIGV4_HEADERS_MAX];
    size_t n;
};

static void on_header(void *ctx, const char *name, const char *value)
{
    struct headers *h = ctx;
    if (h->n < SIGV4_HEADERS_MAX)
        h->list[h->n++] = (struct sigv4_header){.name = name, .value = value};
}

/* 0, or -1 with the refusal in reply. */
static int check_caller(struct emulator *em, struct http_exchange *x, const struct http_server_request *r,
    struct ec2_reply *reply)
{
    struct headers headers = {0};
    struct err e;
    http_request_each_header(x, on_header, &headers);
    const struct keyring_request request = {.method = r->method,
        .target = r->raw_target,
        .headers = headers.list,
        .n_headers = headers.n,
        .body = r->body,
        .body_len = r->body_len};
    const char *code =
        keyring_check(&em->keyring, &request, em->region.o->name, clock_wall(&clock_system), &e);
    if (!code)
        return 0;
    ec2_api_error(&em->region, code, e.kind != ERR_NONE ? e.text : NULL, reply);
    return -1;
}

/* ---- The call ---- */

/* The parameters of a POST are in its body, of a GET in its query. */
static int read_form(const struct http_server_request *r, struct form *form, struct err *e)
{
    if (str_eq(r->method, "POST"))
        return form_parse(r->body, r->body_len, form, e);
    const char *query = strchr(r->raw_target, '?');
    return form_parse(query ? query + 1 : "", query ? strlen(query + 1) : 0, form, e);
}

static bool is_refused(struct emulator *em, const char *action, struct ec2_reply *reply)
{
    struct faults *faults = &em->region.faults;
    struct fault fault;
    const char *code = "RequestLimitExceeded";
    if (faults_take(faults, FAULT_REFUSE, action, &fault))
        code = fault.code;
    else if (!faults_take(faults, FAULT_THROTTLE, action, &fault))
        return false;
    if (str_eq(action, "RunInstances")) {
        em->region.counts.launch_calls++;
        em->region.counts.refusals++;
    }
    ec2_api_error(&em->region, code, NULL, reply);
    return true;
}

static void note_call(
    struct emulator *em, const char *action, const struct ec2_reply *reply, const char *fault)
{
    json_t *d = json_object();
    json_object_set_new(d, "action", json_text(action));
    json_object_set_new(d, "status", json_integer(reply->status));
    json_object_set_new(d, "request_id", json_string(reply->request_id));
    if (fault)
        json_object_set_new(d, "fault", json_string(fault));
    journal_add(&em->region.journal, emulator_now(em), "call", d);
}

/* ---- The reply ---- */

struct answer {
    struct ec2_reply reply;
    bool is_dropped;
    enum fault_drop drop;
};

static void send_answer(struct http_exchange *x, struct answer *a)
{
    static const char garbage[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<RunInstancesResp";
    if (a->is_dropped && a->drop == DROP_CLOSE) {
        http_reply_none(x);
    } else if (a->is_dropped && a->drop == DROP_GARBAGE) {
        http_reply_text(x, 200, EC2_CONTENT_TYPE, garbage);
    } else {
        http_reply_add_header(x, "x-amzn-RequestId", a->reply.request_id);
        http_reply_add_header(x, "Server", "AmazonEC2");
        http_reply_bytes(x, a->reply.status, EC2_CONTENT_TYPE, buf_str(&a->reply.body), a->reply.body.len);
    }
    buf_deinit(&a->reply.body);
}

static void on_late(void *ctx, struct http_exchange *x)
{
    struct answer *a = ctx;
    send_answer(x, a);
    free(a);
}

static void on_late_gone(void *ctx, struct http_exchange *x)
{
    struct answer *a = ctx;
    (void)x;
    buf_deinit(&a->reply.body);
    free(a);
}

static void answer(struct emulator *em, struct http_exchange *x, const char *action, struct answer *a)
{
    struct fault fault;
    if (faults_take(&em->region.faults, FAULT_DROP, action, &fault)) {
        a->is_dropped = true;
        a->drop = fault.drop;
        note_call(em, action, &a->reply, "drop_reply");
        if (fault.drop == DROP_ERROR)
            ec2_api_error(&em->region, "InternalError", NULL, &a->reply);
    }
    if (!faults_take(&em->region.faults, FAULT_SLOW, action, &fault)) {
        send_answer(x, a);
        return;
    }
    struct answer *late = mem_dup(a, sizeof(*a));
    http_exchange_wait(x, fault.ms, on_late, on_late_gone, late);
}

void ec2_server_handle(void *ctx, struct http_exchange *x, const struct http_server_request *r)
{
    struct emulator *em = ctx;
    struct answer a = {0};
    struct form form = {0};
    struct err e;
    const char *action = "?";
    if (!str_eq(r->path, "/") || (!str_eq(r->method, "POST") && !str_eq(r->method, "GET"))) {
        ec2_api_error(
            &em->region, "InvalidAction", "The Query API takes POST and GET on the path / only.", &a.reply);
    } else if (check_caller(em, x, r, &a.reply) < 0) {
        /* the refusal is there */
    } else if (read_form(r, &form, &e) < 0) {
        ec2_api_error(&em->region, "MalformedQueryString", e.text, &a.reply);
    } else {
        const char *name = form_get(&form, "Action");
        action = name ? name : action;
        if (!is_refused(em, action, &a.reply))
            ec2_api_call(&em->region, &em->account, &form, emulator_now(em), &a.reply);
    }
    log_debug(
        "ec2 call", log_s("action", action), log_i("status", a.reply.status), log_s("peer", r->peer_address));
    if (str_eq(action, "RunInstances") || str_eq(action, "TerminateInstances") || a.reply.status != 200)
        note_call(em, action, &a.reply, NULL);
    answer(em, x, action, &a);
    form_deinit(&form);
    emulator_changed(em);
}
