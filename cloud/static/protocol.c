/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests, replies and ssh's command line of the static driver. See protocol.h.
 */
#include "cloud/static/protocol.h"

#include "base/json.h"
#include "base/str.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

#define SSH_FAILED 255
#define NOT_EXECUTABLE 126
#define NOT_FOUND 127
#define LAST_WORDS_MAX 200
#define TEXT_MAX 400

/* ---- requests ---- */

void static_build_list(struct buf *out)
{
    json_add(out, json_pack("{s:i, s:s}", "host", 1, "do", "list"));
}

int static_build_claim(const struct cloud_launch *l, struct buf *out, struct err *e)
{
    if (strlen(l->user_data) > CLOUD_USER_DATA_MAX)
        return err_set(e, ERR_INVALID, "user data of more than %d bytes", CLOUD_USER_DATA_MAX);
    json_add_secret(out, json_pack("{s:i, s:s, s:o, s:o, s:o}", "host", 1, "do", "claim", "token",
                             json_text(l->token), "cluster", json_text(l->cluster), "user_data",
                             json_text(l->user_data)));
    return 0;
}

void static_build_release(const char *claim_id, struct buf *out)
{
    json_add(
        out, json_pack("{s:i, s:s, s:o}", "host", 1, "do", "release", "id", json_text(claim_id)));
}

/* ---- replies ---- */

static bool is_hex(const char *s)
{
    return strlen(s) == STATIC_CLAIM_ID && strspn(s, "0123456789abcdef") == STATIC_CLAIM_ID;
}

static int read_claim(
    struct json_reader *up, const char *key, struct static_claim *c, struct err *e)
{
    static const char *const states[] = {"starting", "running", "ended", "released", NULL};
    struct json_reader r;
    const json_t *v = json_opt_object(up, key);
    if (up->rc != 0 || !v)
        return up->rc;
    json_reader_init(&r, v, key, e);
    json_req_strcpy(&r, "id", c->id, sizeof(c->id));
    json_req_strcpy(&r, "token", c->token, sizeof(c->token));
    json_req_strcpy(&r, "cluster", c->cluster, sizeof(c->cluster));
    c->state = json_req_enum(&r, "state", states);
    c->since.ms = json_req_i64(&r, "since_ms", 0, INT64_MAX);
    if (r.rc == 0 && !is_hex(c->id))
        json_reader_fail(&r, "id", "is not the id of a claim");
    return json_reader_finish_lenient(&r);
}

/* A reply with {"claim": null} is valid; one without "claim" is not. */
static int read_report(const json_t *root, struct static_report *ret_report, struct err *e)
{
    struct static_report report = {0};
    struct json_reader r;
    json_reader_init(&r, root, "reply", e);
    json_req_i64(&r, "host", 1, 1);
    if (r.rc == 0 && (!json_object_get(root, "claim") || !json_object_get(root, "last")))
        json_reader_fail(&r, "claim", "missing in the reply");
    int rc = r.rc != 0 ? r.rc : read_claim(&r, "claim", &report.claim, e);
    if (rc == 0)
        rc = read_claim(&r, "last", &report.last, e);
    if (rc == 0)
        rc = json_reader_finish_lenient(&r);
    if (rc == 0)
        *ret_report = report;
    return rc;
}

/* The last line of ssh's standard error. */
static void last_words(const struct buf *errors, char out[LAST_WORDS_MAX])
{
    size_t n = errors->len;
    while (n > 0 && strchr(" \r\n", errors->data[n - 1]))
        n--;
    size_t from = n;
    while (from > 0 && errors->data[from - 1] != '\n')
        from--;
    n -= from;
    n = n < LAST_WORDS_MAX - 1 ? n : LAST_WORDS_MAX - 1;
    if (n > 0)
        memcpy(out, errors->data + from, n);
    out[n] = '\0';
    str_sanitize(out, strlen(out));
}

static int host_error(const json_t *root, int exit_code, struct err *e)
{
    const char *kind = json_string_value(json_object_get(root, "error"));
    const char *text = json_string_value(json_object_get(root, "text"));
    enum err_kind k = kind ? err_kind_from_name(kind) : ERR_NONE;
    if (k == ERR_NONE)
        return err_set(
            e, ERR_INVALID, "belay-agent host ended with code %d and without a reply", exit_code);
    return err_set(e, k, "the host says: %.*s", TEXT_MAX, text ? text : kind);
}

int static_parse_reply(
    const struct runner_result *r, struct static_report *ret_report, struct err *e)
{
    char words[LAST_WORDS_MAX];
    json_t *root = NULL;
    struct err bad;
    last_words(&r->errors, words);
    if (r->exit_code == SSH_FAILED)
        return err_set(e, ERR_UNAVAILABLE, "%s%s",
            strncmp(words, "ssh: ", 5) == 0 ? "" : "ssh: ", words[0] ? words : "no connection");
    if (r->exit_code == NOT_FOUND || r->exit_code == NOT_EXECUTABLE)
        return err_set(e, ERR_CONFIG,
            "belay-agent cannot be run there (%s): install it, or set agent: to its path", words);
    int rc = json_parse(buf_str(&r->output), r->output.len, STATIC_REPLY_MAX, &root, &bad);
    if (rc != 0)
        return err_set(e, ERR_INVALID, "invalid reply of belay-agent host (exit code %d): %s%s%s",
            r->exit_code, bad.text, words[0] ? "; it says: " : "", words);
    if (r->exit_code != 0)
        rc = host_error(root, r->exit_code, e);
    else
        rc = read_report(root, ret_report, e);
    json_decref(root);
    return rc;
}

/* ---- names ---- */

int static_parse_host(
    const char *text, char ret_name[STATIC_HOST_MAX + 1], int *ret_port, struct err *e)
{
    const char *from = text, *end = text + strcspn(text, ":");
    int64_t port = 0;
    if (*text == '[') {
        from++;
        end = text + strcspn(text, "]");
        if (!*end || (end[1] && end[1] != ':'))
            return err_set(e, ERR_CONFIG, "hosts: \"%.64s\": expected [ADDRESS]:PORT", text);
    }
    size_t n = (size_t)(end - from);
    const char *rest = *end == ']' ? end + 1 : end;
    const char *letters = *text == '['
                              ? "0123456789abcdefABCDEF:."
                              : "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_";
    if (n == 0 || strlen(text) > STATIC_HOST_MAX || strspn(from, letters) < n || *from == '-')
        return err_set(e, ERR_CONFIG,
            "hosts: \"%.64s\": expected HOST, HOST:PORT or [ADDRESS]:PORT of at most %d bytes",
            text, STATIC_HOST_MAX);
    if (*rest && str_to_i64(rest + 1, 1, 65535, "port", &port, NULL) != 0)
        return err_set(e, ERR_CONFIG, "hosts: \"%.64s\": expected a port in 1 .. 65535", text);
    memcpy(ret_name, from, n);
    ret_name[n] = '\0';
    *ret_port = (int)port;
    return 0;
}

const char *static_claim_of_id(const char *id)
{
    const char *mark = strrchr(id, '#');
    return mark && mark != id && is_hex(mark + 1) ? mark + 1 : NULL;
}

void static_to_instance(const char *host, const struct static_claim *c, struct cloud_instance *i)
{
    static const enum cloud_state states[] = {
        CLOUD_PENDING, CLOUD_RUNNING, CLOUD_STOPPING, CLOUD_GONE};
    *i = (struct cloud_instance){
        .market = CLOUD_OWNED, .state = states[c->state], .launched_at = c->since};
    snprintf(i->id, sizeof(i->id), "%s#%s", host, c->id);
    STR_COPY(i->token, c->token);
    STR_COPY(i->cluster, c->cluster);
    STR_COPY(i->zone, STATIC_REGION);
    STR_COPY(i->type, STATIC_REGION);
    if (c->state == STATIC_ENDED)
        STR_COPY(i->reason, "its program has ended, or the host was restarted");
    else if (c->state == STATIC_RELEASED)
        STR_COPY(i->reason, "given up");
}

/* ---- ssh ---- */

/* No user configuration, no agent, no forwarding, no prompts, no unknown hosts. */
static const char *const fixed_words[] = {"ssh", "-F", "none", "-T", "-a", "-x", "-o",
    "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "GlobalKnownHostsFile=/dev/null",
    "-o", "UpdateHostKeys=no", "-o", "ConnectTimeout=10", "-o", "ConnectionAttempts=1", "-o",
    "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-o", "ClearAllForwardings=yes", "-o",
    "IdentitiesOnly=yes", "-o", "IdentityAgent=none", "-o", "PreferredAuthentications=publickey",
    "-o", "ControlPath=none", "-o", "PermitLocalCommand=no", "-o", "LogLevel=ERROR"};

void static_ssh_init(
    struct static_ssh *s, const struct static_options *o, const char *name, int port)
{
    size_t n = 0;
    *s = (struct static_ssh){0};
    if (port == 0)
        port = o->port ? o->port : 22;
    snprintf(s->port, sizeof(s->port), "%d", port);
    buf_printf(&s->known, "UserKnownHostsFile=%s", o->known_hosts);
    str_shell_quote(&s->command, o->agent ? o->agent : "belay-agent");
    buf_adds(&s->command, " host");
    if (o->dir) {
        buf_adds(&s->command, " --dir ");
        str_shell_quote(&s->command, o->dir);
    }
    for (; n < sizeof(fixed_words) / sizeof(fixed_words[0]); n++)
        s->argv[n] = fixed_words[n];
    const char *const rest[] = {"-o", buf_str(&s->known), "-i", o->key, "-p", s->port, "-l",
        o->user, "--", name, buf_str(&s->command), NULL};
    assert(n + sizeof(rest) / sizeof(rest[0]) <= STATIC_ARGV_MAX);
    memcpy(&s->argv[n], rest, sizeof(rest));
}

void static_ssh_deinit(struct static_ssh *s)
{
    buf_deinit(&s->command);
    buf_deinit(&s->known);
}
