/* SPDX-License-Identifier: Apache-2.0 */
#include "base/net/smtp.h"

#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

struct source {
    const char *p;
    size_t left;
};

static size_t on_read(char *to, size_t size, size_t n, void *ctx)
{
    struct source *s = ctx;
    size_t most = size * n, part = s->left < most ? s->left : most;
    memcpy(to, s->p, part);
    s->p += part;
    s->left -= part;
    return part;
}

static bool is_loopback(const char *url)
{
    char *host = NULL;
    CURLU *u = curl_url();
    bool is = curl_url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
              (str_eq(host, "localhost") || str_starts(host, "127.") || str_eq(host, "[::1]"));
    curl_free(host);
    curl_url_cleanup(u);
    return is;
}

/* Sets the error, with the code of the server's last reply. The reply's text is not shown, because
 * it may contain anything. */
static int explain(CURL *c, CURLcode code, struct err *e)
{
    long answer = 0;
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &answer);
    enum err_kind kind =
        code == CURLE_OPERATION_TIMEDOUT                                       ? ERR_TIMEOUT
        : code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT  ? ERR_UNAVAILABLE
        : code == CURLE_LOGIN_DENIED || code == CURLE_PEER_FAILED_VERIFICATION ? ERR_DENIED
        : answer >= 550 && answer < 560 && code != CURLE_USE_SSL_FAILED        ? ERR_INVALID
                                                                               : ERR_IO;
    if (answer >= 400)
        return err_set(
            e, kind, "the mail server answered %ld: %s", answer, curl_easy_strerror(code));
    return err_set(e, kind, "the mail server: %s", curl_easy_strerror(code));
}

int smtp_send(const struct smtp_mail *m, struct err *e)
{
    CURL *c = curl_easy_init();
    struct source source = {m->text, m->len};
    struct curl_slist *to;
    char *from = mem_printf("<%s>", m->from), *rcpt = mem_printf("<%s>", m->to);
    assert(c); /* out of memory */
    to = curl_slist_append(NULL, rcpt);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    curl_easy_setopt(c, CURLOPT_PROXY, "");
    curl_easy_setopt(c, CURLOPT_URL, m->url);
    curl_easy_setopt(
        c, CURLOPT_USE_SSL, (long)(is_loopback(m->url) ? CURLUSESSL_TRY : CURLUSESSL_ALL));
    curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (m->ca_file)
        curl_easy_setopt(c, CURLOPT_CAINFO, m->ca_file);
    if (m->user)
        curl_easy_setopt(c, CURLOPT_USERNAME, m->user);
    if (m->password)
        curl_easy_setopt(c, CURLOPT_PASSWORD, m->password);
    curl_easy_setopt(c, CURLOPT_MAIL_FROM, from);
    curl_easy_setopt(c, CURLOPT_MAIL_RCPT, to);
    curl_easy_setopt(c, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(c, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(c, CURLOPT_READDATA, &source);
    curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)m->len);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)m->timeout_ms);
    CURLcode code = curl_easy_perform(c);
    int rc = code == CURLE_OK ? 0 : explain(c, code, e);
    curl_slist_free_all(to);
    curl_easy_cleanup(c);
    free(from);
    free(rcpt);
    return rc;
}
