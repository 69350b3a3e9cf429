/* SPDX-License-Identifier: Apache-2.0
 *
 * See endpoint.h.
 */
#include "cloud/endpoint.h"

#include "base/mem.h"
#include "base/str.h"
#include <string.h>

/* Characters of a host name, an address and a port. */
static const char host_bytes[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:[]";

/* True for 127.x.y.z, [::1] and localhost, with or without a port. */
static bool is_loopback(const char *host, size_t n)
{
    char name[64];
    if (n >= sizeof(name))
        return false;
    memcpy(name, host, n);
    name[n] = '\0';
    if (str_starts(name, "["))
        return str_eq(name, "[::1]") || str_starts(name, "[::1]:");
    name[strcspn(name, ":")] = '\0';
    return str_eq(name, "localhost") ||
           (str_starts(name, "127.") && strspn(name, "0123456789.") == strlen(name));
}

int cloud_endpoint(const char *provider, const char *url, char **ret_url, struct err *e)
{
    bool https = str_starts(url, "https://");
    if (!https && !str_starts(url, "http://"))
        return err_set(
            e, ERR_CONFIG, "%s endpoint \"%.128s\": expected https://HOST[:PORT]/", provider, url);
    const char *host = strstr(url, "://") + 3;
    size_t n = strcspn(host, "/");
    if (n == 0 || n > 255 || strspn(host, host_bytes) < n || (host[n] && !str_eq(host + n, "/")))
        return err_set(e, ERR_CONFIG, "%s endpoint \"%.128s\": expected nothing after the host",
            provider, url);
    if (!https && !is_loopback(host, n))
        return err_set(e, ERR_CONFIG,
            "%s endpoint \"%.128s\": plain http would expose requests to the network; use https:// "
            "(http:// is allowed only for this machine)",
            provider, url);
    *ret_url = mem_strndup(url, (size_t)(host - url) + n);
    return 0;
}

int cloud_metadata(const char *usual, const char *url, char **ret_url, struct err *e)
{
    if (!url)
        url = usual;
    const char *host = str_starts(url, "http://") ? url + strlen("http://") : "";
    size_t n = strlen(host);
    if (n > 0 && host[n - 1] == '/')
        n--;
    if (n == 0 || strspn(host, host_bytes) < n)
        return err_set(
            e, ERR_CONFIG, "metadata service \"%.128s\": expected a URL like %s", url, usual);
    *ret_url = mem_strndup(url, strlen("http://") + n);
    return 0;
}

void cloud_endpoint_host(const char *endpoint, char *out, size_t size)
{
    bool https = str_starts(endpoint, "https://");
    str_copy(out, size, strstr(endpoint, "://") + 3);
    if (str_ends(out, https ? ":443" : ":80"))
        *strrchr(out, ':') = '\0';
}
