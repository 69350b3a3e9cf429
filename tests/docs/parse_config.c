/* SPDX-License-Identifier: Apache-2.0
 *
 * parse_config FILE: checks a configuration of belayd, without the checks that depend on the
 * machine: files and names. Like belayd: exit code 0, or 2 with the error.
 */
#include "base/fs.h"
#include "base/yaml.h"
#include "scheduler/config/checks.h"
#include <stdio.h>

int main(int argc, char **argv)
{
    struct buf text = {0};
    struct config c = {0};
    struct err e = {0};
    int rc = argc == 2 ? fs_read(argv[1], YAML_BYTES_MAX, &text, &e)
                       : err_set(&e, ERR_INVALID, "expected FILE");
    if (rc == 0)
        rc = config_parse(argv[1], buf_str(&text), text.len, NULL, &c, &e);
    if (rc == 0)
        rc = config_check_pools(&c, &e);
    if (rc != 0)
        fprintf(stderr, "belayd: %s\n", e.text);
    config_deinit(&c);
    buf_deinit(&text);
    return rc == 0 ? 0 : 2;
}
