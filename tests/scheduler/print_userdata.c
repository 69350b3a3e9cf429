/* SPDX-License-Identifier: Apache-2.0
 *
 * print_userdata SERVER CA_FILE TOKEN BOOT_S [PROVIDER URL [ACCOUNT UID]]: prints the first-boot
 * script of a machine as belayd makes it; the provider's API and its metadata service are at URL.
 */
#include "base/fs.h"
#include "base/str.h"
#include "scheduler/config/run_as.h"
#include "scheduler/userdata.h"
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    struct userdata u = {.provider = "none", .orphan_s = 3600};
    struct buf ca = {0};
    struct new_account account = {0};
    struct err e = {0};
    if (argc < 5 || argc > 9 || argc % 2 == 0 || fs_read(argv[2], 65536, &ca, &e) != 0 ||
        str_to_i64(argv[4], 1, 86400, "BOOT_S", &u.boot_s, &e) != 0 ||
        (argc == 9 && str_to_i64(argv[8], 1, INT32_MAX, "UID", &account.uid, &e) != 0)) {
        fprintf(stderr, "print_userdata: %s\n",
            e.kind ? e.text : "expected SERVER CA_FILE TOKEN BOOT_S [PROVIDER URL [ACCOUNT UID]]");
        return 2;
    }
    u.server_url = argv[1];
    u.ca_pem = buf_str(&ca);
    u.token = argv[3];
    if (argc >= 7) {
        u.provider = argv[5];
        u.endpoint = u.metadata = argv[6];
    }
    if (argc == 9) {
        STR_COPY(account.name, argv[7]);
        u.accounts = &account;
        u.n_accounts = 1;
    }
    char *text = userdata_build(&u);
    fputs(text, stdout);
    free(text);
    buf_deinit(&ca);
    return 0;
}
