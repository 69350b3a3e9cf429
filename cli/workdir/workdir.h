/* SPDX-License-Identifier: Apache-2.0
 *
 * --workdir upload: sends the content of a directory to belayd (ckpt/workdir.h), transferring only
 * what belayd does not have yet.
 *
 * In a git work tree it sends what git would track: tracked files, and files not excluded by git's
 * ignore files; elsewhere everything. Files excluded by .belayignore in the directory (ignore.h)
 * are not sent, nor is .git, unless .belayignore re-includes it with "!.git". Links are sent as
 * links.
 */
#ifndef BELAY_CLI_WORKDIR_WORKDIR_H
#define BELAY_CLI_WORKDIR_WORKDIR_H

#include "ckpt/workdir.h"
#include "cli/cli.h"

/* Receives warnings for people. */
typedef void (*workdir_warn_fn)(void *ctx, const char *text);

/* Blocks until belayd has stored the directory durably. ERR_INVALID: it cannot be sent, or is too
 * large, with the reason; ERR_CONFLICT: it changed meanwhile; and the errors of client_call. */
int workdir_upload(struct client *c, const char *dir, workdir_warn_fn warn, void *ctx,
    char ret_hash[CHUNK_HEX_SIZE], struct err *e);

#endif
