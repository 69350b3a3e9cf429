/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries that `belay` loads when it first calls them. Most of what it does is one call to a UNIX
 * socket, which base/uv/http_local.c makes. With libcurl, the thirty libraries behind it, OpenSSL
 * and SQLite linked, `belay list` takes 3.5 times the processor time; with all but libcurl linked,
 * 1.9 times (`scripts/bench startup`). NAME_late.c defines those functions of a library
 * that we use, and each calls the library's own. One that is missing there the linker takes from
 * the library as usual: nothing is wrong then but the time it takes, for which
 * tests/cli/test_late.py looks.
 *
 * A second program for all that needs these libraries would have been the other way; but stores,
 * keys and BELAY_SERVER are in the middle of verbs, not verbs of their own. belayd and the agent
 * need them always and are linked with them.
 */
#ifndef BELAY_CLI_LATE_H
#define BELAY_CLI_LATE_H

/* The library's function; ends the program with an error when it cannot be loaded. Keeps nothing:
 * the loader knows what it has loaded, and asking it takes less than a microsecond. */
void *late_find(const char *library, const char *name);

/* Before the library's header: #pragma GCC visibility push(hidden), or the library would call these
 * instead of its own. */
#define LATE_REAL(library, name) ((__typeof__(&name))late_find(library, #name))
#define LATE(library, type, name, params, args)                                                    \
    type name params                                                                               \
    {                                                                                              \
        return LATE_REAL(library, name) args;                                                      \
    }
#define LATE_VOID(library, name, params, args)                                                     \
    void name params                                                                               \
    {                                                                                              \
        LATE_REAL(library, name) args;                                                             \
    }

#endif
