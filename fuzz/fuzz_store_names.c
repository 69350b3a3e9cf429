/* SPDX-License-Identifier: Apache-2.0
 *
 * Names listed by a store, which anyone with write access can choose: a name parsed as a
 * checkpoint's or an attempt's is the name that we would generate for it.
 */
#include "base/mem.h"
#include "ckpt/store/layout.h"
#include "ckpt/store/store.h"
#include "fuzz/check.h"
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct ckpt_job job = {.cluster = "lab", .job = 7};
    char *text = mem_strndup((const char *)data, size), *whole;
    struct ckpt_id id;
    int64_t attempt;
    if (layout_parse_id(text, ".json", &id)) {
        whole = mem_printf("lab/jobs/7/manifests/%s", text);
        assert(str_eq(layout_manifest(&job, id).s, whole) && store_name_is_valid(whole));
        assert(layout_compare_ids(id, id) == 0 && id.attempt >= 1 && id.sequence >= 1);
        free(whole);
    }
    if (layout_parse_attempt(text, '\0', &attempt)) {
        whole = mem_printf("lab/jobs/7/fences/%s", text);
        assert(str_eq(layout_fence(&job, attempt).s, whole) && store_name_is_valid(whole));
        free(whole);
    }
    if (store_name_is_valid(text))
        assert(strlen(text) <= STORE_NAME_MAX && text[0] != '/' && !strstr(text, "//") &&
               !strstr(text, "/.") && text[0] != '.');
    free(text);
    return 0;
}
