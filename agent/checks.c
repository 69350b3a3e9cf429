/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/checks.h"

#include "agent/dir_trial.h"
#include "agent/gpu/resources.h"
#include "agent/identity.h"
#include "agent/task/task_hooks.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <netdb.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int check_ca(const struct config *c, struct err *e)
{
    BIO *bio = BIO_new_mem_buf(c->ca_pem, -1);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    int rc = cert ? 0
                  : err_set(e, ERR_CONFIG,
                        "ca: its text is not a certificate: copy the cluster's ca.pem, from the "
                        "state directory of belayd");
    X509_free(cert);
    BIO_free(bio);
    ERR_clear_error();
    return rc;
}

/* belayd's tokens have letters, digits and a dot; "b." begins an API token (cluster.c). */
static int check_form(const char *token, struct err *e)
{
    static const char taken[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (token[strspn(token, taken)] == '\0' && !str_starts(token, "b."))
        return 0;
    return err_set(e, ERR_CONFIG,
        "this is not a join token: get one with `belay token create --join`, which prints j. and "
        "48 digits");
}

/* A node that has joined keeps its certificate in dir (identity.h), and its token is used up. */
static int check_token(const struct config *c, struct err *e)
{
    char token[sizeof(c->token)];
    struct err why;
    int rc = identity_check(c->dir, c->ca_pem, clock_wall(&clock_system), &why);
    if (rc != 0 && rc != ERR_NOT_FOUND) {
        *e = why;
        return err_wrap(e, "dir");
    }
    if (rc == 0)
        return 0;
    rc = config_token(c, token, sizeof(token), e);
    if (rc == 0 && check_form(token, e) != 0)
        rc = err_wrap(e, c->token_file ? "token_file" : "token");
    else if (rc != 0 && c->token_file)
        err_wrap(e, "token_file");
    if (rc != 0 && *why.text)
        err_wrap(e, "%s", why.text);
    explicit_bzero(token, sizeof(token));
    return rc;
}

/* Checked by --check only: a user may be unknown for a while (LDAP), so a start ignores it. */
static int check_system_users(const struct config *c, struct err *e)
{
    char name[FEATURE_MAX];
    const char *p = c->system_users;
    for (size_t n; *(p += strspn(p, ",")); p += n) {
        n = strcspn(p, ",");
        snprintf(name, sizeof(name), "%.*s", (int)n, p);
        if (!getpwnam(name))
            return err_set(e, ERR_CONFIG,
                "system_users: this machine has no user %s: correct the name, or create the user",
                name);
    }
    return 0;
}

/* Only warns, because the excess may be intended. */
static void check_memory(const struct config *c)
{
    int64_t has_mib = resources_measure().memory_mib;
    if (c->memory_mib > has_mib)
        log_warn(
            "more memory is offered than the machine has: jobs may be killed for lack of memory",
            log_i("offered_mib", c->memory_mib), log_i("machine_mib", has_mib));
}

static int check_criu(const struct config *c, struct err *e)
{
    if (c->criu[0] != '/' || fs_may(c->criu, X_OK))
        return 0;
    fs_may_not(c->criu, "executed", errno, e);
    return err_wrap(e, "criu");
}

/* server is https://HOST[:PORT] or https://[ADDRESS][:PORT]; the default port is 443. */
static int check_server(const struct config *c, struct err *e)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const char *from = c->server + strlen("https://");
    struct addrinfo *list;
    size_t n = *from == '[' ? strcspn(++from, "]") : strcspn(from, ":/?#");
    char *host = mem_strndup(from, n);
    int code = getaddrinfo(host, NULL, &hints, &list);
    int rc = 0;
    from += n + (from[n] == ']');
    if (*from != ':')
        log_warn("server has no port: 443 is used; that of belayd is 7443 unless its listen says "
                 "otherwise",
            log_s("server", c->server));
    if (code == 0)
        freeaddrinfo(list);
    else
        rc = err_set(e, ERR_NOT_FOUND,
            "server: %s is not known here (%s): correct the name, or make it known to this machine",
            host, gai_strerror(code));
    free(host);
    return rc;
}

static int check_hooks(const struct config *c, struct err *e)
{
    if (c->prolog && task_hooks_check(c->prolog, e) != 0)
        return err_wrap(e, "prolog");
    if (c->epilog && task_hooks_check(c->epilog, e) != 0)
        return err_wrap(e, "epilog");
    return 0;
}

int agent_check_node(const struct config *c, struct err *e)
{
    int rc = check_ca(c, e);
    if (rc == 0 && fs_may_make(c->dir, e) != 0)
        rc = err_wrap(e, "dir");
    if (rc == 0 && dir_trial(c->dir, c->system_users, e) != 0)
        rc = err_wrap(e, "dir");
    if (rc == 0)
        rc = check_token(c, e);
    if (rc == 0)
        rc = check_criu(c, e);
    if (rc == 0)
        rc = check_system_users(c, e);
    if (rc == 0)
        rc = check_hooks(c, e);
    if (rc == 0)
        check_memory(c);
    return rc == 0 ? check_server(c, e) : rc;
}
