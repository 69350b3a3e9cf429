/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/doubts.h"

#include "agent/dir_trial.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <netdb.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
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

/* A node that has joined keeps its certificate in dir (identity.h), and its token is used up. */
static int check_token(const struct config *c, struct err *e)
{
    char token[sizeof(c->token)], *node = mem_printf("%s/node.json", c->dir);
    int rc = fs_exists(node) ? 0 : config_token(c, token, sizeof(token), e);
    if (rc != 0 && c->token_file)
        err_wrap(e, "token_file");
    explicit_bzero(token, sizeof(token));
    free(node);
    return rc;
}

static int check_criu(const struct config *c, struct err *e)
{
    if (c->criu[0] != '/' || fs_may(c->criu, X_OK))
        return 0;
    fs_may_not(c->criu, "executed", errno, e);
    return err_wrap(e, "criu");
}

/* https://HOST:PORT, https://[ADDRESS]:PORT */
static int check_server(const struct config *c, struct err *e)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const char *from = c->server + strlen("https://");
    struct addrinfo *list;
    size_t n = *from == '[' ? strcspn(++from, "]") : strcspn(from, ":/?#");
    char *host = mem_strndup(from, n);
    int code = getaddrinfo(host, NULL, &hints, &list);
    int rc = 0;
    if (code == 0)
        freeaddrinfo(list);
    else
        rc = err_set(e, ERR_NOT_FOUND,
            "server: %s is not known here (%s): correct the name, or make it known to this machine",
            host, gai_strerror(code));
    free(host);
    return rc;
}

int doubts_of_node(const struct config *c, struct err *e)
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
    return rc == 0 ? check_server(c, e) : rc;
}
