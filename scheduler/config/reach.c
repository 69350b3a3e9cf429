/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/reach.h"

#include "base/str.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#define HOST_MAX 256

static bool is_loopback_v4(struct in_addr a)
{
    uint32_t first = ntohl(a.s_addr) >> 24;
    return first == 127 || first == 0;
}

bool reach_is_loopback(const char *host)
{
    char plain[HOST_MAX];
    struct in_addr v4;
    struct in6_addr v6;
    size_t n = strlen(host);
    if (n > 2 && host[0] == '[' && host[n - 1] == ']') {
        host++;
        n -= 2;
    }
    if (n >= sizeof(plain))
        return false;
    memcpy(plain, host, n);
    plain[n] = '\0';
    if (n > 0 && plain[n - 1] == '.')
        plain[--n] = '\0';
    if (strcasecmp(plain, "localhost") == 0 ||
        (n > 10 && strcasecmp(plain + n - 10, ".localhost") == 0))
        return true;
    if (inet_aton(plain, &v4)) /* also accepts 127.1 */
        return is_loopback_v4(v4);
    if (inet_pton(AF_INET6, plain, &v6) != 1)
        return false;
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
        memcpy(&v4, &v6.s6_addr[12], sizeof(v4));
        return is_loopback_v4(v4);
    }
    return IN6_IS_ADDR_LOOPBACK(&v6) || IN6_IS_ADDR_UNSPECIFIED(&v6);
}

/* url: SCHEME://HOST[:PORT][/PATH] */
static bool url_is_loopback(const char *url)
{
    char host[HOST_MAX];
    const char *from = strstr(url, "://");
    from = from ? from + 3 : url;
    size_t n = *from == '[' ? strcspn(from, "]") + 1 : strcspn(from, ":/?#");
    if (n >= sizeof(host))
        return false;
    memcpy(host, from, n);
    host[n] = '\0';
    return reach_is_loopback(host);
}

static bool is_real_cloud(const struct config_pool *p)
{
    return p->row.elastic && p->row.max_nodes > 0 && p->provider->offers != CLOUD_OFFERS_HOSTS &&
           !(p->endpoint && url_is_loopback(p->endpoint));
}

const char *reach_first_cloud(const struct config *pools)
{
    for (size_t i = 0; i < pools->n_pools; i++)
        if (is_real_cloud(&pools->pools[i]))
            return pools->pools[i].row.name;
    return NULL;
}

int reach_check(const struct config *base, const struct config *pools, struct err *e)
{
    bool any = str_eq(base->listen_host, "0.0.0.0") || str_eq(base->listen_host, "::");
    for (size_t i = 0; i < pools->n_pools; i++) {
        const struct config_pool *p = &pools->pools[i];
        if (!is_real_cloud(p))
            continue;
        if (base->server_url[0] && url_is_loopback(base->server_url))
            return err_set(e, ERR_CONFIG,
                "pool %s: machines of %s cannot reach belayd at %s, which is each of them itself: "
                "set server: to an address of this machine that they reach",
                p->row.name, p->row.provider, base->server_url);
        if (!any && reach_is_loopback(base->listen_host))
            return err_set(e, ERR_CONFIG,
                "pool %s: machines of %s cannot reach belayd, which listens at %s: set listen: to "
                "an address of this machine that they reach, as 0.0.0.0:7443",
                p->row.name, p->row.provider, base->listen_host);
    }
    return 0;
}
