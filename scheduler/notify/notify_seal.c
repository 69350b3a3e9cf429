/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/notify/notify_seal.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/core/model/types.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

void notify_sealer_init(struct notify_sealer *s, const char *secret)
{
    static const char what[] = "belay notify urls";
    unsigned char root[CRYPT_KEY_BYTES], key[CRYPT_KEY_BYTES];
    bool good = str_unhex(secret, root, sizeof(root));
    assert(good);
    (void)good;
    *s = (struct notify_sealer){0};
    crypt_derive(root, what, sizeof(what) - 1, key);
    crypt_add_bytes(&s->crypt, key);
    explicit_bzero(root, sizeof(root));
    explicit_bzero(key, sizeof(key));
}

void notify_sealer_wipe(struct notify_sealer *s)
{
    crypt_wipe(&s->crypt);
}

static char *bound_to(const char *user)
{
    return mem_printf("notify-url %s", user);
}

static char *seal(
    const struct notify_sealer *s, const char *user, const char *url, const char *host)
{
    size_t n = strlen(url);
    unsigned char *bytes = mem_alloc(n + CRYPT_MORE);
    char *what = bound_to(user);
    struct buf out = {0};
    memcpy(bytes, url, n);
    crypt_seal(&s->crypt.keys[0], what, bytes, n);
    buf_printf(&out, NOTIFY_SEALED "%s:", host);
    for (size_t i = 0; i < n + CRYPT_MORE; i++)
        buf_printf(&out, "%02x", bytes[i]);
    free(bytes);
    free(what);
    return buf_take(&out);
}

/* Returns the hex digits, or NULL if the text is not sealed. They follow the last colon, because a
 * host may be an IPv6 address. */
static const char *hex_of(const char *sealed)
{
    const char *last = str_starts(sealed, NOTIFY_SEALED) ? strrchr(sealed, ':') : NULL;
    size_t n = last ? strlen(last + 1) : 0;
    bool good = last && last > sealed + strlen(NOTIFY_SEALED) &&
                (size_t)(last - sealed) < strlen(NOTIFY_SEALED) + NOTIFY_HOST_MAX && n % 2 == 0 &&
                n > 2 * CRYPT_MORE && strlen(sealed) <= NOTIFY_SEALED_MAX &&
                strspn(last + 1, "0123456789abcdef") == n;
    return good ? last + 1 : NULL;
}

bool notify_sealed_host(const char *sealed, char ret_host[NOTIFY_HOST_MAX])
{
    const char *hex = hex_of(sealed);
    if (!hex)
        return false;
    size_t n = (size_t)(hex - 1 - sealed) - strlen(NOTIFY_SEALED);
    memcpy(ret_host, sealed + strlen(NOTIFY_SEALED), n);
    ret_host[n] = '\0';
    for (const char *p = ret_host; *p; p++)
        if (*p <= ' ' || *p >= 0x7f || strchr("\"\\<>", *p))
            return false;
    return true;
}

int notify_unseal(const struct notify_sealer *s, const char *user, const char *sealed,
    char **ret_url, struct err *e)
{
    const char *hex = hex_of(sealed);
    size_t n = hex ? strlen(hex) / 2 : 0, got = 0;
    struct err why;
    if (!hex)
        return err_set(e, ERR_INVALID, "a URL is not sealed");
    char *bytes = mem_alloc(n + 1), *what = bound_to(user);
    int rc = str_unhex(hex, bytes, n) ? crypt_open(&s->crypt.keys[0], what, bytes, n, &got, &why)
                                      : ERR_CORRUPT;
    free(what);
    if (rc != 0) {
        free(bytes);
        return err_set(e, ERR_INVALID,
            "a URL was sealed for another user, or with another database's secret: supply it "
            "again");
    }
    bytes[got] = '\0';
    *ret_url = bytes;
    return 0;
}

static int seal_one(const struct notify_sealer *s, const char *user, json_t *item, struct err *e)
{
    const char *text = json_string_value(item);
    char host[NOTIFY_HOST_MAX], *other;
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
    rc = notify_check_url(text, host, e);
    if (rc != 0)
        return rc;
    other = seal(s, user, text, host);
    json_string_set(item, other);
    free(other);
    return 0;
}

int notify_seal_spec(const struct notify_sealer *s, const char *user, json_t *spec, struct err *e)
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
