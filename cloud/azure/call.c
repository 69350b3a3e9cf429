/* SPDX-License-Identifier: Apache-2.0
 *
 * See call.h. Invariant: a token goes into requests to one host only, the configured endpoint; URLs
 * from replies are compared with it before use. The prices host and the storage of a console log
 * never get a token.
 */
#include "cloud/azure/call.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/azure/arm_usages.h"
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS SECONDS_MS(30)
#define CONNECT_TIMEOUT_MS SECONDS_MS(10)
#define PAGES_MAX 1000

/* ---- the life of a call ---- */

struct azure_call *azure_call_new(
    struct cloud_driver *d, const char *region, enum azure_phase phase)
{
    struct azure_call *c = mem_alloc(sizeof(*c));
    c->d = (struct azure_driver *)d;
    c->phase = phase;
    if (!region || !*region || strlen(region) >= CLOUD_NAME_MAX ||
        strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789") != strlen(region))
        err_set(&c->base.refused, ERR_CONFIG,
            "\"%.64s\" is not an Azure region (expected one like eastus)", region ? region : "");
    return c;
}

void azure_call_set_words(struct azure_call *c, const char *const *words, size_t n, size_t max)
{
    if (n == 0 || n > max) {
        err_set(&c->base.refused, ERR_INVALID, "%zu names: 1 to %zu at a time", n, max);
        return;
    }
    cloud_call_add_words(&c->base, words, n);
}

void azure_call_deinit(struct cloud_call *base)
{
    struct azure_call *c = (struct azure_call *)base;
    oauth_cancel(&c->wait);
    buf_wipe(&c->vm); /* user data contains a one-use secret */
    explicit_bzero(c->url, sizeof(c->url));
    buf_deinit(&c->nic);
    cloud_instances_deinit(&c->leftovers);
    cloud_quota_values_deinit(&c->usages);
    free(c->name);
}

void azure_call_continue(struct azure_call *c, enum azure_phase phase)
{
    c->phase = phase;
    c->url[0] = '\0';
    c->by_location = false;
    cloud_call_step(&c->base);
}

void azure_call_fail(struct azure_call *c, enum err_kind kind, const char *text)
{
    struct err e;
    err_set(&e, kind, "%s", text);
    cloud_call_finish(&c->base, &e);
}

/* ---- the request ---- */

static void add_part(
    const struct azure_call *c, enum arm_part part, const char *name, struct buf *url)
{
    char full[CLOUD_NAME_MAX];
    arm_part_name(name, part, full, sizeof(full));
    arm_path(&c->d->machine, part, full, url);
}

/* The path of the phase's request, unless a reply has named a URL. */
static void add_own_path(const struct azure_call *c, struct buf *url)
{
    const struct azure_machine *m = &c->d->machine;
    const char *word = cloud_call_word(&c->base);
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
    case LIST_DROP:
        arm_path_delete_vm(m, c->phase == DROP_VM ? c->name : word, url);
        break;
    case DROP_DISK:
        add_part(c, ARM_DISK, c->name, url);
        break;
    case LIST_TAGGED:
        arm_path_list_tagged(m, c->base.cluster, url);
        break;
    case LIST_VMS:
        arm_path_list_vms(m, !c->base.cluster, url);
        break;
    case LIST_POWER:
        arm_path_list_power(m, url);
        break;
    case LIST_DISKS:
    case LIST_ALL_DISKS:
        arm_path_list_disks(m, c->phase == LIST_ALL_DISKS, url);
        break;
    case CONSOLE:
        arm_path_console(m, word, url);
        break;
    case CONSOLE_LOG: /* always has a URL from a reply */
        break;
    case END:
        if (arm_part_of(word) == ARM_VM)
            arm_path_delete_vm(m, word, url);
        else
            arm_path(m, arm_part_of(word), word, url);
        break;
    case END_NIC:
    case END_DISK:
        add_part(c, c->phase == END_NIC ? ARM_NIC : ARM_DISK, word, url);
        break;
    case PRICES:
        arm_path_prices(c->base.region, word, url);
        break;
    case USAGES:
        arm_path_usages(m, c->base.region, url);
        break;
    }
}

static const char *method_of(enum azure_phase phase)
{
    switch (phase) {
    case PUT_NIC:
    case PUT_VM:
        return "PUT";
    case CONSOLE:
        return "POST";
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
        .headers = {c->phase == CONSOLE_LOG ? "Accept: */*" : "Accept: application/json"},
        .timeout_ms = TIMEOUT_MS,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .max_reply_bytes = c->phase == CONSOLE_LOG ? ARM_CONSOLE_MAX : ARM_REPLY_MAX,
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
    buf_wipe(&url);
}

static void on_token(void *ctx, const struct err *e, const char *header)
{
    struct azure_call *c = ctx;
    if (e)
        cloud_call_no_credentials(&c->base, e);
    else
        send_request(c, header);
}

void azure_call_step(struct cloud_call *base)
{
    struct azure_call *c = (struct azure_call *)base;
    /* public, or authorised by the URL's own signature */
    if (c->phase == PRICES || c->phase == CONSOLE_LOG)
        send_request(c, NULL);
    else
        oauth_get(azure_credential_tokens(c->d->credentials), &c->wait, on_token, c);
}

/* ---- replies ---- */

bool azure_call_is_good(int status)
{
    return status == 200 || status == 201 || status == 202;
}

bool azure_call_read_refusal(struct azure_call *c, const struct http_reply *reply, struct err *e)
{
    enum arm_remedy remedy;
    arm_parse_error(reply->status, buf_str(&reply->body), reply->body.len, &remedy, e);
    if (remedy != ARM_REMEDY_TOKEN || c->token_renewed || c->phase == PRICES)
        return true;
    c->token_renewed = true;
    oauth_refused(azure_credential_tokens(c->d->credentials), &c->wait);
    cloud_call_step(&c->base);
    return false;
}

void azure_call_on_refusal(struct azure_call *c, const struct http_reply *reply)
{
    struct err e;
    if (azure_call_read_refusal(c, reply, &e))
        cloud_call_finish(&c->base, &e);
}

bool azure_call_next_page(struct azure_call *c, const char *host)
{
    if (!c->url[0])
        return false;
    if (!arm_url_is_ours(c->url, host))
        azure_call_fail(c, ERR_INVALID, "Azure's reply: its next page is at another host");
    else if (++c->pages == PAGES_MAX)
        azure_call_fail(c, ERR_INVALID, "Azure's reply: more than 1000 pages");
    else
        cloud_call_step(&c->base);
    return true;
}
