/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of a service principal.
 */
#include "cloud/azure/credentials.h"
#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct azure_principal p;
    struct err e = {0};
    int rc = azure_credentials_parse_file((const char *)data, size, &p, &e);
    if (rc == 0) {
        /* The tenant is put in a path, all of them in a form. */
        assert(p.tenant[0] && p.client_id[0] && p.secret[0]);
        assert(!strpbrk(p.tenant, "/?#%\\\r\n ") && p.tenant[0] != '.');
    } else {
        assert(rc == ERR_CONFIG && rc == (int)e.kind && e.text[0]);
    }
    return 0;
}
