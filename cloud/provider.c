/* SPDX-License-Identifier: Apache-2.0
 *
 * See provider.h.
 */
#include "cloud/provider.h"

#include "base/str.h"
#include "cloud/aws/aws.h"
#include "cloud/azure/azure.h"
#include "cloud/gcp/gcp.h"
#include "cloud/lambda/lambda.h"
#include "cloud/static/static.h"
#include <assert.h>

static const struct cloud_provider *const providers[] = {
    &aws_provider, &azure_provider, &gcp_provider, &lambda_provider, &static_provider};
const char *const cloud_provider_names[] = {"aws", "azure", "gcp", "lambda", "static", NULL};

const struct cloud_provider *cloud_provider_find(const char *name)
{
    for (size_t i = 0; i < sizeof(providers) / sizeof(*providers); i++)
        if (str_eq(providers[i]->name, name))
            return providers[i];
    return NULL;
}

const char *cloud_setup_get(const struct cloud_setup *s, const char *key)
{
    size_t i = 0;
    while (s->provider->settings[i].key && !str_eq(s->provider->settings[i].key, key))
        i++;
    assert(s->provider->settings[i].key);
    return s->values[i];
}
