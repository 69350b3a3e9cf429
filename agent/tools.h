/* SPDX-License-Identifier: Apache-2.0
 *
 * Where jobs find `belay` and the package belay of Python: next to our own executable, installed or
 * in a build tree.
 */
#ifndef BELAY_AGENT_TOOLS_H
#define BELAY_AGENT_TOOLS_H

struct tools {
    char *bin;    /* the directory of `belay`; NULL if not found */
    char *python; /* the directory of the package, for PYTHONPATH; NULL if not found */
};

void tools_find(struct tools *ret_tools);
void tools_deinit(struct tools *t);

#endif
