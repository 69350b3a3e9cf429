/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenSSL's libssl and what is used of libcrypto with it, loaded at their first call (cli/lazy.h).
 * Only used by steps on several nodes.
 */
#include "cli/lazy.h"

#pragma GCC visibility push(hidden)
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#pragma GCC visibility pop

#define LIBSSL "libssl.so.3"
#define LIBCRYPTO "libcrypto.so.3"
#define RETURNS(type, name, params, args) LAZY(LIBSSL, type, name, params, args)
#define VOID(name, params, args) LAZY_VOID(LIBSSL, name, params, args)

/* clang-format off */
RETURNS(const SSL_METHOD *, TLS_method, (void), ())
RETURNS(SSL_CTX *, SSL_CTX_new, (const SSL_METHOD *m), (m))
VOID(SSL_CTX_free, (SSL_CTX *c), (c))
RETURNS(long, SSL_CTX_ctrl, (SSL_CTX *c, int cmd, long n, void *p), (c, cmd, n, p))
RETURNS(int, SSL_CTX_set_ciphersuites, (SSL_CTX *c, const char *names), (c, names))
RETURNS(int, SSL_CTX_set_num_tickets, (SSL_CTX *c, size_t n), (c, n))
VOID(SSL_CTX_set_psk_find_session_callback, (SSL_CTX *c, SSL_psk_find_session_cb_func cb), (c, cb))
VOID(SSL_CTX_set_psk_use_session_callback, (SSL_CTX *c, SSL_psk_use_session_cb_func cb), (c, cb))

RETURNS(SSL *, SSL_new, (SSL_CTX *c), (c))
VOID(SSL_free, (SSL *s), (s))
VOID(SSL_set_bio, (SSL *s, BIO *in, BIO *out), (s, in, out))
VOID(SSL_set_verify, (SSL *s, int mode, SSL_verify_cb cb), (s, mode, cb))
VOID(SSL_set_accept_state, (SSL *s), (s))
VOID(SSL_set_connect_state, (SSL *s), (s))
RETURNS(int, SSL_set_ex_data, (SSL *s, int i, void *p), (s, i, p))
RETURNS(void *, SSL_get_ex_data, (const SSL *s, int i), (s, i))
RETURNS(int, SSL_do_handshake, (SSL *s), (s))
RETURNS(int, SSL_session_reused, (const SSL *s), (s))
RETURNS(int, SSL_read, (SSL *s, void *p, int n), (s, p, n))
RETURNS(int, SSL_write, (SSL *s, const void *p, int n), (s, p, n))
RETURNS(int, SSL_get_error, (const SSL *s, int rc), (s, rc))

RETURNS(const SSL_CIPHER *, SSL_CIPHER_find, (SSL *s, const unsigned char *id), (s, id))
RETURNS(SSL_SESSION *, SSL_SESSION_new, (void), ())
VOID(SSL_SESSION_free, (SSL_SESSION *s), (s))
RETURNS(int, SSL_SESSION_set1_master_key,
    (SSL_SESSION *s, const unsigned char *key, size_t n), (s, key, n))
RETURNS(int, SSL_SESSION_set_cipher, (SSL_SESSION *s, const SSL_CIPHER *c), (s, c))
RETURNS(int, SSL_SESSION_set_protocol_version, (SSL_SESSION *s, int version), (s, version))

LAZY(LIBCRYPTO, BIO *, BIO_new, (const BIO_METHOD *m), (m))
LAZY(LIBCRYPTO, const BIO_METHOD *, BIO_s_mem, (void), ())
LAZY(LIBCRYPTO, int, BIO_read, (BIO *b, void *p, int n), (b, p, n))
LAZY(LIBCRYPTO, int, BIO_write, (BIO *b, const void *p, int n), (b, p, n))
LAZY_VOID(LIBCRYPTO, ERR_clear_error, (void), ())
/* clang-format on */
