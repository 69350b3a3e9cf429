/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the API's routes, a line each, for test_audit_log.py.
 */
#include "scheduler/api/api_private.h"

#include <stdio.h>

int main(void)
{
    const char *method, *path;
    enum right right;
    for (size_t i = 0; api_route(i, &method, &path, &right); i++)
        printf("%s %s\n", method, path);
    return 0;
}
