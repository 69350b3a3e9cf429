/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/admin/state.h"

#include "backup/backup.h"
#include "base/fs.h"
#include "base/mem.h"
#include "cli/cli.h"
#include <stdlib.h>

#define STATE_DEFAULT "/var/lib/belay"

char *admin_find_state(const char *given)
{
    char *home = cli_home(), *database = mem_printf("%s/" BACKUP_DATABASE, home);
    char *state = mem_strdup(given ? given : fs_exists(database) ? home : STATE_DEFAULT);
    free(database);
    free(home);
    return state;
}
