/* SPDX-License-Identifier: Apache-2.0
 *
 *     belay login [--server URL] [--ca FILE]
 *     belay logout
 *
 * Signs in at the identity provider of a cluster, with a browser on any machine (RFC 8628). belayd
 * talks to the provider; this program shows the code and asks belayd until the user has decided.
 */
#include "cli/login_file.h"
#include "cli/verbs.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PEM_MAX 65536
#define CALL_MS 90000
#define REPLY_MAX (1u << 20)
#define SLOWER_MS 5000 /* RFC 8628, 3.5 */
#define INTERVAL_MIN_MS 1000

enum { VAL_SERVER = 1, VAL_CA };

struct login_options {
    char *server, *ca;
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct login_options *o = ctx;
    char **text = val == VAL_SERVER ? &o->server : &o->ca;
    free(*text);
    *text = mem_strdup(arg);
    return CLI_OK;
}

/* ---- where ---- */

static char *without_slashes(const char *url)
{
    size_t n = strlen(url);
    while (n > 0 && url[n - 1] == '/')
        n--;
    return mem_strndup(url, n);
}

static const char *set_variable(const char *name)
{
    const char *text = getenv(name);
    return text && text[0] ? text : NULL;
}

/* The server and its CA: of the options, the environment, or an earlier sign-in. */
static int choose_server(const struct login_options *o, struct login *l, struct err *e)
{
    struct login before;
    struct buf ca = {0};
    const char *given = o->server ? o->server : set_variable("BELAY_SERVER");
    const char *file = o->ca ? o->ca : set_variable("BELAY_CA_FILE");
    char *server = given ? without_slashes(given) : NULL;
    int rc = 0;
    if (server && !str_starts(server, "https://")) {
        rc = err_set(
            e, ERR_INVALID, "--server: expected https://HOST:PORT, found \"%.100s\"", server);
        free(server);
        return rc;
    }
    bool is_known = login_file_find(server, &before, NULL) == 0;
    if (!server && is_known)
        server = mem_strdup(before.server);
    if (!server)
        rc = err_set(
            e, ERR_INVALID, "say which belayd: --server https://HOST:PORT, or set BELAY_SERVER");
    else if (file)
        rc = fs_read(file, PEM_MAX, &ca, e);
    else if (is_known)
        buf_adds(&ca, before.ca_pem);
    else
        rc = err_set(e, ERR_INVALID,
            "the cluster's CA certificate is needed the first time: --ca FILE, or set "
            "BELAY_CA_FILE (an administrator has it: ca.pem of belayd's state directory)");
    l->server = server;
    l->ca_pem = rc == 0 ? mem_strdup(buf_str(&ca)) : NULL;
    login_deinit(&before);
    buf_deinit(&ca);
    return rc;
}

/* ---- the device flow ---- */

static int post(struct client *c, const char *path, const char *key, const char *text,
    int *ret_status, json_t **ret, struct err *e)
{
    struct client_reply reply = {0};
    json_t *body = text ? json_pack("{s:s}", key, text) : NULL;
    int rc = client_call(c, "POST", path, body, CALL_MS, &reply, e);
    if (rc == 0) {
        *ret_status = reply.status;
        rc = json_parse(buf_str(&reply.body), reply.body.len, REPLY_MAX, ret, e);
    }
    json_wipe(body);
    buf_wipe(&reply.body);
    client_reply_deinit(&reply);
    return rc;
}

static void show_code(const json_t *begun)
{
    const char *full = cli_string(json_object_get(begun, "verification_uri_complete"));
    fprintf(stderr, "Open %s\nand enter the code %s\n", cli_text(begun, "verification_uri"),
        cli_text(begun, "user_code"));
    if (full)
        fprintf(stderr, "or open %s\n", full);
}

/* Asks at the interval that the provider wants, until it knows or the code has expired. */
static int await(
    struct client *c, const json_t *begun, struct login *l, json_t **ret, struct err *e)
{
    const char *device = json_string_value(json_object_get(begun, "device"));
    int64_t interval_ms = cli_int(begun, "interval_ms", 5000);
    int64_t end_ms = clock_system_ms() + cli_int(begun, "expires_ms", 600000);
    if (!device)
        return err_set(e, ERR_INVALID, "belayd's reply has no device");
    if (interval_ms < INTERVAL_MIN_MS)
        interval_ms = INTERVAL_MIN_MS;
    while (clock_system_ms() < end_ms) {
        json_t *v = NULL;
        int status = 0;
        client_wait(c, interval_ms);
        int rc = post(c, "/login/token", "device", device, &status, &v, e);
        if (rc == 0 && status == 201) {
            rc = login_read_reply(l, v, e);
            *ret = rc == 0 ? v : NULL;
            if (rc != 0)
                json_wipe(v);
            return rc;
        }
        bool unreached = rc == ERR_UNAVAILABLE || rc == ERR_TIMEOUT || rc == ERR_THROTTLED;
        if (str_eq(json_string_value(json_object_get(v, "state")), "slow-down") || unreached)
            interval_ms += SLOWER_MS;
        json_decref(v);
        if (rc != 0 && !unreached)
            return rc;
    }
    return err_set(e, ERR_TIMEOUT, "nobody entered the code in time: belay login begins again");
}

static int save(const struct login *l, struct err *e)
{
    int fd;
    int rc = login_file_lock(&fd, e);
    if (rc != 0)
        return rc;
    rc = login_file_put(l, e);
    close(fd);
    return rc;
}

static void print_user(const json_t *v, bool json)
{
    char at[CLI_LOCAL_MAX];
    struct buf teams = {0};
    if (json) {
        cli_print_json(v);
        return;
    }
    cli_words(json_object_get(v, "teams"), &teams);
    printf("signed in as %s, %s", cli_text(v, "user"), cli_text(v, "role"));
    if (teams.len)
        printf(", of %s %s", strchr(buf_str(&teams), ',') ? "the teams" : "team", buf_str(&teams));
    printf("; until %s%s\n", cli_when(v, "expires_at", at),
        json_is_true(json_object_get(v, "is_renewed")) ? ", and renewed while it is used" : "");
    buf_deinit(&teams);
}

static int sign_in(const struct login_options *o, bool json, struct err *e)
{
    struct login l = {0};
    struct client *c = NULL;
    json_t *begun = NULL, *v = NULL;
    int status = 0;
    int rc = choose_server(o, &l, e);
    if (rc == 0) {
        client_create_at(l.server, l.ca_pem, NULL, &c);
        rc = post(c, "/login/device", NULL, NULL, &status, &begun, e);
    }
    if (rc == 0) {
        show_code(begun);
        rc = await(c, begun, &l, &v, e);
    }
    if (rc == 0)
        rc = save(&l, e);
    if (rc == 0) {
        json_object_set_new(v, "is_renewed", json_boolean(l.refresh));
        json_object_set_new(v, "server", json_text(l.server));
        json_object_del(v, "token"); /* they stay in the file */
        json_object_del(v, "refresh");
        print_user(v, json);
    }
    json_wipe(v);
    json_decref(begun);
    client_destroy(c);
    login_deinit(&l);
    return rc;
}

static int run_login(int argc, const char **argv)
{
    struct cli_args a;
    struct login_options o = {0};
    struct err e;
    int rc = cli_parse(&verb_login, argc, argv, false, on_option, &o, &a);
    if (rc == 0 && (rc = sign_in(&o, a.json, &e)) != 0) {
        cli_error("%s", e.text);
        rc = rc == ERR_INVALID ? CLI_USAGE : CLI_FAILED;
    }
    free(o.server);
    free(o.ca);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

/* ---- logout ---- */

/* The file is cleaned even if belayd cannot be asked; the token then ends by itself. */
static int sign_out(const struct login_options *o, bool json, struct err *e)
{
    struct login l = {0};
    struct client *c = NULL;
    json_t *v = NULL;
    struct err why = {0};
    int fd, status = 0;
    const char *given = o->server ? o->server : set_variable("BELAY_SERVER");
    char *server = given ? without_slashes(given) : NULL;
    int rc = login_file_find(server, &l, e);
    if (rc == 0)
        rc = login_file_lock(&fd, e);
    if (rc == 0) {
        client_create_at(l.server, l.ca_pem, l.token, &c);
        if (post(c, "/api/v1/logout", NULL, NULL, &status, &v, &why) != 0)
            cli_warn("the token was not ended at belayd, and ends by itself: %s", why.text);
        rc = login_file_remove(l.server, e);
        close(fd);
    }
    if (rc == 0 && json)
        cli_print_json(v ? v : json_null());
    else if (rc == 0)
        printf("signed out of %s\n", l.server);
    json_decref(v);
    client_destroy(c);
    login_deinit(&l);
    free(server);
    return rc;
}

static int run_logout(int argc, const char **argv)
{
    struct cli_args a;
    struct login_options o = {0};
    struct err e;
    int rc = cli_parse(&verb_logout, argc, argv, false, on_option, &o, &a);
    if (rc == 0 && sign_out(&o, a.json, &e) != 0) {
        cli_error("%s", e.text);
        rc = CLI_FAILED;
    }
    free(o.server);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption login_options[] = {
    {"server", 0, POPT_ARG_STRING, NULL, VAL_SERVER,
        "belayd's URL (default: BELAY_SERVER, or that of the last sign-in)", "URL"},
    {"ca", 0, POPT_ARG_STRING, NULL, VAL_CA,
        "the cluster's CA certificate (default: BELAY_CA_FILE, or that of the last sign-in there)",
        "FILE"},
    POPT_TABLEEND,
};

static const struct poptOption logout_options[] = {
    {"server", 0, POPT_ARG_STRING, NULL, VAL_SERVER,
        "belayd's URL (default: BELAY_SERVER, or that of the last sign-in)", "URL"},
    POPT_TABLEEND,
};

const struct verb verb_login = {"login", CLI_NO_WORDS, "sign in at the cluster's identity provider",
    run_login, login_options, false,
    .examples = "belay login --server https://belay.lab.example:7443 --ca belay-ca.pem\n"
                "belay login\n"};
const struct verb verb_logout = {"logout", CLI_NO_WORDS, "end what belay login began", run_logout,
    logout_options, false, .examples = "belay logout\n"};
