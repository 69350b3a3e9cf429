/* SPDX-License-Identifier: Apache-2.0
 *
 * The images of criu that a checkpoint brings back: files.img, and after it remap-fpath.img. Names
 * within the limits, or an error and nothing else.
 */
#include "agent/criu/criu_images.h"
#include "fuzz/check.h"
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Where the second image begins: at the second time that one begins so. */
static size_t second_image(const uint8_t *data, size_t size)
{
    const uint8_t *at = size > 4 ? memmem(data + 1, size - 1, data, 4) : NULL;
    return at ? (size_t)(at - data) : size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct criu_created_list list;
    struct err e = {0};
    size_t first = second_image(data, size);
    memset(&list, CHECK_PATTERN, sizeof(list));
    int rc = criu_images_parse(
        (const char *)data, first, (const char *)data + first, size - first, &list, &e);
    if (rc == 0) {
        assert(list.n <= CRIU_CREATED_MAX);
        for (size_t i = 0; i < list.n; i++)
            assert(strlen(list.items[i].path) <= size + 1);
        criu_created_deinit(&list);
    } else {
        check_error(rc, &e);
        check_untouched(&list, sizeof(list));
    }
    return 0;
}
