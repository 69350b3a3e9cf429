/* SPDX-License-Identifier: Apache-2.0
 *
 * For a process whose JSON has secrets: jansson overwrites its memory before it frees it. Its
 * parser and its dumper make copies of texts that no caller can reach.
 */
#ifndef BELAY_BASE_JSON_MEMORY_H
#define BELAY_BASE_JSON_MEMORY_H

/* Call first in main, before any JSON. Costs a memset of what is freed. */
void json_memory_wipe_freed(void);

#endif
