/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries that `belay` loads at their first call. Most of its work is one call to a UNIX socket,
 * which base/uv/http_local.c makes. With libcurl, its thirty dependencies, OpenSSL and SQLite
 * linked, `belay list` takes 3.5 times the processor time; with all except libcurl linked, 1.9
 * times (`scripts/bench startup`). NAME_lazy.c defines the functions of a library that we use; each
 * calls the library's own. A function missing there is resolved by the linker as usual: it only
 * costs time, which tests/cli/test_lazy.py detects.
 *
 * The alternative is a second program for everything that needs these libraries; but stores, keys
 * and BELAY_SERVER are used in the middle of verbs. belayd and the agent always need them and are
 * linked with them.
 */
#ifndef BELAY_CLI_LAZY_H
#define BELAY_CLI_LAZY_H

/* Finds the library's function; ends the program with an error if it cannot be loaded. Nothing is
 * cached: the loader remembers loaded libraries, and a lookup takes less than a microsecond. */
void *lazy_find(const char *library, const char *name);

/* Before the library's header: #pragma GCC visibility push(hidden), or the library would call these
 * functions instead of its own. */
#define LAZY_REAL(library, name) ((__typeof__(&name))lazy_find(library, #name))
#define LAZY(library, type, name, params, args)                                                    \
    type name params                                                                               \
    {                                                                                              \
        return LAZY_REAL(library, name) args;                                                      \
    }
#define LAZY_VOID(library, name, params, args)                                                     \
    void name params                                                                               \
    {                                                                                              \
        LAZY_REAL(library, name) args;                                                             \
    }

#endif
