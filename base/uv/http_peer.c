/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is at the other end. The TLS layer only asks for a client certificate; that it is signed by
 * our CA, is within its time and may be used by a client is decided here, and nowhere else.
 */
#include "base/uv/http_peer.h"
#include "base/str.h"
#include <gnutls/x509.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

static int import_peer(const gnutls_datum_t *der, gnutls_x509_crt_t *ret_crt)
{
    int rc = gnutls_x509_crt_init(ret_crt);
    if (rc < 0)
        return rc;
    rc = gnutls_x509_crt_import(*ret_crt, der, GNUTLS_X509_FMT_DER);
    if (rc < 0)
        gnutls_x509_crt_deinit(*ret_crt);
    return rc;
}

/* Exactly one common name, without a NUL, that fits. */
static bool read_cn(gnutls_x509_crt_t crt, char *cn, size_t size)
{
    size_t n = size, n_second = 0;
    if (gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0, cn, &n) < 0)
        return false;
    if (gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 1, 0, NULL, &n_second) !=
        GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
        return false;
    return n > 0 && strlen(cn) == n && str_is_utf8(cn, n);
}

/* The time at which the first certificate of the chain expires. */
static time_t chain_expiry(const gnutls_datum_t *chain, unsigned n)
{
    time_t first = 0;
    for (unsigned i = 0; i < n; i++) {
        gnutls_x509_crt_t crt;
        if (import_peer(&chain[i], &crt) < 0)
            return 0;
        time_t t = gnutls_x509_crt_get_expiration_time(crt);
        gnutls_x509_crt_deinit(crt);
        if (i == 0 || t < first)
            first = t;
    }
    return first;
}

static void set_status_error(struct http_peer_cert *c, unsigned status)
{
    gnutls_datum_t text = {0};
    if (gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) < 0) {
        STR_COPY(c->error, "the client certificate did not verify");
        return;
    }
    STR_COPY(c->error, (const char *)text.data);
    gnutls_free(text.data);
    for (size_t n = strlen(c->error); n > 0 && c->error[n - 1] == ' '; n--)
        c->error[n - 1] = '\0';
}

static void accept_cert(const gnutls_datum_t *chain, unsigned n, struct http_peer_cert *c)
{
    gnutls_x509_crt_t crt;
    if (import_peer(&chain[0], &crt) < 0) {
        STR_COPY(c->error, "the client certificate cannot be read");
        return;
    }
    c->verified_until = chain_expiry(chain, n);
    if (!read_cn(crt, c->cn, sizeof(c->cn))) {
        c->cn[0] = '\0';
        STR_COPY(
            c->error, "the client certificate's subject does not have exactly one common name");
    }
    gnutls_x509_crt_deinit(crt);
}

void http_peer_check_cert(gnutls_session_t session, struct http_peer_cert *c)
{
    unsigned n = 0, status = 0;
    *c = (struct http_peer_cert){.is_checked = true};
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &n);
    if (!chain || n == 0)
        return;
    gnutls_typed_vdata_st purpose = {
        .type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT};
    int rc = gnutls_certificate_verify_peers(session, &purpose, 1, &status);
    if (rc < 0)
        snprintf(c->error, sizeof(c->error), "the client certificate did not verify: %s",
            gnutls_strerror(rc));
    else if (status != 0)
        set_status_error(c, status);
    else
        accept_cert(chain, n, c);
}

void http_peer_fill_address(int fd, const struct sockaddr *addr, struct http_server_request *r)
{
    STR_COPY(r->peer_address, "unknown");
    if (!addr)
        return;
    if (addr->sa_family == AF_UNIX) {
        struct ucred who;
        socklen_t len = sizeof(who);
        r->is_unix = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0;
        if (r->is_unix) {
            r->peer_uid = who.uid;
            r->peer_pid = who.pid;
            STR_COPY(r->peer_address, "unix");
        }
        return;
    }
    char host[48], port[8];
    socklen_t len =
        addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (getnameinfo(addr, len, host, sizeof(host), port, sizeof(port),
            NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(r->peer_address, sizeof(r->peer_address), strchr(host, ':') ? "[%s]:%s" : "%s:%s",
            host, port);
}
