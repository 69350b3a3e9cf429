/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lazy.h"

#include "cli/cli.h"
#include <dlfcn.h>
#include <stdlib.h>

void *lazy_find(const char *library, const char *name)
{
    void *lib = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    void *f = lib ? dlsym(lib, name) : NULL;
    if (f)
        return f;
    cli_error("cannot load a library (%s): install the package that has %s", dlerror(), library);
    exit(CLI_FAILED);
}
