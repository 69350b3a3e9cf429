/* SPDX-License-Identifier: Apache-2.0
 *
 * See downscope.h. Listing objects is not a request on an object, so the condition names the prefix
 * twice.
 */
#include "cloud/gcp/downscope.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

#define ROLE "inRole:roles/storage.objectUser" /* create, get, list, delete objects */

static json_t *make_options(const char *bucket, const char *prefix)
{
    char *resource = mem_printf("//storage.googleapis.com/projects/_/buckets/%s", bucket);
    char *condition = mem_printf(
        "resource.name.startsWith('projects/_/buckets/%s/objects/%s') || "
        "api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('%s')",
        bucket, prefix, prefix);
    json_t *options = json_pack("{s:{s:[{s:s, s:[s], s:{s:s}}]}}", "accessBoundary",
        "accessBoundaryRules", "availableResource", resource, "availablePermissions", ROLE,
        "availabilityCondition", "expression", condition);
    free(resource);
    free(condition);
    return options;
}

int gcp_downscope_build(
    const char *bucket, const char *prefix, const char *token, struct buf *out, struct err *e)
{
    json_t *options = make_options(bucket, prefix);
    char *text = json_dump_text(options);
    size_t n = strlen(text);
    int rc = 0;
    json_decref(options);
    if (n > GCP_BOUNDARY_MAX) {
        rc = err_set(e, ERR_INVALID,
            "the access boundary for %.100s has %zu characters and may have %d: shorten the "
            "store's prefix",
            prefix, n, GCP_BOUNDARY_MAX);
    } else {
        buf_adds(out, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange"
                      "&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token"
                      "&requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_"
                      "token&options=");
        str_url_encode(out, text, n);
        buf_adds(out, "&subject_token=");
        str_url_encode(out, token, strlen(token));
    }
    free(text);
    return rc;
}

int gcp_downscope_parse(int status, const char *body, size_t n, int64_t left_s,
    struct oauth_token *ret_token, struct err *e)
{
    struct oauth_token token;
    int rc = oauth_parse_exchange(status, body, n, left_s, &token, e);
    if (rc == 0) {
        *ret_token = token;
        if (left_s < token.expires_in_s)
            ret_token->expires_in_s = left_s;
    }
    explicit_bzero(&token, sizeof(token));
    return rc == 0 ? 0 : err_wrap(e, "exchanging belayd's token for one of the job's prefix");
}
