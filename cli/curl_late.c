/* SPDX-License-Identifier: Apache-2.0
 *
 * libcurl, loaded when it is first called: most of what `belay` does is one call to a UNIX socket, which base/uv/http_local.c
 * makes, and loading libcurl with the thirty libraries that it is linked with takes longer than that. Each function of libcurl that
 * we use is defined here and calls libcurl's own. One that is missing here is taken from libcurl by the linker, as usual: nothing
 * is wrong then but the time it takes, for which tests/cli/test_late.py looks.
 *
 * A second program for all that needs libcurl would have been the other way; but stores, keys and BELAY_SERVER are in the middle
 * of verbs, not verbs of their own. belayd and the agent need libcurl always and are linked with it.
 */
#include "cli/cli.h"

#define CURL_DISABLE_TYPECHECK
#define curl_url_get curl_url_get_of_the_header /* whether it takes a const CURLU depends on the version */
#pragma GCC visibility push(hidden)             /* libcurl calls its own functions, not these */
#include <curl/curl.h>
#undef curl_url_get
CURLUcode curl_url_get(const CURLU *u, CURLUPart part, char **ret, unsigned flags);
#pragma GCC visibility pop
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>

#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

#define LIBCURL "libcurl.so.4"

/* Keeps nothing: the loader knows what it has loaded, and asking it takes less than a microsecond. */
static void *find(const char *name)
{
    void *lib = dlopen(LIBCURL, RTLD_LAZY | RTLD_LOCAL);
    void *f = lib ? dlsym(lib, name) : NULL;
    if (f)
        return f;
    cli_error("this needs libcurl, which cannot be loaded (%s): install it (Debian: libcurl4)", dlerror());
    exit(CLI_FAILED);
}

#define REAL(name) ((__typeof__(&name))find(#name))
#define LATE(type, name, params, args)                                                                       \
    type name params                                                                                         \
    {                                                                                                        \
        return REAL(name) args;                                                                              \
    }
#define LATE_VOID(name, params, args)                                                                        \
    void name params                                                                                         \
    {                                                                                                        \
        REAL(name) args;                                                                                     \
    }

/* clang-format off */
LATE(CURLcode, curl_global_init, (long flags), (flags))
LATE_VOID(curl_global_cleanup, (void), ())
LATE(curl_version_info_data *, curl_version_info, (CURLversion v), (v))
LATE_VOID(curl_free, (void *p), (p))

LATE(CURL *, curl_easy_init, (void), ())
LATE_VOID(curl_easy_cleanup, (CURL *easy), (easy))
LATE_VOID(curl_easy_reset, (CURL *easy), (easy))
LATE(const char *, curl_easy_strerror, (CURLcode code), (code))

LATE(CURLM *, curl_multi_init, (void), ())
LATE(CURLMcode, curl_multi_cleanup, (CURLM *m), (m))
LATE(CURLMcode, curl_multi_add_handle, (CURLM *m, CURL *easy), (m, easy))
LATE(CURLMcode, curl_multi_remove_handle, (CURLM *m, CURL *easy), (m, easy))
LATE(CURLMcode, curl_multi_assign, (CURLM *m, curl_socket_t fd, void *p), (m, fd, p))
LATE(CURLMsg *, curl_multi_info_read, (CURLM *m, int *n_left), (m, n_left))
LATE(CURLMcode, curl_multi_perform, (CURLM *m, int *n_running), (m, n_running))
LATE(CURLMcode, curl_multi_poll, (CURLM *m, struct curl_waitfd fds[], unsigned n, int ms, int *ret_n), (m, fds, n, ms, ret_n))
LATE(CURLMcode, curl_multi_socket_action, (CURLM *m, curl_socket_t fd, int what, int *n_running), (m, fd, what, n_running))

LATE(struct curl_slist *, curl_slist_append, (struct curl_slist *l, const char *text), (l, text))
LATE_VOID(curl_slist_free_all, (struct curl_slist *l), (l))

LATE(CURLU *, curl_url, (void), ())
LATE_VOID(curl_url_cleanup, (CURLU *u), (u))
LATE(CURLUcode, curl_url_get, (const CURLU *u, CURLUPart part, char **ret, unsigned flags), (u, part, ret, flags))
LATE(CURLUcode, curl_url_set, (CURLU *u, CURLUPart part, const char *text, unsigned flags), (u, part, text, flags))
LATE(const char *, curl_url_strerror, (CURLUcode code), (code))
/* clang-format on */

/* The type of an option's value is in its number, in ranges of CURLOPTTYPE_OBJECTPOINT. Those that are neither long nor curl_off_t are
 * pointers, and POSIX has those to functions passed like all others. */
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
        rc = REAL(curl_easy_setopt)(easy, option, va_arg(ap, long));
    else if (v == VALUE_OFF_T)
        rc = REAL(curl_easy_setopt)(easy, option, va_arg(ap, curl_off_t));
    else
        rc = REAL(curl_easy_setopt)(easy, option, va_arg(ap, void *));
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
        rc = REAL(curl_multi_setopt)(m, option, va_arg(ap, long));
    else if (v == VALUE_OFF_T)
        rc = REAL(curl_multi_setopt)(m, option, va_arg(ap, curl_off_t));
    else
        rc = REAL(curl_multi_setopt)(m, option, va_arg(ap, void *));
    va_end(ap);
    return rc;
}

CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
    va_list ap;
    va_start(ap, info);
    CURLcode rc = REAL(curl_easy_getinfo)(easy, info, va_arg(ap, void *));
    va_end(ap);
    return rc;
}
