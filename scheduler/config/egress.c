/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/egress.h"

#include "base/str.h"
#include "cloud/catalogue.h"

int config_read_input_location(const char *text, struct input *ret_input, struct err *e)
{
    struct input in = *ret_input;
    struct egress unused;
    char shown[STR_SHOW_MAX];
    if (!input_parse_location(text, &in) ||
        (in.provider[0] &&
            !catalogue_egress(in.provider, &unused.to_region_uusd_gib, &unused.out_uusd_gib)))
        return err_set(e, ERR_INVALID,
            "expected the location of the input, aws/REGION, azure/REGION, gcp/REGION or store, "
            "found %s",
            str_show(text, shown));
    *ret_input = in;
    return 0;
}

struct egress config_egress(const char *provider)
{
    struct egress x = {0};
    catalogue_egress(provider, &x.to_region_uusd_gib, &x.out_uusd_gib);
    return x;
}

int64_t config_egress_uusd_gib(
    const char *provider, const char *region, const char *to_provider, const char *to_region)
{
    struct egress x = config_egress(provider);
    return egress_uusd_gib(&x, provider, region, to_provider, to_region);
}
