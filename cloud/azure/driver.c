/* SPDX-License-Identifier: Apache-2.0
 *
 * The azure driver: glue between the pure halves (arm.h), bearer tokens (credentials.h) and an HTTP client.
 *
 *   launch:     PUT NIC --> its operation --> PUT VM --> its operation, for a while --> the machine
 *                               |               | refused        | failed for good
 *                               |               v                v
 *                               +------> DELETE VM, if there is none DELETE NIC and disk --> the refusal
 *   terminate:  DELETE VM of each; where there is none: DELETE NIC, DELETE disk
 *   list:       what is tagged --> the machines --> their power states --> DELETE VM of the deallocated
 *
 * Invariants
 *  1. A token goes into requests to one host only, the configured endpoint: URLs from replies are held against it.
 *     The prices' host never gets one.
 *  2. The network interface and the disk go with their machine (deleteOption). What is left all the same is found by
 *     its tag, listed when it has been without a machine for a while, and deleted by its name like a machine.
 *  3. A definite refusal leaves nothing of its launch, as far as Azure lets that be done at once. After anything
 *     else nothing is undone: the launch is repeated under its token, which names the same resources.
 */
#include "base/mem.h"
#include "base/str.h"
#include "cloud/azure/arm.h"
#include "cloud/azure/credentials.h"
#include "cloud/call.h"
#include "cloud/endpoint.h"
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS SECONDS_MS(30)
#define CONNECT_TIMEOUT_MS SECONDS_MS(10)
#define PAGES_MAX 1000
#define SPOT_NOTICE_MS SECONDS_MS(30)
/* Refusals for want of capacity come early in a create; the rest of it, minutes of booting, the sweep watches. */
#define LAUNCH_WAIT_MS SECONDS_MS(45)
#define POLL_DEFAULT_MS SECONDS_MS(5)
#define POLL_CAP_MS SECONDS_MS(15)
/* Between the network interface and the machine of a launch lie seconds; a part that was alone for longer is left. */
#define LEFTOVER_MS SECONDS_MS(30)

/* A part that a listing showed without its machine. */
struct lonely {
    char name[CLOUD_NAME_MAX];
    struct mono since;
};

struct azure_driver {
    struct cloud_driver base;
    struct cloud_calls calls;
    struct azure_machine machine; /* its texts are owned */
    char *endpoint_url, *login_url, *prices_url;
    struct azure_credential_source *credentials;
    struct lonely *lonely;
    size_t n_lonely;
};

enum phase {
    PUT_NIC,
    WAIT_NIC,
    PUT_VM,
    WAIT_VM,
    DROP_VM, /* what a refused launch has left */
    DROP_NIC,
    DROP_DISK,
    LIST_TAGGED,
    LIST_VMS,
    LIST_POWER,
    LIST_DROP, /* the deallocated machine that words[next] names */
    END,       /* the resource that words[next] names */
    END_NIC,
    END_DISK,
    PRICES
};

struct azure_call {
    struct cloud_call base;
    struct azure_driver *d;
    enum phase phase;
    struct oauth_wait wait;
    bool token_renewed;
    int pages;
    char url[ARM_URL_MAX + 1]; /* of the next page, or of the operation; "": the phase's own */
    bool by_location;          /* the operation tells by its HTTP status */
    /* launch */
    char *name;
    struct buf nic, vm; /* bodies */
    struct mono began;
    struct err refusal;
    /* list */
    struct cloud_instances leftovers;
    /* what is asked for, one after the other: prices of types, ends of machines */
    char **words;
    size_t n_words, next;
};

/* ---- the life of a call ---- */

static struct azure_call *new_call(struct cloud_driver *d, const char *region, enum phase phase)
{
    struct azure_call *c = mem_alloc(sizeof(*c));
    c->d = (struct azure_driver *)d;
    c->phase = phase;
    if (!region || !*region || strlen(region) >= CLOUD_NAME_MAX ||
        strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789") != strlen(region))
        err_set(&c->base.refused, ERR_CONFIG, "\"%.64s\" is no Azure region (expected the like of eastus)",
            region ? region : "");
    return c;
}

static void set_words(struct azure_call *c, const char *const *words, size_t n, size_t max)
{
    if (n == 0 || n > max) {
        err_set(&c->base.refused, ERR_INVALID, "%zu names: 1 to %zu at a time", n, max);
        return;
    }
    c->words = mem_array(n, sizeof(*c->words));
    for (c->n_words = 0; c->n_words < n; c->n_words++)
        c->words[c->n_words] = mem_strdup(words[c->n_words]);
}

static void deinit_call(struct cloud_call *base)
{
    struct azure_call *c = (struct azure_call *)base;
    oauth_cancel(&c->wait);
    if (c->vm.data) /* user data holds a one-use secret */
        OPENSSL_cleanse(c->vm.data, c->vm.len);
    buf_deinit(&c->vm);
    buf_deinit(&c->nic);
    cloud_instances_deinit(&c->leftovers);
    for (size_t i = 0; i < c->n_words; i++)
        free(c->words[i]);
    free(c->words);
    free(c->name);
}

static void go_on(struct azure_call *c, enum phase phase)
{
    c->phase = phase;
    c->url[0] = '\0';
    c->by_location = false;
    cloud_call_again(&c->base);
}

static void fail(struct azure_call *c, enum err_kind kind, const char *text)
{
    struct err e;
    err_set(&e, kind, "%s", text);
    cloud_call_finish(&c->base, &e);
}

/* ---- the request ---- */

static void add_part(const struct azure_call *c, enum arm_part part, const char *name, struct buf *url)
{
    char full[CLOUD_NAME_MAX];
    arm_part_name(name, part, full, sizeof(full));
    arm_path(&c->d->machine, part, full, url);
}

/* What the phase asks for, when no reply has named a URL. */
static void add_own_path(const struct azure_call *c, struct buf *url)
{
    const struct azure_machine *m = &c->d->machine;
    const char *word = c->next < c->n_words ? c->words[c->next] : NULL;
    switch (c->phase) {
    case PUT_NIC:
    case WAIT_NIC:
    case DROP_NIC:
        add_part(c, ARM_NIC, c->name, url);
        break;
    case PUT_VM:
        arm_path(m, ARM_VM, c->name, url);
        break;
    case WAIT_VM:
        arm_path_vm_status(m, c->name, url);
        break;
    case DROP_VM:
        arm_path_delete_vm(m, c->name, url);
        break;
    case DROP_DISK:
        add_part(c, ARM_DISK, c->name, url);
        break;
    case LIST_TAGGED:
        arm_path_list_tagged(m, c->base.cluster, url);
        break;
    case LIST_VMS:
        arm_path_list_vms(m, url);
        break;
    case LIST_POWER:
        arm_path_list_power(m, url);
        break;
    case LIST_DROP:
        arm_path_delete_vm(m, word, url);
        break;
    case END:
        if (arm_part_of(word) == ARM_VM)
            arm_path_delete_vm(m, word, url);
        else
            arm_path(m, arm_part_of(word), word, url);
        break;
    case END_NIC:
        add_part(c, ARM_NIC, word, url);
        break;
    case END_DISK:
        add_part(c, ARM_DISK, word, url);
        break;
    case PRICES:
        arm_path_prices(c->base.region, word, url);
        break;
    }
}

static const char *method_of(enum phase phase)
{
    switch (phase) {
    case PUT_NIC:
    case PUT_VM:
        return "PUT";
    case DROP_VM:
    case DROP_NIC:
    case DROP_DISK:
    case LIST_DROP:
    case END:
    case END_NIC:
    case END_DISK:
        return "DELETE";
    default:
        return "GET";
    }
}

static void send_request(struct azure_call *c, const char *authorization)
{
    struct buf url = {0};
    const struct buf *body = c->phase == PUT_NIC ? &c->nic : c->phase == PUT_VM ? &c->vm : NULL;
    if (c->url[0]) {
        buf_adds(&url, c->url);
    } else {
        buf_adds(&url, c->phase == PRICES ? c->d->prices_url : c->d->endpoint_url);
        add_own_path(c, &url);
    }
    struct http_request r = {
        .method = method_of(c->phase),
        .url = buf_str(&url),
        .headers = {"Accept: application/json"},
        .timeout_ms = TIMEOUT_MS,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .max_reply_bytes = ARM_REPLY_MAX,
    };
    int n = 1;
    if (authorization)
        r.headers[n++] = authorization;
    if (body) {
        r.headers[n++] = "Content-Type: application/json";
        r.body = buf_str(body);
        r.body_len = body->len;
    }
    cloud_call_send(&c->base, &r);
    buf_deinit(&url);
}

static void on_token(void *ctx, const struct err *e, const char *header)
{
    struct azure_call *c = ctx;
    if (e)
        cloud_call_finish(&c->base, e);
    else
        send_request(c, header);
}

static void step(struct cloud_call *base)
{
    struct azure_call *c = (struct azure_call *)base;
    if (c->phase == PRICES) /* which are public */
        send_request(c, NULL);
    else
        oauth_get(azure_credential_tokens(c->d->credentials), &c->wait, on_token, c);
}

/* ---- replies ---- */

static bool is_good(int status)
{
    return status == 200 || status == 201 || status == 202;
}

static bool is_end(enum err_kind kind)
{
    return kind == ERR_NO_CAPACITY || kind == ERR_QUOTA || kind == ERR_DENIED || kind == ERR_CONFIG ||
           kind == ERR_UNSUPPORTED;
}

/* The refusal in a reply; false if the call has found its own remedy and goes on. */
static bool read_refusal(struct azure_call *c, const struct http_reply *reply, struct err *e)
{
    enum arm_remedy remedy;
    arm_parse_error(reply->status, buf_str(&reply->body), reply->body.len, &remedy, e);
    if (remedy != ARM_REMEDY_TOKEN || c->token_renewed || c->phase == PRICES)
        return true;
    c->token_renewed = true;
    oauth_refused(azure_credential_tokens(c->d->credentials), &c->wait);
    cloud_call_again(&c->base);
    return false;
}

static void on_refusal(struct azure_call *c, const struct http_reply *reply)
{
    struct err e;
    if (read_refusal(c, reply, &e))
        cloud_call_finish(&c->base, &e);
}

/* ---- launching ---- */

static int64_t poll_delay(const struct http_reply *reply)
{
    int64_t seconds;
    const char *text = http_reply_header(reply, "Retry-After");
    if (!text || str_to_i64(text, 0, 3600, "Retry-After", &seconds, NULL) != 0)
        return POLL_DEFAULT_MS;
    int64_t ms = seconds < 1 ? SECONDS_MS(1) : SECONDS_MS(seconds);
    return ms < POLL_CAP_MS ? ms : POLL_CAP_MS;
}

/* A create goes on: what it made so far is asked for again in a while. A machine that has not been refused by now has
 * its place, and only boots. */
static void wait_on(struct azure_call *c, const struct http_reply *reply)
{
    int64_t delay_ms = poll_delay(reply);
    if (clock_mono(c->d->calls.timers->clock).ms - c->began.ms + delay_ms <= LAUNCH_WAIT_MS)
        cloud_call_pause(&c->base, delay_ms);
    else if (c->phase == WAIT_VM)
        cloud_call_finish(&c->base, NULL);
    else
        fail(c, ERR_TIMEOUT, "the network interface is not made yet");
}

/* Where to ask how far the operation is. A URL of another host is not followed, and none need be there: then the
 * resource itself is asked. */
static void start_waiting(struct azure_call *c, enum phase phase, const struct http_reply *reply)
{
    const char *operation = http_reply_header(reply, "Azure-AsyncOperation");
    const char *location = operation ? NULL : http_reply_header(reply, "Location");
    const char *url = operation ? operation : location;
    c->phase = phase;
    c->by_location = location != NULL;
    str_copy(c->url, sizeof(c->url), arm_url_is_ours(url, c->d->endpoint_url) ? url : "");
    wait_on(c, reply);
}

/* What a launch names and is not there, the pool's file has to name better. But a network interface of ours that is
 * gone again was taken for a leftover, and so was what goes while it is made: the next try makes another. */
static void settle_refusal(const struct azure_call *c, struct err *e)
{
    char nic[CLOUD_NAME_MAX];
    bool waits = c->phase == WAIT_NIC || c->phase == WAIT_VM;
    arm_part_name(c->name, ARM_NIC, nic, sizeof(nic));
    if (e->kind == ERR_NOT_FOUND || e->kind == ERR_CONFIG)
        e->kind = (waits && e->kind == ERR_NOT_FOUND) || (c->phase == PUT_VM && strstr(e->text, nic))
                      ? ERR_UNAVAILABLE
                      : ERR_CONFIG;
}

/* The launch is refused; if for good, what it has made goes first. */
static void undo_launch(struct azure_call *c, struct err *e)
{
    settle_refusal(c, e);
    if (!is_end(e->kind)) {
        cloud_call_finish(&c->base, e);
        return;
    }
    c->refusal = *e;
    go_on(c, DROP_VM);
}

/* An operation that failed has ended: nothing comes of it, whatever its code. What is not about the pool is about this
 * place, which is left alone for a while. */
static void undo_failed(struct azure_call *c, struct err *e)
{
    if (!is_end(e->kind) && e->kind != ERR_INVALID) /* which is no answer */
        e->kind = ERR_NO_CAPACITY;
    undo_launch(c, e);
}

static void on_nic(struct azure_call *c, const struct http_reply *reply)
{
    struct err e;
    bool done;
    if (!is_good(reply->status)) {
        if (!read_refusal(c, reply, &e))
            return;
        settle_refusal(c, &e);
        cloud_call_finish(&c->base, &e); /* nothing was made */
    } else if (arm_parse_progress(buf_str(&reply->body), reply->body.len, &done, &e) != 0) {
        undo_failed(c, &e);
    } else if (done) {
        go_on(c, PUT_VM);
    } else {
        start_waiting(c, WAIT_NIC, reply);
    }
}

static void on_vm(struct azure_call *c, const struct http_reply *reply)
{
    struct err e;
    bool done;
    if (!is_good(reply->status)) {
        if (read_refusal(c, reply, &e))
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

/* 0 with *ret_done, or what became of it. */
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
    if (status == 429 || status >= 500) { /* it goes on all the same */
        wait_on(c, reply);
    } else if (!is_good(status) && status != 204) {
        if (!read_refusal(c, reply, &e))
            return;
        if (!c->url[0]) {
            undo_launch(c, &e);
            return;
        }
        c->url[0] = '\0'; /* forgotten, or not ours to see; the resource knows */
        wait_on(c, reply);
    } else if (read_operation(c, reply, &done, &e) != 0) {
        undo_failed(c, &e);
    } else if (!done) {
        wait_on(c, reply);
    } else if (c->phase == WAIT_NIC) {
        go_on(c, PUT_VM);
    } else {
        c->base.instance.state = CLOUD_RUNNING;
        cloud_call_finish(&c->base, NULL);
    }
}

/* A machine's deletion takes its parts along; without one they are deleted by name. What Azure will not delete now,
 * for it holds a network interface for minutes after a failed create, the sweep finds. */
static void on_dropped(struct azure_call *c, const struct http_reply *reply)
{
    bool gone = reply->status == 204 || reply->status == 404;
    if (c->phase == DROP_VM && gone)
        go_on(c, DROP_NIC);
    else if (c->phase == DROP_NIC)
        go_on(c, DROP_DISK);
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

static void azure_launch(
    struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"create", step, on_launch_reply, deinit_call};
    struct azure_call *c = new_call(d, l->region, PUT_NIC);
    c->began = clock_mono(c->d->calls.timers->clock);
    if (c->base.refused.kind == ERR_NONE && arm_build_vm(l, &c->d->machine, &c->vm, &c->base.refused) == 0) {
        arm_build_nic(l, &c->d->machine, &c->nic);
        c->name = mem_strdup(l->token);
    }
    cloud_call_launch(&c->d->calls, &c->base, &ops, l, done, ctx);
}

/* ---- listing ---- */

static const struct lonely *find_lonely(const struct azure_driver *d, const char *name)
{
    for (size_t i = 0; i < d->n_lonely; i++)
        if (str_eq(d->lonely[i].name, name))
            return &d->lonely[i];
    return NULL;
}

/* A part is never taken for a machine: its name is longer by what makes it one. */
static bool has_machine(const struct azure_call *c, const char *part)
{
    size_t n = (size_t)(strrchr(part, '-') - part);
    for (size_t i = 0; i < c->base.instances.n; i++) {
        const char *id = c->base.instances.list[i].id;
        if (strlen(id) == n && strncasecmp(id, part, n) == 0)
            return true;
    }
    return false;
}

/* Adds the parts that have been without a machine for long enough, and remembers since when the others are. */
static int add_leftovers(struct azure_call *c, struct err *e)
{
    struct azure_driver *d = c->d;
    struct mono now = clock_mono(d->calls.timers->clock);
    struct lonely *lonely = mem_array(c->leftovers.n + 1, sizeof(*lonely));
    size_t n = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->leftovers.n; i++) {
        const struct cloud_instance *part = &c->leftovers.list[i];
        const struct lonely *known = find_lonely(d, part->id);
        if (has_machine(c, part->id))
            continue;
        STR_COPY(lonely[n].name, part->id);
        lonely[n].since = known ? known->since : now;
        if (now.ms - lonely[n++].since.ms >= LEFTOVER_MS)
            rc = cloud_instances_add(&c->base.instances, part, e);
    }
    free(d->lonely);
    d->lonely = lonely;
    d->n_lonely = n;
    return rc;
}

static void end_list(struct azure_call *c)
{
    struct err e;
    cloud_call_finish(&c->base, add_leftovers(c, &e) == 0 ? NULL : &e);
}

/* A spot machine that was deallocated would stay, and its disk be billed. It counts as on its way out, and is. */
static void drop_deallocated(struct azure_call *c)
{
    const struct cloud_instances *l = &c->base.instances;
    c->words = mem_array(l->n + 1, sizeof(*c->words));
    for (size_t i = 0; i < l->n; i++)
        if (l->list[i].reclaimed && str_eq(l->list[i].cluster, c->base.cluster))
            c->words[c->n_words++] = mem_strdup(l->list[i].id);
    if (c->n_words > 0)
        go_on(c, LIST_DROP);
    else
        end_list(c);
}

/* Whatever came of it: the next listing tells. */
static void on_deallocated_dropped(struct azure_call *c)
{
    if (++c->next < c->n_words)
        go_on(c, LIST_DROP);
    else
        end_list(c);
}

static int parse_list_page(struct azure_call *c, const struct http_reply *reply, struct err *e)
{
    const char *body = buf_str(&reply->body), *region = c->base.region;
    size_t n = reply->body.len;
    if (c->phase == LIST_TAGGED)
        return arm_parse_tagged(body, n, &c->d->machine, region, &c->leftovers, c->url, e);
    if (c->phase == LIST_VMS)
        return arm_parse_vms(body, n, region, &c->base.instances, c->url, e);
    return arm_parse_power(body, n, &c->base.instances, c->url, e);
}

/* True if there is another page, which is on its way, or the call has failed. */
static bool next_page(struct azure_call *c, const char *host)
{
    if (!c->url[0])
        return false;
    if (!arm_url_is_ours(c->url, host))
        fail(c, ERR_INVALID, "Azure's reply: its next page is said to be at another host");
    else if (++c->pages == PAGES_MAX)
        fail(c, ERR_INVALID, "Azure's reply: more than 1000 pages");
    else
        cloud_call_again(&c->base);
    return true;
}

static void on_list_reply(struct cloud_call *base, const struct http_reply *reply)
{
    struct azure_call *c = (struct azure_call *)base;
    struct err e;
    if (c->phase == LIST_DROP) {
        on_deallocated_dropped(c);
    } else if (reply->status != 200) {
        if (!read_refusal(c, reply, &e))
            return;
        if (c->phase == LIST_POWER && e.kind == ERR_DENIED) /* a right that belay can do without */
            end_list(c);
        else
            cloud_call_finish(base, &e);
    } else if (parse_list_page(c, reply, &e) != 0) {
        cloud_call_finish(base, &e);
    } else if (!next_page(c, c->d->endpoint_url)) {
        if (c->phase == LIST_TAGGED)
            go_on(c, LIST_VMS);
        else if (c->phase == LIST_VMS && base->instances.n > 0)
            go_on(c, LIST_POWER);
        else
            drop_deallocated(c);
    }
}

static void azure_list(
    struct cloud_driver *d, const char *region, const char *cluster, cloud_list_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"list", step, on_list_reply, deinit_call};
    struct azure_call *c = new_call(d, region, LIST_TAGGED);
    cloud_call_list(&c->d->calls, &c->base, &ops, region, cluster, done, ctx);
}

/* ---- terminating ---- */

static void on_end_reply(struct cloud_call *base, const struct http_reply *reply)
{
    struct azure_call *c = (struct azure_call *)base;
    struct err e = {.kind = ERR_NONE};
    bool missing = reply->status == 204;
    if (!is_good(reply->status) && !missing) {
        if (!read_refusal(c, reply, &e))
            return;
        missing = e.kind == ERR_NOT_FOUND;
    }
    if (e.kind != ERR_NONE && !missing)
        cloud_call_finish(base, &e);
    else if (c->phase == END && missing && arm_part_of(c->words[c->next]) == ARM_VM)
        go_on(c, END_NIC);
    else if (c->phase == END_NIC)
        go_on(c, END_DISK);
    else if (++c->next < c->n_words)
        go_on(c, END);
    else
        cloud_call_finish(base, NULL);
}

static void azure_terminate(struct cloud_driver *d, const char *region, const char *const *ids, size_t n_ids,
    cloud_done_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"delete", step, on_end_reply, deinit_call};
    struct azure_call *c = new_call(d, region, END);
    if (c->base.refused.kind == ERR_NONE)
        set_words(c, ids, n_ids, ARM_TERMINATE_MAX);
    cloud_call_terminate(&c->d->calls, &c->base, &ops, region, done, ctx);
}

/* ---- prices ---- */

static void on_prices_reply(struct cloud_call *base, const struct http_reply *reply)
{
    struct azure_call *c = (struct azure_call *)base;
    struct err e;
    if (reply->status != 200)
        on_refusal(c, reply);
    else if (arm_parse_prices(buf_str(&reply->body), reply->body.len, base->region, c->words[c->next],
                 &base->prices, c->url, &e) != 0)
        cloud_call_finish(base, &e);
    else if (next_page(c, c->d->prices_url))
        return;
    else if (++c->next < c->n_words)
        go_on(c, PRICES);
    else
        cloud_call_finish(base, NULL);
}

static void azure_prices(struct cloud_driver *d, const char *region, const char *const *types, size_t n_types,
    cloud_prices_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"retail prices", step, on_prices_reply, deinit_call};
    struct azure_call *c = new_call(d, region, PRICES);
    if (c->base.refused.kind == ERR_NONE)
        set_words(c, types, n_types, CLOUD_PRICES_MAX);
    cloud_call_prices(&c->d->calls, &c->base, &ops, region, done, ctx);
}

/* ---- the driver ---- */

static const char **machine_texts(struct azure_machine *m, size_t i)
{
    const char **texts[] = {&m->subscription, &m->resource_group, &m->subnet, &m->image, &m->ssh_key,
        &m->admin_user, &m->security_group, &m->identity, &m->disk_type};
    return i < sizeof(texts) / sizeof(texts[0]) ? texts[i] : NULL;
}

static void azure_destroy(struct cloud_driver *driver)
{
    struct azure_driver *d = (struct azure_driver *)driver;
    cloud_calls_cancel(&d->calls);
    azure_credential_source_destroy(d->credentials);
    for (size_t i = 0; machine_texts(&d->machine, i); i++)
        free((char *)*machine_texts(&d->machine, i));
    free(d->endpoint_url);
    free(d->login_url);
    free(d->prices_url);
    free(d->lonely);
    free(d);
}

static const struct cloud_driver_ops azure_ops = {
    .provider = "azure",
    .spot_notice_ms = SPOT_NOTICE_MS,
    .launch = azure_launch,
    .list = azure_list,
    .terminate = azure_terminate,
    .prices = azure_prices,
    .destroy = azure_destroy,
};

static int set_urls(struct azure_driver *d, const struct azure_options *o, struct err *e)
{
    int rc = cloud_endpoint("azure", o->endpoint_url ? o->endpoint_url : AZURE_ENDPOINT, &d->endpoint_url, e);
    if (rc == 0)
        rc = cloud_endpoint("azure login", o->login_url ? o->login_url : AZURE_LOGIN, &d->login_url, e);
    if (rc == 0)
        rc = cloud_endpoint("azure prices", o->prices_url ? o->prices_url : AZURE_PRICES, &d->prices_url, e);
    return rc;
}

static int set_credentials(struct azure_driver *d, const struct azure_options *o, struct err *e)
{
    struct azure_credential_options credentials = {
        .file = o->credentials_file,
        .login_url = d->login_url,
        /* One on this machine plays the public cloud. */
        .audience = str_starts(d->endpoint_url, "https://") ? d->endpoint_url : AZURE_ENDPOINT,
        .metadata_url = o->metadata_url,
        .http = o->http,
        .timers = o->timers,
    };
    azure_environment_read(&credentials.env);
    return azure_credential_source_create(&credentials, &d->credentials, e);
}

int azure_driver_create(const struct azure_options *o, struct cloud_driver **ret_driver, struct err *e)
{
    struct azure_driver *d = mem_alloc(sizeof(*d));
    d->base.ops = &azure_ops;
    d->calls = (struct cloud_calls){.provider = "azure", .http = o->http, .timers = o->timers};
    d->machine = o->machine;
    for (size_t i = 0; machine_texts(&d->machine, i); i++)
        *machine_texts(&d->machine, i) = mem_strdup(*machine_texts(&d->machine, i));
    int rc = arm_check_machine(&d->machine, e);
    if (rc == 0)
        rc = set_urls(d, o, e);
    if (rc == 0)
        rc = set_credentials(d, o, e);
    if (rc == 0)
        *ret_driver = &d->base;
    else
        azure_destroy(&d->base);
    return rc;
}

/* ---- as a provider ---- */

static const struct cloud_setting azure_settings[] = {
    {"subscription", CLOUD_SETTING_TEXT, 64, "the subscription's id"},
    {"resource_group", CLOUD_SETTING_TEXT, 90, "the resource group its machines are made in"},
    {"image", CLOUD_SETTING_TEXT, 1024, "the image its machines boot from (PUBLISHER:OFFER:SKU:VERSION)"},
    {"subnet", CLOUD_SETTING_TEXT, 1024, "the subnet of its machines (VNET/SUBNET)"},
    {"ssh_key", CLOUD_SETTING_TEXT, 8192, "a public key: Azure makes no Linux machine without one"},
    {"admin_user", CLOUD_SETTING_TEXT, 32, NULL},
    {"security_group", CLOUD_SETTING_TEXT, 1024, NULL},
    {"identity", CLOUD_SETTING_TEXT, 1024, NULL},
    {"disk_type", CLOUD_SETTING_TEXT, 32, NULL},
    {"login", CLOUD_SETTING_TEXT, 256, NULL},
    {"prices", CLOUD_SETTING_TEXT, 256, NULL},
    {0},
};

static int create(const struct cloud_setup *s, struct cloud_driver **ret_driver, struct err *e)
{
    return azure_driver_create(
        &(struct azure_options){
            .machine =
                {
                    .subscription = cloud_setup_get(s, "subscription"),
                    .resource_group = cloud_setup_get(s, "resource_group"),
                    .subnet = cloud_setup_get(s, "subnet"),
                    .image = cloud_setup_get(s, "image"),
                    .ssh_key = cloud_setup_get(s, "ssh_key"),
                    .admin_user = cloud_setup_get(s, "admin_user"),
                    .security_group = cloud_setup_get(s, "security_group"),
                    .identity = cloud_setup_get(s, "identity"),
                    .disk_type = cloud_setup_get(s, "disk_type"),
                    .disk_gib = s->disk_gib,
                },
            .endpoint_url = s->endpoint,
            .login_url = cloud_setup_get(s, "login"),
            .prices_url = cloud_setup_get(s, "prices"),
            .credentials_file = s->credentials,
            .metadata_url = s->metadata,
            .http = s->http,
            .timers = s->timers,
        },
        ret_driver, e);
}

const struct cloud_provider azure_provider = {.name = "azure", .settings = azure_settings, .create = create};
