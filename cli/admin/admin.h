/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the actions of `belay admin`, for those who run belayd.
 */
#ifndef BELAY_CLI_ADMIN_ADMIN_H
#define BELAY_CLI_ADMIN_ADMIN_H

#include <stdbool.h>

struct admin_options {
    /* texts of the command line; NULL = not given */
    char *state, *config, *passphrase_file, *encrypt_to, *key_file, *since, *head;
    bool json, no_fence, dry_run;
};

#endif
