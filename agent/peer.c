/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/peer.h"

#include "base/json.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define CONNECT_MS 10000

struct http_call *peer_post(const struct peer *p, const char *path, const void *body, size_t n,
    int64_t timeout_ms, http_done_fn done, void *ctx)
{
    bool joined = identity_is_joined(p->id);
    char *url = mem_printf("%s%s", p->config->server, path);
    struct http_request r = {
        .method = "POST",
        .url = url,
        .headers = {"Content-Type: application/json"},
        .body = body,
        .body_len = n,
        .timeout_ms = timeout_ms,
        .connect_timeout_ms = CONNECT_MS,
        .max_reply_bytes = WIRE_MESSAGE_MAX,
        .tls = {.ca_pem = p->config->ca_pem},
    };
    if (joined) {
        r.tls.cert_pem = p->id->node.cert_pem;
        r.tls.key_pem = p->id->key_pem;
    }
    struct http_call *call = http_start(p->http, &r, done, ctx);
    free(url);
    return call;
}

static enum err_kind kind_of_status(int status)
{
    if (status == 401 || status == 403)
        return ERR_DENIED;
    if (status == 409)
        return ERR_CONFLICT;
    if (status == 429)
        return ERR_THROTTLED;
    if (status == 507)
        return ERR_NO_SPACE;
    return status >= 500 ? ERR_UNAVAILABLE : ERR_INVALID;
}

/* {"error":{"kind":"...","text":"..."}}. A 404 of an intermediary (a proxy, another server) has no
 * such body and must not be mistaken for belayd's answer. */
static int reply_error(const struct http_reply *reply, struct err *e)
{
    json_t *v = NULL;
    struct err ignored;
    int rc = ERR_NONE;
    if (json_parse(buf_str(&reply->body), reply->body.len, WIRE_MESSAGE_MAX, &v, &ignored) == 0) {
        const json_t *error = json_object_get(v, "error");
        const char *kind = json_string_value(json_object_get(error, "kind"));
        const char *text = json_string_value(json_object_get(error, "text"));
        enum err_kind known = kind ? err_kind_from_name(kind) : ERR_NONE;
        if (known != ERR_NONE)
            rc = err_set(e, known, "belayd answered %d: %s", reply->status, text ? text : kind);
    }
    json_decref(v);
    return rc;
}

/* Handles a call without an answer. ERR_DENIED then means that this side does not accept belayd's
 * certificate. belayd has refused nothing, so the call is retried as if belayd were unavailable. */
static int not_answered(const struct err *failed, struct err *e)
{
    bool is_early = strstr(failed->text, "not yet valid") != NULL;
    bool is_late = strstr(failed->text, "expired") != NULL;
    if (failed->kind != ERR_DENIED) {
        *e = *failed;
        return failed->kind;
    }
    return err_set(e, ERR_UNAVAILABLE, "this agent does not accept belayd's certificate%s: %s",
        is_early  ? ", which is not valid yet by this machine's clock: set the clock that is wrong"
        : is_late ? ", which has ended by this machine's clock: set the clock if it is wrong"
                  : "",
        failed->text);
}

int peer_check(const struct err *failed, const struct http_reply *reply, struct err *e)
{
    if (failed)
        return not_answered(failed, e);
    if (reply->status == 200)
        return 0;
    int rc = reply_error(reply, e);
    if (rc)
        return rc;
    return err_set(
        e, kind_of_status(reply->status), "belayd answered %d without saying why", reply->status);
}
