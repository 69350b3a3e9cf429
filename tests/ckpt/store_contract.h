/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract of every object store (ckpt/store/store.h), as tests of an empty store. Each fails
 * the calling test.
 */
#ifndef BELAY_TESTS_CKPT_STORE_CONTRACT_H
#define BELAY_TESTS_CKPT_STORE_CONTRACT_H

#include "ckpt/store/store.h"

void contract_bytes_come_back(struct store *s);
void contract_a_name_is_created_once(struct store *s);
/* eight objects: more than fit a test server's page */
void contract_a_list_is_ordered(struct store *s);
/* Creates, lists and removes n objects, in as many removals as necessary; use n larger than a page,
 * which is 1000 on most servers. */
void contract_many_objects(struct store *s, int n);
void contract_remove_rename_link(struct store *s, bool can_link);
/* Saves, cleans and restores checkpoints of two attempts. arm may be NULL: it is called before each
 * and may make calls of the store fail that are then repeated. */
void contract_checkpoints(struct store *s, void (*arm)(void *ctx), void *ctx);

/* Helpers: checks that the object is this text; appends "name=size " to a struct buf, up to 1000
 * bytes; counts one entry in an int and stops. */
void assert_object(struct store *s, const char *name, const char *text);
int append_name(void *ctx, const char *name, int64_t size_bytes);
int stop_at_once(void *ctx, const char *name, int64_t size_bytes);

#endif
