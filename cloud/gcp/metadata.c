/* SPDX-License-Identifier: Apache-2.0
 *
 * See metadata.h.
 */
#include "cloud/gcp/metadata.h"
#include "base/str.h"

int gcp_metadata_check(const char *path, const struct http_reply *reply, struct err *e)
{
    if (!str_eq(http_reply_header(reply, "Metadata-Flavor"), "Google"))
        return err_set(e, reply->status >= 500 ? ERR_UNAVAILABLE : ERR_DENIED,
            "metadata %s: HTTP %d, not from Google's metadata service", path, reply->status);
    if (reply->status == 200)
        return 0;
    if (reply->status == 404)
        return err_set(e, ERR_NOT_FOUND, "metadata %s: not found", path);
    return err_set(e, reply->status == 403 ? ERR_DENIED : ERR_UNAVAILABLE, "metadata %s: HTTP %d",
        path, reply->status);
}
