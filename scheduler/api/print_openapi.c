/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the OpenAPI document that belayd serves, for the Python client, which is made from it, and
 * for tests. Not installed.
 */
#include "scheduler/api/api_private.h"
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    char *text = openapi_text();
    int rc = puts(text) < 0 || fflush(stdout) != 0;
    free(text);
    return rc;
}
