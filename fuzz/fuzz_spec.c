/* SPDX-License-Identifier: Apache-2.0
 *
 * A job's spec as JSON: values in their ranges that, written out again, are read as the same; or an
 * error, and nothing else.
 */
#include "fuzz/check.h"
#include "job/spec_json.h"
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(const struct job_spec *s)
{
    struct job_spec again = job_spec_default;
    struct err e;
    json_t *o = job_spec_to_json(s, 0), *shown = json_object();
    job_spec_show(s, shown);
    if (o) {
        int rc = job_spec_from_json(o, 0, &again, &e);
        assert(rc == 0);
        (void)rc;
    }
    json_t *o2 = job_spec_to_json(&again, 0);
    assert(o ? json_equal(o, o2) : !o2);
    json_decref(o);
    json_decref(o2);
    json_decref(shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct job_spec s;
    struct err e = {0};
    json_t *v;
    if (json_parse((const char *)data, size, 1 << 20, &v, &e) != 0)
        return 0;
    memset(&s, CHECK_PATTERN, sizeof(s));
    int rc = job_spec_from_json(v, 0, &s, &e);
    json_decref(v);
    if (rc == 0) {
        assert(s.need.cpus >= 1 && s.need.cpus <= 4096 && s.nodes >= 1 && s.ckpt_keep >= 1);
        round_trip(&s);
    } else {
        check_error(rc, &e);
        check_untouched(&s, sizeof(s));
    }
    return 0;
}
