/* SPDX-License-Identifier: Apache-2.0
 *
 * See imds.h.
 */
#include "cloud/azure/imds.h"
#include "base/mem.h"
#include "base/str.h"
#include <string.h>

int azure_imds_url(const char *given, char **ret_url, struct err *e)
{
    const char *url = given ? given : AZURE_IMDS_URL;
    const char *host = str_starts(url, "http://") ? url + strlen("http://") : "";
    size_t n = strlen(host);
    if (n > 0 && host[n - 1] == '/')
        n--;
    if (n == 0 || strcspn(host, "/?#@ \\") < n)
        return err_set(
            e, ERR_CONFIG, "metadata service \"%.128s\": expected a URL like " AZURE_IMDS_URL, url);
    *ret_url = mem_strndup(url, strlen("http://") + n);
    return 0;
}
