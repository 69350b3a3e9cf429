/* SPDX-License-Identifier: Apache-2.0
 *
 * What every store of objects promises (ckpt/store/store.h), as tests of an empty one. Each fails
 * the test that calls it.
 */
#ifndef BELAY_TESTS_CKPT_STORE_CONTRACT_H
#define BELAY_TESTS_CKPT_STORE_CONTRACT_H

#include "ckpt/store/store.h"

void contract_bytes_come_back(struct store *s);
void contract_a_name_is_created_once(struct store *s);
/* eight objects: more than a server's page should hold */
void contract_a_list_is_ordered(struct store *s);
/* n are made, listed and removed, in as many removals as that takes; n beyond a page, which is 1000
 * at most servers. */
void contract_many_objects(struct store *s, int n);
void contract_remove_rename_link(struct store *s, bool can_link);

/* For further tests: is the object this text?; "name=size " appended to a struct buf, until that
 * holds 1000 bytes; one counted in an int, no more. */
void assert_object(struct store *s, const char *name, const char *text);
int append_name(void *ctx, const char *name, int64_t size_bytes);
int stop_at_once(void *ctx, const char *name, int64_t size_bytes);

#endif
