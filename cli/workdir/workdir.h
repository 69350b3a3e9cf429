/* SPDX-License-Identifier: Apache-2.0
 *
 * --workdir upload: sends what is in a directory to belayd (ckpt/workdir.h), of its content only
 * what belayd does not have yet.
 *
 * In a git work tree that is what git would track: what it does, and what none of its ignore files
 * leaves out; elsewhere it is all. Of that, what .belayignore in the directory leaves out
 * (ignore.h) is not sent, nor is .git, unless .belayignore takes it back with "!.git". Links are
 * sent as links.
 */
#ifndef BELAY_CLI_WORKDIR_WORKDIR_H
#define BELAY_CLI_WORKDIR_WORKDIR_H

#include "ckpt/workdir.h"
#include "cli/cli.h"

/* What is to be told and is no error: a text for people. */
typedef void (*workdir_warn_fn)(void *ctx, const char *text);

/* Blocks until belayd has it durably. ERR_INVALID: it cannot be sent, or is too large, and the text
 * says what is; ERR_CONFLICT: it changed meanwhile; and what client_call tells. */
int workdir_upload(struct client *c, const char *dir, workdir_warn_fn warn, void *ctx,
    char ret_hash[CHUNK_HEX_SIZE], struct err *e);

#endif
