/* SPDX-License-Identifier: Apache-2.0
 *
 * Talking to belayd: one blocking call at a time, on a loop of its own.
 */
#include "cli/cli.h"
#include "cli/flags/api_words.h"
#include "cli/local.h"
#include "cli/login_file.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/http_client.h"
#include "base/uv/http_local.h"
#include "base/uv/loop.h"
#include <assert.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPLY_MAX (64u << 20)
#define CALL_MS 90000
#define TOKEN_MAX 1024
#define PEM_MAX 65536
#define RETRIES_MAX 6 /* of a call beyond the rate of its user */
#define RETRY_MAX_S 60

struct client {
    uv_loop_t loop;
    struct http_client *http; /* a uv_http_local if a socket is used */
    char *socket;             /* socket or url is set */
    char *url;                /* https://host:port */
    char *authorization;
    char *ca_pem;
    /* of belay login, whose server is url; its token is NULL if another one is used */
    struct login login;
};

struct waiting {
    const struct client *client;
    struct client_reply *reply;
    struct err *e;
    int rc;
    int status; /* HTTP; 0: no reply */
    bool done;
    int64_t retry_s; /* > 0: belayd did nothing, and asks to be called again after this time */
};

char *cli_home(void)
{
    const char *own = getenv("BELAY_HOME");
    const char *home = getenv("HOME");
    if (own && own[0])
        return fs_absolute(own); /* the shell's directory is not belayd's, nor the agent's */
    const struct passwd *pw = home && home[0] ? NULL : getpwuid(getuid());
    return mem_printf("%s/.local/share/belay", pw ? pw->pw_dir : home && home[0] ? home : "");
}

/* ---- finding belayd ---- */

/* Reads the file named by an environment variable. Others must not be able to read one that holds a
 * secret. */
static int read_named(const char *variable, const char *what, bool is_secret, size_t max,
    struct buf *out, struct err *e)
{
    const char *path = getenv(variable);
    if (!path)
        return err_set(
            e, ERR_CONFIG, "BELAY_SERVER is set, so %s must name the file with %s", variable, what);
    int rc = is_secret ? fs_read_secret(path, max, out, e) : fs_read(path, max, out, e);
    return rc == 0 ? 0 : err_wrap(e, "%s", variable);
}

/* The token is put in a header, so it must be one word. */
static int read_token(struct buf *out, struct err *e)
{
    int rc = read_named("BELAY_TOKEN_FILE", "your token", true, TOKEN_MAX, out, e);
    if (rc != 0)
        return rc;
    while (out->len > 0 && strchr(" \t\r\n", out->data[out->len - 1]))
        buf_truncate(out, out->len - 1);
    for (size_t i = 0; i < out->len; i++)
        if (out->data[i] <= ' ' || out->data[i] > '~')
            rc = ERR_CONFIG;
    if (rc != 0 || out->len == 0)
        rc = err_set(e, ERR_CONFIG, "BELAY_TOKEN_FILE: %s does not hold a token, which is one word",
            getenv("BELAY_TOKEN_FILE"));
    return rc;
}

static void set_authorization(struct client *c, const char *token)
{
    if (c->authorization)
        explicit_bzero(c->authorization, strlen(c->authorization));
    free(c->authorization);
    c->authorization = mem_printf("Authorization: Bearer %s", token);
}

/* What belay login kept; server NULL: of the last one. */
static int use_login(struct client *c, const char *server, struct err *e)
{
    char *url = server ? mem_strndup(server, strlen(server)) : NULL;
    for (size_t n = url ? strlen(url) : 0; n > 0 && url[n - 1] == '/'; n--)
        url[n - 1] = '\0';
    int rc = login_file_find(url, &c->login, e);
    free(url);
    if (rc == ERR_NOT_FOUND)
        rc = err_set(e, ERR_CONFIG,
            "BELAY_SERVER is set, but you have not signed in there: belay login, or set "
            "BELAY_TOKEN_FILE to a file that holds your token");
    if (rc != 0)
        return rc;
    c->url = mem_strdup(c->login.server);
    c->ca_pem = mem_strdup(c->login.ca_pem);
    set_authorization(c, c->login.token);
    return 0;
}

static int use_server(struct client *c, const char *server, struct err *e)
{
    struct buf token = {0}, ca = {0};
    if (!str_starts(server, "https://"))
        return err_set(
            e, ERR_CONFIG, "BELAY_SERVER: expected https://HOST:PORT, found \"%.100s\"", server);
    if (!getenv("BELAY_TOKEN_FILE"))
        return use_login(c, server, e);
    int rc = read_named("BELAY_CA_FILE", "the cluster's CA certificate", false, PEM_MAX, &ca, e);
    if (rc == 0)
        rc = read_token(&token, e);
    if (rc == 0) {
        c->url = mem_strdup(server);
        for (size_t n = strlen(c->url); c->url[n - 1] == '/'; n--)
            c->url[n - 1] = '\0';
        c->ca_pem = mem_strdup(buf_str(&ca));
        set_authorization(c, buf_str(&token));
    }
    buf_wipe(&token);
    buf_deinit(&ca);
    return rc;
}

static void use_socket(struct client *c)
{
    const char *own = getenv("BELAY_SOCKET");
    char *home = cli_home();
    char *local = local_socket(home);
    if (own && own[0])
        c->socket = mem_strdup(own);
    else if (access(local, F_OK) == 0)
        c->socket = mem_strdup(local);
    else if (access("/run/belay/belayd.sock", F_OK) == 0)
        c->socket = mem_strdup("/run/belay/belayd.sock");
    else if (use_login(c, NULL, NULL) != 0)
        c->socket = mem_strdup(local);
    if (c->socket)
        c->url = mem_strdup("http://belayd");
    free(local);
    free(home);
}

static void open_http(struct client *c)
{
    uv_loop_init(&c->loop);
    c->http = c->socket ? uv_http_local_create(&c->loop) : uv_http_client_create(&c->loop);
}

int client_create(struct client **ret_client, struct err *e)
{
    struct client *c = mem_alloc(sizeof(*c));
    const char *server = getenv("BELAY_SERVER");
    int rc = 0;
    if (server && server[0])
        rc = use_server(c, server, e);
    else
        use_socket(c);
    open_http(c);
    if (rc != 0)
        client_destroy(c);
    else
        *ret_client = c;
    return rc;
}

void client_create_at(
    const char *server, const char *ca_pem, const char *token, struct client **ret_client)
{
    struct client *c = mem_alloc(sizeof(*c));
    c->url = mem_strdup(server);
    c->ca_pem = mem_strdup(ca_pem);
    if (token)
        set_authorization(c, token);
    open_http(c);
    *ret_client = c;
}

void client_destroy(struct client *c)
{
    if (!c)
        return;
    (c->socket ? uv_http_local_destroy : uv_http_client_destroy)(c->http);
    uv_loop_finish(&c->loop);
    if (c->authorization)
        explicit_bzero(c->authorization, strlen(c->authorization));
    free(c->authorization);
    free(c->socket);
    free(c->url);
    free(c->ca_pem);
    login_deinit(&c->login);
    free(c);
}

/* ---- one call ---- */

/* Reads belayd's {"error":{...}}, in the words of the command line, or reports another server's
 * reply. */
static int error_of(const struct http_reply *r, struct err *e)
{
    json_t *v = NULL;
    const char *kind = NULL, *text = NULL;
    if (json_parse(buf_str(&r->body), r->body.len, 1 << 20, &v, NULL) == 0)
        json_unpack(v, "{s:{s:s,s:s}}", "error", "kind", &kind, "text", &text);
    struct buf words = {0};
    if (text)
        api_words_to_flags(text, &words);
    int rc =
        text ? err_set(e, err_kind_from_name(kind) ? err_kind_from_name(kind) : ERR_INTERNAL, "%s",
                   buf_str(&words))
             : err_set(e, ERR_IO, "belayd answered with HTTP status %d and no reason", r->status);
    buf_deinit(&words);
    json_decref(v);
    return rc;
}

static void explain_unreachable(const struct client *c, struct err *e)
{
    if (c->socket)
        err_set(e, ERR_UNAVAILABLE,
            "no belayd answers at %s: start one with \"belay up\", or set BELAY_SOCKET or "
            "BELAY_SERVER",
            c->socket);
    else
        err_wrap(e, "no belayd answers at %s", c->url);
}

static void on_reply(void *ctx, const struct err *e, const struct http_reply *r)
{
    struct waiting *w = ctx;
    w->done = true;
    w->status = r ? r->status : 0;
    if (e) {
        *w->e = *e;
        w->rc = e->kind;
        if (e->kind == ERR_UNAVAILABLE)
            explain_unreachable(w->client, w->e);
    } else if (r->status < 200 || r->status > 299) {
        const char *after = r->status == 429 ? http_reply_header(r, "Retry-After") : NULL;
        if (after)
            str_to_i64(after, 1, RETRY_MAX_S, "seconds", &w->retry_s, NULL);
        w->rc = error_of(r, w->e);
    } else {
        const char *next = http_reply_header(r, "Belay-Log-Next");
        w->reply->status = r->status;
        buf_add(&w->reply->body, r->body.data, r->body.len);
        if (next)
            str_to_i64(next, 0, INT64_MAX, "offset", &w->reply->log_next, NULL);
        w->reply->log_end = http_reply_header(r, "Belay-Log-End") != NULL;
        w->reply->channel_end = http_reply_header(r, "Belay-Channel-End") != NULL;
    }
}

static void on_waited(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

static void on_timer_closed(uv_handle_t *timer)
{
    *(bool *)timer->data = true;
}

void client_wait(struct client *c, int64_t ms)
{
    uv_timer_t timer;
    bool done = false, closed = false;
    uv_timer_init(&c->loop, &timer);
    timer.data = &done;
    uv_timer_start(&timer, on_waited, (uint64_t)ms, 0);
    while (!done)
        uv_run(&c->loop, UV_RUN_ONCE);
    timer.data = &closed;
    uv_close((uv_handle_t *)&timer, on_timer_closed);
    while (!closed)
        uv_run(&c->loop, UV_RUN_ONCE);
}

static int call_with(struct client *c, const char *method, const char *path,
    const char *content_type, const char *authorization, const void *p, size_t n,
    int64_t timeout_ms, struct client_reply *ret_reply, int *ret_status, struct err *e)
{
    struct waiting w = {.client = c, .reply = ret_reply, .e = e};
    char *url = mem_printf("%s%s", c->url, path);
    struct http_request r = {
        .method = method,
        .url = url,
        .headers = {content_type, authorization},
        .body = p,
        .body_len = n,
        .timeout_ms = timeout_ms,
        .max_reply_bytes = REPLY_MAX,
        .unix_socket = c->socket,
        .tls = {.ca_pem = c->ca_pem},
    };
    *ret_reply = (struct client_reply){0};
    for (int tries = 1;; tries++) {
        w.done = false;
        w.rc = 0;
        w.retry_s = 0;
        http_start(c->http, &r, on_reply, &w);
        while (!w.done)
            uv_run(&c->loop, UV_RUN_ONCE);
        if (w.retry_s == 0 || tries == RETRIES_MAX)
            break;
        client_wait(c, w.retry_s * 1000 * tries); /* each time longer: others wait, too */
    }
    free(url);
    *ret_status = w.status;
    return w.rc;
}

/* ---- renewal of a sign-in ---- */

static int ask_for_renewal(struct client *c, struct login *l, struct err *e)
{
    struct client_reply reply;
    int status;
    json_t *body = json_pack("{s:s}", "refresh", l->refresh), *v = NULL;
    char *text = json_dump_text(body);
    int rc = call_with(c, "POST", "/login/refresh", "Content-Type: application/json", NULL, text,
        strlen(text), CALL_MS, &reply, &status, e);
    if (rc == 0)
        rc = json_parse(buf_str(&reply.body), reply.body.len, REPLY_MAX, &v, e);
    if (rc == 0)
        rc = login_read_reply(l, v, e);
    if (rc == 0)
        rc = login_file_put(l, e);
    explicit_bzero(text, strlen(text));
    free(text);
    json_wipe(body);
    json_wipe(v);
    buf_wipe(&reply.body);
    return rc;
}

/* Takes the token of another belay that renewed it, or renews it. */
static int renew(struct client *c, struct err *e)
{
    struct login l;
    int fd;
    int rc = login_file_lock(&fd, e);
    if (rc != 0)
        return rc;
    rc = login_file_find(c->login.server, &l, e);
    if (rc == 0 && str_eq(l.token, c->login.token))
        rc = l.refresh ? ask_for_renewal(c, &l, e)
                       : err_set(e, ERR_DENIED,
                             "your sign-in has ended, and the identity provider gave nothing to "
                             "renew it with: belay login");
    if (rc == 0) {
        login_deinit(&c->login);
        c->login = l;
        set_authorization(c, l.token);
    } else {
        login_deinit(&l);
    }
    close(fd);
    return rc;
}

static int call(struct client *c, const char *method, const char *path, const char *content_type,
    const void *p, size_t n, int64_t timeout_ms, struct client_reply *ret_reply, struct err *e)
{
    int status;
    struct err why;
    bool is_due =
        c->login.token && c->login.refresh && c->login.renew_at_ms <= clock_wall(&clock_system).ms;
    if (is_due)
        renew(c, &why); /* else the old one may still be good */
    int rc = call_with(
        c, method, path, content_type, c->authorization, p, n, timeout_ms, ret_reply, &status, e);
    if (rc == 0 || status != 401 || !c->login.token)
        return rc;
    client_reply_deinit(ret_reply);
    rc = renew(c, e);
    return rc != 0 ? rc
                   : call_with(c, method, path, content_type, c->authorization, p, n, timeout_ms,
                         ret_reply, &status, e);
}

int client_call(struct client *c, const char *method, const char *path, const json_t *body,
    int64_t timeout_ms, struct client_reply *ret_reply, struct err *e)
{
    char *text = body ? json_dump_text(body) : NULL;
    int rc = call(c, method, path, "Content-Type: application/json", text, text ? strlen(text) : 0,
        timeout_ms, ret_reply, e);
    free(text);
    return rc;
}

int client_call_bytes(struct client *c, const char *path, const void *p, size_t n,
    int64_t timeout_ms, struct client_reply *ret_reply, struct err *e)
{
    return call(
        c, "POST", path, "Content-Type: application/octet-stream", p, n, timeout_ms, ret_reply, e);
}

void client_reply_deinit(struct client_reply *r)
{
    buf_deinit(&r->body);
}

static int call_for_json(struct client *c, const char *method, const char *path, const json_t *body,
    int64_t timeout_ms, json_t **ret_value, struct err *e)
{
    struct client_reply reply = {0};
    int rc = client_call(c, method, path, body, timeout_ms, &reply, e);
    if (rc == 0)
        rc = json_parse(buf_str(&reply.body), reply.body.len, REPLY_MAX, ret_value, e);
    client_reply_deinit(&reply);
    return rc;
}

const char *cli_path(char out[CLI_PATH_MAX], const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(out, CLI_PATH_MAX, fmt, args);
    va_end(args);
    assert(n > 0 && n < CLI_PATH_MAX);
    return out;
}

int client_json(struct client *c, const char *method, const char *path, const json_t *body,
    json_t **ret_value, struct err *e)
{
    return call_for_json(c, method, path, body, CALL_MS, ret_value, e);
}

int client_pages(
    struct client *c, const char *path, const char *name, json_t **ret_value, struct err *e)
{
    json_t *all = NULL, *page, *list;
    int64_t before = 0;
    int rc = 0;
    do {
        rc = client_json(c, "GET",
            before ? CLI_PATH("%s&before=%lld", path, (long long)before) : path, NULL, &page, e);
        if (rc != 0)
            break;
        const int64_t next = cli_int(page, "next", 0);
        before = before == 0 || next < before ? next : 0;
        list = json_object_get(page, name);
        if (all && json_is_array(list))
            json_array_extend(list, json_object_get(all, name));
        json_decref(all);
        all = page;
    } while (before > 0);
    if (rc != 0) {
        json_decref(all);
        return rc;
    }
    json_object_set_new(all, "next", json_null());
    *ret_value = all;
    return 0;
}

static json_t *call_once(
    const char *method, const char *path, const json_t *body, int64_t timeout_ms)
{
    struct client *c;
    struct err e = {0};
    json_t *v = NULL;
    int rc = client_create(&c, &e);
    if (rc == 0) {
        rc = call_for_json(c, method, path, body, timeout_ms, &v, &e);
        client_destroy(c);
    }
    if (rc != 0)
        cli_error("%s", e.text);
    return v;
}

json_t *cli_get(const char *path)
{
    return call_once("GET", path, NULL, CALL_MS);
}

json_t *cli_post(const char *path, const json_t *body)
{
    return call_once("POST", path, body, CALL_MS);
}

json_t *cli_post_long(const char *path, const json_t *body, int64_t timeout_ms)
{
    return call_once("POST", path, body, timeout_ms);
}

void cli_add_parameter(struct buf *path, const char *name, const char *value)
{
    buf_printf(path, "%c%s=", strchr(buf_str(path), '?') ? '&' : '?', name);
    str_url_encode(path, value, strlen(value));
}
