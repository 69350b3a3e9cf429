/* SPDX-License-Identifier: Apache-2.0
 *
 * libcurl, loaded at its first call (cli/lazy.h).
 */
#include "cli/lazy.h"

#define CURL_DISABLE_TYPECHECK
/* whether it takes a const CURLU depends on the version */
#define curl_url_get curl_url_get_of_the_header
#pragma GCC visibility push(hidden)
#include <curl/curl.h>
#undef curl_url_get
CURLUcode curl_url_get(const CURLU *u, CURLUPart part, char **ret, unsigned flags);
#pragma GCC visibility pop
#include <stdarg.h>

#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

#define LIBCURL "libcurl.so.4"
#define RETURNS(type, name, params, args) LAZY(LIBCURL, type, name, params, args)
#define VOID(name, params, args) LAZY_VOID(LIBCURL, name, params, args)

/* clang-format off */
RETURNS(CURLcode, curl_global_init, (long flags), (flags))
VOID(curl_global_cleanup, (void), ())
RETURNS(curl_version_info_data *, curl_version_info, (CURLversion v), (v))
VOID(curl_free, (void *p), (p))

RETURNS(CURL *, curl_easy_init, (void), ())
VOID(curl_easy_cleanup, (CURL *easy), (easy))
VOID(curl_easy_reset, (CURL *easy), (easy))
RETURNS(const char *, curl_easy_strerror, (CURLcode code), (code))

RETURNS(CURLM *, curl_multi_init, (void), ())
RETURNS(CURLMcode, curl_multi_cleanup, (CURLM *m), (m))
RETURNS(CURLMcode, curl_multi_add_handle, (CURLM *m, CURL *easy), (m, easy))
RETURNS(CURLMcode, curl_multi_remove_handle, (CURLM *m, CURL *easy), (m, easy))
RETURNS(CURLMcode, curl_multi_assign, (CURLM *m, curl_socket_t fd, void *p), (m, fd, p))
RETURNS(CURLMsg *, curl_multi_info_read, (CURLM *m, int *n_left), (m, n_left))
RETURNS(CURLMcode, curl_multi_perform, (CURLM *m, int *n_running), (m, n_running))
RETURNS(CURLMcode, curl_multi_poll,
    (CURLM *m, struct curl_waitfd fds[], unsigned n, int ms, int *ret_n), (m, fds, n, ms, ret_n))
RETURNS(CURLMcode, curl_multi_socket_action,
    (CURLM *m, curl_socket_t fd, int what, int *n_running), (m, fd, what, n_running))

RETURNS(struct curl_slist *, curl_slist_append, (struct curl_slist *l, const char *text), (l, text))
VOID(curl_slist_free_all, (struct curl_slist *l), (l))

RETURNS(CURLU *, curl_url, (void), ())
VOID(curl_url_cleanup, (CURLU *u), (u))
RETURNS(CURLUcode, curl_url_get,
    (const CURLU *u, CURLUPart part, char **ret, unsigned flags), (u, part, ret, flags))
RETURNS(CURLUcode, curl_url_set,
    (CURLU *u, CURLUPart part, const char *text, unsigned flags), (u, part, text, flags))
RETURNS(const char *, curl_url_strerror, (CURLUcode code), (code))
/* clang-format on */

/* An option's number encodes the type of its value, in ranges of CURLOPTTYPE_OBJECTPOINT. Values
 * that are neither long nor curl_off_t are pointers; POSIX requires that function pointers are
 * passed the same way. */
enum value { VALUE_LONG, VALUE_OFF_T, VALUE_POINTER };

static enum value value_of(int option)
{
    int range = option / CURLOPTTYPE_OBJECTPOINT;
    return range == CURLOPTTYPE_LONG / CURLOPTTYPE_OBJECTPOINT    ? VALUE_LONG
           : range == CURLOPTTYPE_OFF_T / CURLOPTTYPE_OBJECTPOINT ? VALUE_OFF_T
                                                                  : VALUE_POINTER;
}

CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
    enum value v = value_of(option);
    CURLcode rc;
    va_list ap;
    va_start(ap, option);
    if (v == VALUE_LONG)
        rc = LAZY_REAL(LIBCURL, curl_easy_setopt)(easy, option, va_arg(ap, long));
    else if (v == VALUE_OFF_T)
        rc = LAZY_REAL(LIBCURL, curl_easy_setopt)(easy, option, va_arg(ap, curl_off_t));
    else
        rc = LAZY_REAL(LIBCURL, curl_easy_setopt)(easy, option, va_arg(ap, void *));
    va_end(ap);
    return rc;
}

CURLMcode curl_multi_setopt(CURLM *m, CURLMoption option, ...)
{
    enum value v = value_of(option);
    CURLMcode rc;
    va_list ap;
    va_start(ap, option);
    if (v == VALUE_LONG)
        rc = LAZY_REAL(LIBCURL, curl_multi_setopt)(m, option, va_arg(ap, long));
    else if (v == VALUE_OFF_T)
        rc = LAZY_REAL(LIBCURL, curl_multi_setopt)(m, option, va_arg(ap, curl_off_t));
    else
        rc = LAZY_REAL(LIBCURL, curl_multi_setopt)(m, option, va_arg(ap, void *));
    va_end(ap);
    return rc;
}

CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
    va_list ap;
    va_start(ap, info);
    CURLcode rc = LAZY_REAL(LIBCURL, curl_easy_getinfo)(easy, info, va_arg(ap, void *));
    va_end(ap);
    return rc;
}
