/* SPDX-License-Identifier: Apache-2.0
 *
 * The flags that name nodes (see directives_private.h). belayd checks whether they exist.
 */
#include "cli/flags/directives_private.h"

#include "base/fs.h"
#include "job/hosts.h"
#include <ctype.h>

#define NODEFILE_MAX (1 << 20)

static int set_nodes(
    const struct directive_context *c, const char *key, const char *list, struct err *e)
{
    char folded[HOSTS_TEXT_MAX];
    int rc = hosts_fold(list, folded, e);
    if (rc == 0 && !folded[0])
        rc = err_set(e, ERR_INVALID, "expected names of nodes, as n[1-3,7], found none");
    if (rc == 0)
        json_object_set_new(c->spec, key, json_string(folded));
    return rc;
}

int directive_nodelist(const struct directive_context *c, const char *value, struct err *e)
{
    if (strchr(value, '/')) /* as in Slurm */
        return directive_nodefile(c, value, e);
    int rc = set_nodes(c, "nodelist", value, e);
    if (rc == 0)
        json_object_set_new(c->spec, NODELIST_BY_SLURM, json_boolean(c->sbatch));
    return rc;
}

int directive_exclude(const struct directive_context *c, const char *value, struct err *e)
{
    return set_nodes(c, "exclude", value, e);
}

int directive_nodefile(const struct directive_context *c, const char *value, struct err *e)
{
    struct buf text = {0};
    int rc = fs_read(value, NODEFILE_MAX, &text, e);
    for (size_t i = 0; i < text.len; i++)
        if (isspace((unsigned char)text.data[i]))
            text.data[i] = ',';
    if (rc == 0 && memchr(text.data ? text.data : "", '\0', text.len))
        rc = err_set(e, ERR_INVALID, "%s contains a NUL byte: expected a file with names of nodes",
            SHOWN(value));
    if (rc == 0)
        rc = set_nodes(c, "nodelist", buf_str(&text), e);
    if (rc == 0)
        json_object_set_new(c->spec, NODELIST_BY_SLURM, json_boolean(c->sbatch));
    buf_deinit(&text);
    return rc;
}

int directives_finish_nodes(json_t *spec, struct err *e)
{
    const char *list = json_string_value(json_object_get(spec, "nodelist"));
    const json_t *given = json_object_get(spec, "nodes"),
                 *least = json_object_get(spec, "nodes_min");
    bool by_slurm = json_is_true(json_object_get(spec, NODELIST_BY_SLURM));
    int64_t n = 0, wanted = json_integer_value(least ? least : given);
    int rc = list ? hosts_check(list, &n, e) : 0;
    json_object_del(spec, NODELIST_BY_SLURM);
    if (rc || !list)
        return rc;
    if (wanted > n)
        return err_set(e, ERR_UNSUPPORTED,
            "--nodelist names %lld nodes, but --nodes is %lld: belay runs a job on the named nodes "
            "only",
            (long long)n, (long long)wanted);
    if (given || !by_slurm || n == 1)
        return 0;
    if (n > job_attribute_max("nodes"))
        return err_set(e, ERR_INVALID,
            "--nodelist names %lld nodes, and a job may have at most %lld: give a number with "
            "--nodes",
            (long long)n, (long long)job_attribute_max("nodes"));
    /* in Slurm a list of nodes means all of its nodes */
    json_object_set_new(spec, "nodes", json_integer(n));
    json_object_set_new(spec, NODES_BY_SLURM, json_true());
    return 0;
}
