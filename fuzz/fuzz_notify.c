/* SPDX-License-Identifier: Apache-2.0
 *
 * Notification settings from users and the configuration: addresses, URLs, hosts and ranges, sealed
 * texts. An accepted value cannot end a header, act as an option, or be displayed as something
 * else.
 */
#include "base/mem.h"
#include "fuzz/check.h"
#include "job/notify_address.h"
#include "scheduler/config/notify_guard.h"
#include "scheduler/notify/notify_seal.h"
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_plain(const char *text)
{
    for (const char *p = text; *p; p++)
        assert((unsigned char)*p > ' ' && (unsigned char)*p < 0x7f && !strchr("\"\\<>", *p));
}

static void address(const char *text)
{
    struct err e = {0};
    int rc = notify_check_address(text, &e);
    if (rc != 0) {
        check_error(rc, &e);
        return;
    }
    check_plain(text);
    assert(!strpbrk(text, "'`;|$&(){}[]*?!#,:"));
    assert(text[0] != '-' && text[0] != '@' && strlen(text) <= NOTIFY_ADDRESS_MAX);
}

static void url(const char *text)
{
    char host[NOTIFY_HOST_MAX];
    struct err e = {0};
    int rc = notify_check_url(text, host, &e);
    if (rc != 0) {
        check_error(rc, &e);
        return;
    }
    check_plain(text);
    check_plain(host);
    assert(host[0] && strlen(text) <= NOTIFY_URL_MAX && !strchr(host, '/') && !strchr(host, '@'));
}

static void range(const char *text)
{
    const struct sockaddr_in here = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct sockaddr_in metadata = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xa9fea9fe)};
    const struct notify_own own = {0};
    struct notify_guard g = {0};
    struct err e = {0};
    int rc = notify_guard_add(&g, text, &e);
    if (rc != 0) {
        check_error(rc, &e);
        assert(g.n == 0);
        return;
    }
    assert(g.n == 1 && g.allow[0].bits >= 0 && g.allow[0].bits <= 128);
    assert(!notify_guard_allows(&g, "a", (const struct sockaddr *)&metadata, &own));
    if (g.allow[0].host[0])
        assert(!notify_guard_allows(&g, "a", (const struct sockaddr *)&here, &own));
}

static void sealed(const char *text)
{
    const struct master m = {.cluster_uid = "0123456789abcdef", .n = 1};
    struct sealer *s = sealer_create(&m);
    char host[NOTIFY_HOST_MAX], *out;
    struct err e = {0};
    if (notify_sealed_host(text, host))
        check_plain(host);
    int rc = notify_unseal(s, "ann", text, &out, &e);
    assert(rc != 0); /* it was not sealed with this key */
    check_error(rc, &e);
    sealer_destroy(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const all[])(const char *text) = {address, url, range, sealed};
    if (size == 0)
        return 0;
    char *text = mem_strndup((const char *)data + 1, size - 1);
    all[data[0] % 4](text);
    free(text);
    return 0;
}
