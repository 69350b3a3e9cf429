/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/notify/notify_seal.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/core/model/types.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static char *bound_to(const char *user)
{
    return mem_printf("notify-url %s", user);
}

int notify_seal_url(
    const struct sealer *s, const char *user, const char *url, char **ret_sealed, struct err *e)
{
    char host[NOTIFY_HOST_MAX];
    int rc = notify_check_url(url, host, e);
    if (rc != 0)
        return rc;
    char *what = bound_to(user), *sealed = seal(s, what, url, strlen(url));
    *ret_sealed = mem_printf(NOTIFY_SEALED "%s:%s", host, sealed);
    free(what);
    free(sealed);
    return 0;
}

/* Returns the sealed part, or NULL if the text is not sealed. It follows the last colon, because a
 * host may be an IPv6 address. */
static const char *sealed_part(const char *sealed)
{
    const char *last = str_starts(sealed, NOTIFY_SEALED) ? strrchr(sealed, ':') : NULL;
    bool good = last && last > sealed + strlen(NOTIFY_SEALED) &&
                (size_t)(last - sealed) < strlen(NOTIFY_SEALED) + NOTIFY_HOST_MAX &&
                strlen(sealed) <= NOTIFY_SEALED_MAX && seal_is_sealed(last + 1);
    return good ? last + 1 : NULL;
}

bool notify_sealed_host(const char *sealed, char ret_host[NOTIFY_HOST_MAX])
{
    const char *part = sealed_part(sealed);
    if (!part)
        return false;
    size_t n = (size_t)(part - 1 - sealed) - strlen(NOTIFY_SEALED);
    memcpy(ret_host, sealed + strlen(NOTIFY_SEALED), n);
    ret_host[n] = '\0';
    for (const char *p = ret_host; *p; p++)
        if (*p <= ' ' || *p >= 0x7f || strchr("\"\\<>", *p))
            return false;
    return true;
}

int notify_unseal(
    const struct sealer *s, const char *user, const char *sealed, char **ret_url, struct err *e)
{
    const char *part = sealed_part(sealed);
    struct buf url = {0};
    struct err why;
    if (!part)
        return err_set(e, ERR_INVALID, "a URL is not sealed");
    char *what = bound_to(user);
    int rc = seal_open(s, what, part, &url, &why);
    free(what);
    if (rc != 0) {
        buf_wipe(&url);
        return err_set(e, ERR_INVALID,
            "a URL was sealed for another user, or with a key that the key file of the database "
            "lacks: supply it again");
    }
    *ret_url = buf_take(&url);
    return 0;
}

static int seal_one(const struct sealer *s, const char *user, json_t *item, struct err *e)
{
    const char *text = json_string_value(item);
    char *other;
    int rc;
    if (!text)
        return 0;
    if (str_starts(text, NOTIFY_SEALED)) {
        rc = notify_unseal(s, user, text, &other, e);
        if (rc == 0) {
            explicit_bzero(other, strlen(other));
            free(other);
        }
        return rc;
    }
    rc = notify_seal_url(s, user, text, &other, e);
    if (rc != 0)
        return rc;
    json_string_set(item, other);
    free(other);
    return 0;
}

int notify_seal_spec(const struct sealer *s, const char *user, json_t *spec, struct err *e)
{
    json_t *urls = json_object_get(json_object_get(spec, "notify"), "urls"), *item;
    size_t i;
    json_array_foreach(urls, i, item)
    {
        int rc = i < NOTIFY_URLS_MAX ? seal_one(s, user, item, e) : 0;
        if (rc != 0)
            return err_wrap(e, "spec.notify.urls");
    }
    return 0;
}
