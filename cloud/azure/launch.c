/* SPDX-License-Identifier: Apache-2.0
 *
 * Launching:
 *
 *   PUT NIC --> its operation --> PUT VM --> its operation, for a while --> the machine
 *                  |               | refused        | failed permanently
 *                  |               v                v
 *                  +------> DELETE VM, if there is none DELETE NIC and disk --> the refusal
 *
 * Invariant: a definite refusal leaves nothing of its launch, as far as Azure lets that be deleted
 * at once. After any other outcome nothing is undone: the launch is repeated under its token, which
 * names the same resources.
 */
#include "cloud/azure/launch.h"

#include "base/mem.h"
#include "base/str.h"
#include <string.h>

/* Refusals for lack of capacity come early in a create. The rest of it, minutes of booting, is
 * watched by the sweep. */
#define LAUNCH_WAIT_MS SECONDS_MS(45)
#define POLL_DEFAULT_MS SECONDS_MS(5)
#define POLL_CAP_MS SECONDS_MS(15)

static bool is_end(enum err_kind kind)
{
    return kind == ERR_NO_CAPACITY || kind == ERR_QUOTA || kind == ERR_DENIED ||
           kind == ERR_CONFIG || kind == ERR_UNSUPPORTED;
}

static int64_t poll_delay(const struct http_reply *reply)
{
    int64_t seconds;
    const char *text = http_reply_header(reply, "Retry-After");
    if (!text || str_to_i64(text, 0, 3600, "Retry-After", &seconds, NULL) != 0)
        return POLL_DEFAULT_MS;
    int64_t ms = seconds < 1 ? SECONDS_MS(1) : SECONDS_MS(seconds);
    return ms < POLL_CAP_MS ? ms : POLL_CAP_MS;
}

/* The create continues: the existing parts are requested again later. A machine not refused by now
 * has its place, and only boots. */
static void wait_on(struct azure_call *c, const struct http_reply *reply)
{
    int64_t delay_ms = poll_delay(reply);
    if (clock_mono(c->d->calls.timers->clock).ms - c->began.ms + delay_ms <= LAUNCH_WAIT_MS)
        cloud_call_pause(&c->base, delay_ms);
    else if (c->phase == WAIT_VM)
        cloud_call_finish(&c->base, NULL);
    else
        azure_call_fail(c, ERR_TIMEOUT, "the network interface is not ready yet");
}

/* Finds the URL for polling the operation. A URL of another host is not followed, and there may be
 * none: then the resource itself is polled. */
static void start_waiting(
    struct azure_call *c, enum azure_phase phase, const struct http_reply *reply)
{
    const char *operation = http_reply_header(reply, "Azure-AsyncOperation");
    const char *location = operation ? NULL : http_reply_header(reply, "Location");
    const char *url = operation ? operation : location;
    c->phase = phase;
    c->by_location = location != NULL;
    str_copy(c->url, sizeof(c->url), arm_url_is_ours(url, c->d->endpoint_url) ? url : "");
    wait_on(c, reply);
}

/* A missing resource that the launch refers to is a mistake in the pool's file. But if our own
 * network interface is missing, it was removed as a leftover or while being created: the next try
 * creates another. */
static void settle_refusal(const struct azure_call *c, struct err *e)
{
    char nic[CLOUD_NAME_MAX];
    bool waits = c->phase == WAIT_NIC || c->phase == WAIT_VM;
    arm_part_name(c->name, ARM_NIC, nic, sizeof(nic));
    if (e->kind == ERR_NOT_FOUND || e->kind == ERR_CONFIG)
        e->kind =
            (waits && e->kind == ERR_NOT_FOUND) || (c->phase == PUT_VM && strstr(e->text, nic))
                ? ERR_UNAVAILABLE
                : ERR_CONFIG;
}

/* The launch is refused; if that is permanent, everything it has created is deleted first. */
static void undo_launch(struct azure_call *c, struct err *e)
{
    settle_refusal(c, e);
    if (!is_end(e->kind)) {
        cloud_call_finish(&c->base, e);
        return;
    }
    c->refusal = *e;
    azure_call_continue(c, DROP_VM);
}

/* A failed operation has ended, whatever its code. An error that is not about the pool is about
 * this place, which is avoided for a while. */
static void undo_failed(struct azure_call *c, struct err *e)
{
    if (!is_end(e->kind) && e->kind != ERR_INVALID) /* INVALID is not an answer */
        e->kind = ERR_NO_CAPACITY;
    undo_launch(c, e);
}

static void on_nic(struct azure_call *c, const struct http_reply *reply)
{
    struct err e;
    bool done;
    if (!azure_call_is_good(reply->status)) {
        if (!azure_call_read_refusal(c, reply, &e))
            return;
        settle_refusal(c, &e);
        cloud_call_finish(&c->base, &e); /* nothing was created */
    } else if (arm_parse_progress(buf_str(&reply->body), reply->body.len, &done, &e) != 0) {
        undo_failed(c, &e);
    } else if (done) {
        azure_call_continue(c, PUT_VM);
    } else {
        start_waiting(c, WAIT_NIC, reply);
    }
}

static void on_vm(struct azure_call *c, const struct http_reply *reply)
{
    struct err e;
    bool done;
    if (!azure_call_is_good(reply->status)) {
        if (azure_call_read_refusal(c, reply, &e))
            undo_launch(c, &e);
    } else if (arm_parse_vm(buf_str(&reply->body), reply->body.len, &c->base.instance, &e) != 0 ||
               arm_parse_progress(buf_str(&reply->body), reply->body.len, &done, &e) != 0) {
        undo_failed(c, &e);
    } else if (done) {
        cloud_call_finish(&c->base, NULL);
    } else {
        start_waiting(c, WAIT_VM, reply);
    }
}

/* Returns 0 with *ret_done, or the operation's error. */
static int read_operation(
    const struct azure_call *c, const struct http_reply *reply, bool *ret_done, struct err *e)
{
    const char *body = buf_str(&reply->body);
    *ret_done = reply->status != 202;
    if (c->by_location && c->url[0])
        return 0;
    return c->url[0] ? arm_parse_operation(body, reply->body.len, ret_done, e)
                     : arm_parse_progress(body, reply->body.len, ret_done, e);
}

static void on_operation(struct azure_call *c, const struct http_reply *reply)
{
    struct err e;
    bool done;
    int status = reply->status;
    if (status == 429 || status >= 500) { /* the operation continues all the same */
        wait_on(c, reply);
    } else if (!azure_call_is_good(status) && status != 204) {
        if (!azure_call_read_refusal(c, reply, &e))
            return;
        if (!c->url[0]) { /* an unknown outcome is not a failure: the machine may already run */
            err_wrap(&e, "the launch was accepted, but its outcome is unknown");
            e.kind = ERR_UNAVAILABLE;
            cloud_call_finish(&c->base, &e);
            return;
        }
        c->url[0] = '\0'; /* operation unknown or not visible to us; poll the resource instead */
        wait_on(c, reply);
    } else if (read_operation(c, reply, &done, &e) != 0) {
        undo_failed(c, &e);
    } else if (!done) {
        wait_on(c, reply);
    } else if (c->phase == WAIT_NIC) {
        azure_call_continue(c, PUT_VM);
    } else {
        c->base.instance.state = CLOUD_RUNNING;
        cloud_call_finish(&c->base, NULL);
    }
}

/* Deleting a machine deletes its parts; without a machine they are deleted by name. Azure holds a
 * network interface for minutes after a failed create; the sweep finds what cannot be deleted now.
 */
static void on_dropped(struct azure_call *c, const struct http_reply *reply)
{
    bool gone = reply->status == 204 || reply->status == 404;
    if (c->phase == DROP_VM && gone)
        azure_call_continue(c, DROP_NIC);
    else if (c->phase == DROP_NIC)
        azure_call_continue(c, DROP_DISK);
    else
        cloud_call_finish(&c->base, &c->refusal);
}

static void on_launch_reply(struct cloud_call *base, const struct http_reply *reply)
{
    struct azure_call *c = (struct azure_call *)base;
    switch (c->phase) {
    case PUT_NIC:
        on_nic(c, reply);
        break;
    case PUT_VM:
        on_vm(c, reply);
        break;
    case WAIT_NIC:
    case WAIT_VM:
        on_operation(c, reply);
        break;
    default:
        on_dropped(c, reply);
        break;
    }
}

void azure_launch(
    struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {
        "create", azure_call_step, on_launch_reply, azure_call_deinit};
    struct azure_call *c = azure_call_new(d, l->region, PUT_NIC);
    c->began = clock_mono(c->d->calls.timers->clock);
    if (c->base.refused.kind == ERR_NONE &&
        arm_build_vm(l, &c->d->machine, &c->vm, &c->base.refused) == 0) {
        arm_build_nic(l, &c->d->machine, &c->nic);
        c->name = mem_strdup(l->token);
    }
    cloud_call_launch(&c->d->calls, &c->base, &ops, l, done, ctx);
}
