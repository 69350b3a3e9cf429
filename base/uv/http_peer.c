/* SPDX-License-Identifier: Apache-2.0
 *
 * See http_peer.h. The TLS layer only requests a client certificate. Only this file verifies that
 * it is signed by the cluster's CA, is valid at this time, and may be used by a client.
 */
#include "base/uv/http_peer.h"
#include "base/mem.h"
#include "base/str.h"
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

/* OpenSSL's security level: keys and signatures of at least 80 bits, so no MD5 and no SHA-1. */
#define SECURITY_LEVEL 1

/* Exactly one common name, without a NUL, that fits. */
static bool read_cn(X509 *x, char *cn, size_t size)
{
    X509_NAME *subject = X509_get_subject_name(x);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0)
        return false;
    unsigned char *text = NULL;
    int n = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    bool ok = n > 0 && (size_t)n < size && !memchr(text, '\0', (size_t)n) &&
              str_is_utf8((const char *)text, (size_t)n);
    if (ok) {
        memcpy(cn, text, (size_t)n);
        cn[n] = '\0';
    }
    OPENSSL_free(text);
    return ok;
}

/* The time at which the first certificate of the chain expires. */
static time_t chain_expiry(STACK_OF(X509) * chain)
{
    time_t first = 0;
    for (int i = 0; i < sk_X509_num(chain); i++) {
        struct tm tm;
        if (ASN1_TIME_to_tm(X509_get0_notAfter(sk_X509_value(chain, i)), &tm) != 1)
            return 0;
        time_t t = timegm(&tm);
        if (i == 0 || t < first)
            first = t;
    }
    return first;
}

static void accept_cert(X509 *x, STACK_OF(X509) * chain, struct http_peer_cert *c)
{
    c->verified_until = chain_expiry(chain);
    if (!read_cn(x, c->cn, sizeof(c->cn)))
        STR_COPY(
            c->error, "the client certificate's subject does not have exactly one common name");
}

/* Verifies x against the trusted certificates, which may be intermediate ones (PARTIAL_CHAIN). */
static void verify(X509_STORE *trusted, X509 *x, STACK_OF(X509) * sent, struct http_peer_cert *c)
{
    X509_STORE_CTX *v = X509_STORE_CTX_new();
    if (!v || X509_STORE_CTX_init(v, trusted, x, sent) != 1)
        mem_out_of_memory();
    X509_VERIFY_PARAM *rules = X509_STORE_CTX_get0_param(v);
    X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_PARTIAL_CHAIN);
    X509_VERIFY_PARAM_set_auth_level(rules, SECURITY_LEVEL);
    X509_STORE_CTX_set_purpose(v, X509_PURPOSE_SSL_CLIENT);
    if (X509_verify_cert(v) == 1)
        accept_cert(x, X509_STORE_CTX_get0_chain(v), c);
    else
        snprintf(c->error, sizeof(c->error), "the client certificate is NOT trusted: %s",
            X509_verify_cert_error_string(X509_STORE_CTX_get_error(v)));
    X509_STORE_CTX_free(v);
}

void http_peer_check_cert(SSL *ssl, struct http_peer_cert *c)
{
    X509 *x = SSL_get0_peer_certificate(ssl);
    *c = (struct http_peer_cert){.is_checked = true};
    if (!x)
        return;
    ERR_clear_error();
    verify(SSL_CTX_get_cert_store(SSL_get_SSL_CTX(ssl)), x, SSL_get_peer_cert_chain(ssl), c);
    ERR_clear_error();
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
