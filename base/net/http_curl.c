/* SPDX-License-Identifier: Apache-2.0
 *
 * One request as a curl easy handle. Fixed for every request of belay: HTTP/1.1, no redirects, no
 * proxy unless requested, no .netrc, no cookies, no content decoding, the path sent as given
 * (signatures cover it), bodies without waiting for "100 Continue". Keys and certificates stay in
 * memory.
 *
 * Headers, bodies and replies may contain secrets: all copies made here are wiped before they are
 * freed. Copies inside curl and its TLS library are not under our control.
 */
#include "base/net/http_curl.h"
#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* An option unknown to this libcurl means a broken build, not a failed request. */
#define SET(c, option, value)                                                                      \
    do {                                                                                           \
        CURLcode set_rc = curl_easy_setopt((c)->easy, (option), (value));                          \
        assert(set_rc == CURLE_OK);                                                                \
        (void)set_rc;                                                                              \
    } while (0)

/* ---- Receiving ---- */

static size_t on_body(char *p, size_t size, size_t n, void *ctx)
{
    struct http_curl *c = ctx;
    if (size * n > c->max_reply_bytes - c->reply.body.len) {
        c->is_too_large = true;
        return 0;
    }
    curl_off_t whole = -1;
    curl_easy_getinfo(c->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &whole);
    bool is_known = whole > 0 && (uint64_t)whole <= c->max_reply_bytes;
    http_reply_add(&c->reply, p, size * n, is_known ? (size_t)whole : 0);
    return size * n;
}

/* Called with each header line, including status lines and the final empty one. Headers of an
 * interim reply (100 Continue) are replaced by those of the next reply. */
static size_t on_header(char *p, size_t size, size_t n, void *ctx)
{
    struct http_curl *c = ctx;
    struct http_reply *r = &c->reply;
    size_t len = size * n;
    while (len > 0 && (p[len - 1] == '\r' || p[len - 1] == '\n'))
        len--;
    c->has_head = len == 0;
    if (len > 5 && memcmp(p, "HTTP/", 5) == 0)
        http_reply_clear_headers(r);
    else if (len > 0)
        http_reply_add_line(r, p, len);
    return size * n;
}

/* As curl's default, but close-on-exec: tasks must not inherit our connections. */
static curl_socket_t on_open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *a)
{
    const struct http_curl *c = ctx;
    (void)purpose;
    if (c->may_connect && !c->may_connect(c->may_connect_ctx, &a->addr))
        return CURL_SOCKET_BAD;
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* ---- Sending ---- */

static char *url_part(CURLU *u, CURLUPart part, unsigned flags)
{
    char *text = NULL;
    if (curl_url_get(u, part, &text, flags) != CURLUE_OK)
        return NULL;
    char *copy = mem_strdup(text);
    curl_free(text);
    return copy;
}

/* "host:port"; without the port if it is the scheme's default and default_port is 0. */
static char *host_and_port(CURLU *u, unsigned default_port)
{
    char *host = url_part(u, CURLUPART_HOST, 0), *port = url_part(u, CURLUPART_PORT, default_port);
    char *text = port ? mem_printf("%s:%s", host, port) : mem_strdup(host);
    free(host);
    free(port);
    return text;
}

static int parse_url(const char *url, CURLU *u, struct err *e)
{
    CURLUcode rc = curl_url_set(u, CURLUPART_URL, url, CURLU_PATH_AS_IS);
    if (rc != CURLUE_OK)
        return err_set(e, ERR_INVALID, "malformed URL: %s", curl_url_strerror(rc));
    char *scheme = url_part(u, CURLUPART_SCHEME, 0), *user = url_part(u, CURLUPART_USER, 0),
         *password = url_part(u, CURLUPART_PASSWORD, 0);
    int ret = 0;
    if (!str_eq(scheme, "http") && !str_eq(scheme, "https"))
        ret = err_set(e, ERR_INVALID, "the URL's scheme must be http or https, found %s", scheme);
    else if (user || password)
        ret = err_set(e, ERR_INVALID, "a URL must not carry a user name or password");
    free(scheme);
    free(user);
    free(password);
    return ret;
}

static void make_label(struct http_curl *c, const char *method, CURLU *u)
{
    char *scheme = url_part(u, CURLUPART_SCHEME, 0), *path = url_part(u, CURLUPART_PATH, 0);
    char *host = host_and_port(u, 0);
    snprintf(
        c->label, sizeof(c->label), "%s %s://%s%.128s", method, scheme, host, path ? path : "/");
    free(scheme);
    free(path);
    free(host);
}

static void add_header(struct http_curl *c, const char *line)
{
    c->headers = curl_slist_append(c->headers, line);
    assert(c->headers); /* out of memory */
}

static int add_headers(struct http_curl *c, const struct http_request *r, struct err *e)
{
    for (size_t i = 0; i < HTTP_HEADERS_MAX && r->headers[i]; i++) {
        const char *line = r->headers[i];
        if (!http_header_is_line(line))
            return err_set(
                e, ERR_INVALID, "request header %zu is not \"Name: value\" in one line", i + 1);
        /* curl drops a header without a value unless it ends in ';' */
        const char *value = strchr(line, ':') + 1;
        if (value[strspn(value, " \t")] == '\0') {
            char *empty = mem_printf("%.*s;", (int)(value - 1 - line), line);
            add_header(c, empty); /* empty value: nothing to wipe */
            free(empty);
        } else {
            add_header(c, line);
        }
    }
    if (!http_request_has_header(r, "Expect"))
        add_header(c, "Expect:");
    if (!http_request_has_header(r, "Content-Type"))
        add_header(c, "Content-Type:");
    return 0;
}

static const char *body_of(struct http_curl *c, const struct http_request *r)
{
    if (r->body_len == 0)
        return "";
    if (c->borrows_body)
        return r->body;
    buf_add(&c->body, r->body, r->body_len);
    return buf_str(&c->body);
}

static void set_method(struct http_curl *c, const struct http_request *r)
{
    bool wants_body = r->body_len > 0 || str_eq(r->method, "PUT") || str_eq(r->method, "POST");
    if (str_eq(r->method, "HEAD")) {
        SET(c, CURLOPT_NOBODY, 1L);
    } else if (wants_body) {
        SET(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_len);
        SET(c, CURLOPT_POSTFIELDS, body_of(c, r));
        SET(c, CURLOPT_CUSTOMREQUEST, r->method);
    } else {
        SET(c, CURLOPT_HTTPGET, 1L);
        SET(c, CURLOPT_CUSTOMREQUEST, r->method);
    }
}

static void set_blob(struct http_curl *c, CURLoption option, const char *pem)
{
    if (!pem)
        return;
    struct curl_blob blob = {.data = (void *)pem, .len = strlen(pem), .flags = CURL_BLOB_COPY};
    SET(c, option, &blob);
}

/* curl verifies and announces (SNI) the URL's host. So the URL gets the name that the certificate
 * must carry, while the connection and the Host header keep the real one. */
static void set_verify_name(struct http_curl *c, const struct http_request *r, CURLU *u)
{
    char *real = host_and_port(u, CURLU_DEFAULT_PORT), *host = host_and_port(u, 0);
    char *rule = mem_printf("::%s", real);
    c->connect_to = curl_slist_append(NULL, rule);
    assert(c->connect_to); /* out of memory */
    SET(c, CURLOPT_CONNECT_TO, c->connect_to);
    if (!http_request_has_header(r, "Host")) {
        char *line = mem_printf("Host: %s", host);
        add_header(c, line);
        free(line);
    }
    free(real);
    free(host);
    free(rule);
}

static int set_tls_and_url(
    struct http_curl *c, const struct http_request *r, CURLU *u, struct err *e)
{
    set_blob(c, CURLOPT_CAINFO_BLOB, r->tls.ca_pem);
    if (r->tls.ca_pem)
        SET(c, CURLOPT_CAPATH, NULL); /* else the system's directory would be trusted too */
    set_blob(c, CURLOPT_SSLCERT_BLOB, r->tls.cert_pem);
    set_blob(c, CURLOPT_SSLKEY_BLOB, r->tls.key_pem);
    SET(c, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
    if (!r->tls.verify_name) {
        SET(c, CURLOPT_URL, r->url);
        return 0;
    }
    set_verify_name(c, r, u);
    char *url = NULL;
    if (curl_url_set(u, CURLUPART_HOST, r->tls.verify_name, 0) != CURLUE_OK ||
        curl_url_get(u, CURLUPART_URL, &url, 0) != CURLUE_OK)
        return err_set(
            e, ERR_INVALID, "%s: \"%s\" is not a host name", c->label, r->tls.verify_name);
    SET(c, CURLOPT_URL, url);
    curl_free(url);
    return 0;
}

static void set_fixed(struct http_curl *c, const struct http_request *r)
{
    SET(c, CURLOPT_NOSIGNAL, 1L);
    SET(c, CURLOPT_QUICK_EXIT, 1L); /* do not wait for a DNS thread when a call ends */
    SET(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(c, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(c, CURLOPT_FOLLOWLOCATION, 0L);
    SET(c, CURLOPT_PATH_AS_IS, 1L);
    SET(c, CURLOPT_TCP_NODELAY, 1L);
    SET(c, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    SET(c, CURLOPT_OPENSOCKETDATA, c);
    SET(c, CURLOPT_FRESH_CONNECT, r->may_connect ? 1L : 0L);
    SET(c, CURLOPT_FORBID_REUSE, r->may_connect ? 1L : 0L);
    SET(c, CURLOPT_ERRORBUFFER, c->curl_error);
    SET(c, CURLOPT_WRITEFUNCTION, on_body);
    SET(c, CURLOPT_WRITEDATA, c);
    SET(c, CURLOPT_HEADERFUNCTION, on_header);
    SET(c, CURLOPT_HEADERDATA, c);
    SET(c, CURLOPT_CONNECTTIMEOUT_MS,
        (long)(r->connect_timeout_ms > 0 ? r->connect_timeout_ms : r->timeout_ms));
    if (!r->use_proxy)
        SET(c, CURLOPT_PROXY, "");
    if (r->unix_socket)
        SET(c, CURLOPT_UNIX_SOCKET_PATH, r->unix_socket);
}

int http_curl_init(struct http_curl *c, const struct http_request *r, struct err *e)
{
    assert(r->method && r->url && r->timeout_ms > 0 && r->max_reply_bytes > 0);
    assert(!r->tls.cert_pem == !r->tls.key_pem);
    CURLU *u = curl_url();
    if (c->easy)
        curl_easy_reset(c->easy);
    else
        c->easy = curl_easy_init();
    assert(u && c->easy); /* out of memory */
    c->max_reply_bytes = r->max_reply_bytes;
    c->may_connect = r->may_connect;
    c->may_connect_ctx = r->may_connect_ctx;
    int rc = parse_url(r->url, u, e);
    if (rc < 0) {
        err_wrap(e, "HTTP %s", r->method);
        goto out;
    }
    make_label(c, r->method, u);
    set_fixed(c, r);
    set_method(c, r);
    rc = add_headers(c, r, e);
    if (rc < 0) {
        err_wrap(e, "%s", c->label);
        goto out;
    }
    rc = set_tls_and_url(c, r, u, e);
    if (rc < 0)
        goto out;
    SET(c, CURLOPT_HTTPHEADER, c->headers);
out:
    curl_url_cleanup(u);
    return rc;
}

void http_curl_deinit(struct http_curl *c)
{
    curl_easy_cleanup(c->easy);
    for (struct curl_slist *h = c->headers; h; h = h->next)
        explicit_bzero(h->data, strlen(h->data));
    curl_slist_free_all(c->headers);
    buf_wipe(&c->body);
    curl_slist_free_all(c->connect_to);
    http_reply_deinit(&c->reply);
}

/* ---- The outcome ---- */

static enum err_kind kind_of(CURLcode code)
{
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
        return ERR_TIMEOUT;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR: /* the peer hung up during the handshake, or does not speak TLS */
        return ERR_UNAVAILABLE;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        return ERR_DENIED;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL: /* includes a reply that is not HTTP/1 */
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_WRITE_ERROR:
        return ERR_INVALID;
    default:
        return ERR_IO;
    }
}

/* A chain to a CA of the right name but with another key (a server that was reinstalled) fails in
 * OpenSSL's signature check. curl reports a failed connect; only its text distinguishes it from a
 * peer that hung up. */
static bool is_bad_signature(CURLcode code, const char *text)
{
    return code == CURLE_SSL_CONNECT_ERROR && strstr(text, "OpenSSL") && strstr(text, "error:") &&
           !strstr(text, "SSL routines");
}

int http_curl_result(struct http_curl *c, CURLcode code, struct err *e)
{
    assert(code != CURLE_OUT_OF_MEMORY);
    long status = 0;
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    c->reply.status = status < 100 || status > 599 ? 0 : (int)status;
    if (c->is_too_large)
        return err_set(e, ERR_INVALID, "%s: the reply is larger than the %zu bytes allowed",
            c->label, c->max_reply_bytes);
    if (is_bad_signature(code, c->curl_error))
        return err_set(e, ERR_DENIED,
            "%s: the server's certificate is not signed by the CA trusted here (%s)", c->label,
            c->curl_error);
    if (code != CURLE_OK)
        return err_set(e, kind_of(code), "%s: %s", c->label,
            c->curl_error[0] ? c->curl_error : curl_easy_strerror(code));
    if (!c->has_head) /* curl reports success for a reply without a complete head */
        return err_set(
            e, ERR_IO, "%s: the connection was closed in the middle of the reply's head", c->label);
    if (c->reply.status == 0)
        return err_set(
            e, ERR_INVALID, "%s: the reply's status %ld is not one of HTTP", c->label, status);
    return 0;
}
