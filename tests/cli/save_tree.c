/* SPDX-License-Identifier: Apache-2.0
 *
 * For test_checkpoints.py: save_tree STORE CLUSTER JOB ATTEMPT SEQUENCE DIR [KEYFILE] saves a
 * directory as a checkpoint, encrypted if there is a key file.
 */
#include "base/str.h"
#include "ckpt/ckpt.h"
#include "ckpt/master.h"
#include <stdio.h>

int main(int argc, char **argv)
{
    struct ckpt_job job = {0};
    struct ckpt_id id;
    struct ckpt_stats stats;
    struct err e;
    struct ckpt_crypt crypt = {0};
    struct master master;
    int rc;
    if (argc != 7 && argc != 8)
        return 2;
    job.cluster = argv[2];
    rc = str_to_i64(argv[3], 1, INT64_MAX, "job", &job.job, &e);
    if (!rc)
        rc = str_to_i64(argv[4], 1, CKPT_NUMBER_MAX, "attempt", &id.attempt, &e);
    if (!rc)
        rc = str_to_i64(argv[5], 1, CKPT_NUMBER_MAX, "sequence", &id.sequence, &e);
    if (!rc && argc == 8) {
        rc = master_read(argv[7], &master, &e);
        if (!rc) {
            master_job_crypt(&master, job.job, &crypt);
            crypt.encrypts = true;
            job.crypt = &crypt;
        }
    }
    if (!rc)
        rc = store_open(argv[1], NULL, &job.store, &e);
    if (!rc)
        rc = ckpt_save(&job, id, argv[6], 100 * id.sequence, NULL, &stats, &e);
    store_close(job.store);
    if (rc)
        fprintf(stderr, "save_tree: %s\n", e.text);
    return rc != 0;
}
