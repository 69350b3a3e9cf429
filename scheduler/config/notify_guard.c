/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/notify_guard.h"

#include "base/str.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#define V4_PREFIX "\0\0\0\0\0\0\0\0\0\0\xff\xff"

/* Refused in any configuration: "this network" (0.0.0.0/8), carrier-grade NAT (100.64.0.0/10),
 * link-local, multicast and reserved addresses, metadata services (168.63.129.16, 100.100.100.200,
 * 192.0.0.192, fd00:ec2::254, fd20:ce::254), and unused IPv6 forms that embed an IPv4 address
 * (Teredo, local-use NAT64; IPv4-compatible ones see is_never_allowed). */
static const char *const never[] = {"0.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "224.0.0.0/3",
    "168.63.129.16", "192.0.0.192", "::", "fe80::/10", "ff00::/8", "fd00:ec2::254", "fd20:ce::254",
    "2001::/32", "64:ff9b:1::/48"};

/* Refused unless the configuration allows a range that contains them: loopback, private networks,
 * test networks. */
static const char *const inside[] = {"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
    "192.0.0.0/24", "198.18.0.0/15", "::1", "fc00::/7", "fec0::/10"};

static int parse_range(const char *text, struct notify_allow *ret, struct err *e)
{
    char address[64];
    const char *slash = strchr(text, '/');
    size_t n = slash ? (size_t)(slash - text) : strlen(text);
    int64_t bits = -1;
    bool is_v4;
    struct notify_allow a = {0};
    if (n >= sizeof(address))
        return ERR_INVALID;
    memcpy(address, text, n);
    address[n] = '\0';
    is_v4 = inet_pton(AF_INET, address, a.bytes + 12) == 1;
    if (is_v4)
        memcpy(a.bytes, V4_PREFIX, 12);
    else if (inet_pton(AF_INET6, address, a.bytes) != 1)
        return ERR_INVALID;
    if (slash && str_to_i64(slash + 1, 0, is_v4 ? 32 : 128, "the bits of a range", &bits, e) != 0)
        return ERR_INVALID;
    a.bits = bits < 0 ? 128 : (int)bits + (is_v4 ? 96 : 0);
    *ret = a;
    return 0;
}

static bool is_host(const char *text)
{
    const char *name = str_starts(text, "*.") ? text + 2 : text;
    size_t n = strlen(name);
    return n > 0 && n < 62 && name[0] != '.' && name[0] != '-' &&
           strspn(name, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_") == n;
}

int notify_guard_add(struct notify_guard *g, const char *text, struct err *e)
{
    struct notify_allow a = {0};
    struct err why;
    if (g->n == NOTIFY_ALLOW_MAX)
        return err_set(e, ERR_INVALID, "at most %d hosts and ranges", NOTIFY_ALLOW_MAX);
    if (parse_range(text, &a, &why) != 0) {
        if (!is_host(text))
            return err_set(e, ERR_INVALID,
                "expected a host, as hooks.example.com or *.example.com, or a range, as "
                "10.0.0.0/8, found %s",
                str_show(text, (char[STR_SHOW_MAX]){0}));
        STR_COPY(a.host, text);
    }
    g->allow[g->n++] = a;
    return 0;
}

static bool is_in(const unsigned char address[16], const struct notify_allow *a)
{
    int whole = a->bits / 8, rest = a->bits % 8;
    if (memcmp(address, a->bytes, (size_t)whole) != 0)
        return false;
    return rest == 0 || ((address[whole] ^ a->bytes[whole]) >> (8 - rest)) == 0;
}

/* Replaces a NAT64 or 6to4 address by the IPv4 address that it leads to. */
static void unwrap(unsigned char a[16])
{
    static const unsigned char nat64[12] = {0x00, 0x64, 0xff, 0x9b};
    unsigned char v4[4];
    if (memcmp(a, nat64, 12) == 0)
        memcpy(v4, a + 12, 4);
    else if (a[0] == 0x20 && a[1] == 0x02)
        memcpy(v4, a + 2, 4);
    else
        return;
    memcpy(a, V4_PREFIX, 12);
    memcpy(a + 12, v4, 4);
}

static bool read_address(const struct sockaddr *s, unsigned char ret[16])
{
    if (s->sa_family == AF_INET) {
        memcpy(ret, V4_PREFIX, 12);
        memcpy(ret + 12, &((const struct sockaddr_in *)(const void *)s)->sin_addr, 4);
        return true;
    }
    if (s->sa_family != AF_INET6)
        return false;
    memcpy(ret, &((const struct sockaddr_in6 *)(const void *)s)->sin6_addr, 16);
    unwrap(ret);
    return true;
}

static bool is_among(const unsigned char address[16], const char *const *ranges, size_t n)
{
    struct notify_allow a;
    struct err e;
    for (size_t i = 0; i < n; i++)
        if (parse_range(ranges[i], &a, &e) == 0 && is_in(address, &a))
            return true;
    return false;
}

static bool is_loopback(const unsigned char address[16])
{
    static const char *const loopback[] = {"127.0.0.0/8", "::1"};
    return is_among(address, loopback, 2);
}

static bool is_never_allowed(const unsigned char address[16])
{
    static const char *const compatible[] = {"::/96"};
    return is_among(address, never, sizeof(never) / sizeof(never[0])) ||
           (is_among(address, compatible, 1) && !is_loopback(address));
}

static bool is_own(const unsigned char address[16], const struct notify_own *own)
{
    for (size_t i = 0; i < own->n; i++)
        if (memcmp(address, own->addresses[i], 16) == 0)
            return !is_loopback(address); /* loopback may be allowed by any range */
    return false;
}

void notify_own_add(struct notify_own *own, const struct sockaddr *address)
{
    if (own->n < NOTIFY_OWN_MAX && read_address(address, own->addresses[own->n]))
        own->n++;
    else if (own->n == NOTIFY_OWN_MAX)
        own->is_incomplete = true;
}

static bool is_named(const struct notify_allow *a, const char *host)
{
    size_t n = strlen(host), m = strlen(a->host);
    if (str_starts(a->host, "*."))
        return n > m - 1 && strcasecmp(host + n - (m - 1), a->host + 1) == 0;
    return strcasecmp(host, a->host) == 0;
}

bool notify_guard_allows(const struct notify_guard *g, const char *host,
    const struct sockaddr *address, const struct notify_own *own)
{
    unsigned char bytes[16];
    bool named = g->n == 0;
    if (own->is_incomplete || !read_address(address, bytes) || is_never_allowed(bytes))
        return false;
    bool mine = is_own(bytes, own);
    for (size_t i = 0; i < g->n; i++) {
        const struct notify_allow *a = &g->allow[i];
        if (a->host[0])
            named = named || is_named(a, host);
        else if (is_in(bytes, a) && (!mine || a->bits == 128))
            return true;
    }
    return named && !mine && !is_among(bytes, inside, sizeof(inside) / sizeof(inside[0]));
}
