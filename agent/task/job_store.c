/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/task/job_store.h"

#include "ckpt/s3.h"
#include "ckpt/store/marker.h"

static int take_keys(const struct wire_secrets *s, struct ckpt_crypt *c, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->n_checkpoint_keys; i++)
        rc = crypt_add(c, s->checkpoint_keys[i], e);
    if (rc == 0 && s->encrypts && c->n == 0)
        rc = err_set(e, ERR_INVALID, "checkpoints must be encrypted, but there is no key");
    c->encrypts = s->encrypts;
    c->refuses_plain = s->refuses_plain;
    return rc ? err_wrap(e, "belayd's keys of this job's checkpoints") : 0;
}

/* A directory must prove that it is the store, because unmounted it is a local disk. A bucket is
 * identified by its name, and a job's credentials cannot read the marker: there only the job's
 * identity is checked (ckpt_begin), and a new owner of the bucket is not noticed (marker.h). */
static bool has_marker(const struct job_store_of *of)
{
    return *of->uid && !s3_location_is_one(of->url, NULL);
}

/* Once belayd has created the store (it has a uid), a missing directory is an error, and not
 * created. */
static int open_store(const struct job_store_of *of, struct store **ret_store,
    enum task_store *ret_fault, struct err *e)
{
    const struct store_options o = {
        .net = of->net, .cancel = of->cancel, .existing = *of->uid != '\0', .pulse = of->pulse};
    struct store *store;
    int rc = store_open(of->url, &o, &store, e);
    if (rc) {
        *ret_fault = rc == ERR_NOT_FOUND ? STORE_IS_MISSING : STORE_IS_FINE;
        return rc;
    }
    if (has_marker(of))
        rc = marker_check(store, of->cluster, of->uid, e);
    if (rc == ERR_NOT_FOUND || rc == ERR_DENIED)
        *ret_fault = rc == ERR_DENIED ? STORE_IS_ANOTHER : STORE_IS_MISSING;
    if (rc) {
        store_close(store);
        return err_wrap(e, "the store %.100s", of->url);
    }
    *ret_store = store;
    return 0;
}

int job_store_open(const struct job_store_of *of, struct job_store *ret_store,
    enum task_store *ret_fault, struct err *e)
{
    struct job_store *s = ret_store;
    *s = (struct job_store){0};
    int rc = open_store(of, &s->store, ret_fault, e);
    if (rc)
        return rc;
    s->job = (struct ckpt_job){.store = s->store,
        .cluster = of->cluster,
        .job = of->job,
        .crypt = &s->crypt,
        .owner = has_marker(of) ? of->uid : NULL};
    rc = take_keys(of->secrets, &s->crypt, e);
    if (rc)
        job_store_close(s);
    return rc;
}

void job_store_close(struct job_store *s)
{
    crypt_wipe(&s->crypt);
    store_close(s->store);
    s->store = NULL;
}
