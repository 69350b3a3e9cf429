/* SPDX-License-Identifier: Apache-2.0
 *
 * Targets of HTTP requests: no crash; an accepted one starts with '/' and holds its parameters.
 */
#include "base/mem.h"
#include "base/uv/http_target.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    char *raw = mem_strndup((const char *)data, n);
    struct http_target t;
    struct err e;
    if (http_target_parse(raw, &t, &e) == 0) {
        if (t.path[0] != '/' || t.n_query > HTTP_QUERY_MAX)
            abort();
        for (size_t i = 0; i < t.n_query; i++)
            if (!http_target_query(&t, t.query[i].name))
                abort();
        http_target_deinit(&t);
    } else if (e.kind != ERR_INVALID) {
        abort();
    }
    free(raw);
    return 0;
}
