/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/core/lifecycle/retry_counts.h"

#include "base/str.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include <inttypes.h>
#include <string.h>

#define WORD_MAX 32

/* ---- texts ---- */

int retries_parse_number(const char *text, int32_t *ret_n, struct err *e)
{
    int64_t n = RETRIES_UNLIMITED;
    if (!str_eq(text, "unlimited") && str_to_i64(text, 0, RETRIES_MAX, "how often", &n, e) != 0)
        return err_wrap(e, "expected a number or unlimited");
    *ret_n = n == 0 ? RETRIES_NEVER : (int32_t)n;
    return 0;
}

static int parse_retry_kind(const char *word, enum retry_kind *ret_kind, struct err *e)
{
    char shown[STR_SHOW_MAX];
    for (int k = 0; k < RETRY_KINDS; k++)
        if (str_eq(word, retry_kind_names[k])) {
            *ret_kind = (enum retry_kind)k;
            return 0;
        }
    return err_set(e, ERR_INVALID,
        "expected failed, timeout, node-lost, reclaimed, evicted or drained, found %s",
        str_show(word, shown));
}

/* "failed=2" */
static int parse_one(char *item, struct retries *r, struct err *e)
{
    char *eq = strchr(item, '='), shown[STR_SHOW_MAX];
    enum retry_kind kind;
    if (!eq)
        return err_set(e, ERR_INVALID, "expected END=N, found %s", str_show(item, shown));
    *eq = '\0';
    int rc = parse_retry_kind(item, &kind, e);
    if (rc == 0 && r->n[kind] != 0)
        rc = err_set(e, ERR_INVALID, "%s is given twice", item);
    if (rc == 0 && (rc = retries_parse_number(eq + 1, &r->n[kind], e)) != 0)
        err_wrap(e, "%s", item);
    return rc;
}

int retries_parse(const char *text, struct retries *ret_retries, struct err *e)
{
    struct retries r = {0};
    int rc = 0;
    while (rc == 0 && *text) {
        char item[WORD_MAX], shown[STR_SHOW_MAX];
        size_t n = strcspn(text, ",");
        if (n >= sizeof item)
            return err_set(e, ERR_INVALID, "expected END=N, found %s", str_show(text, shown));
        memcpy(item, text, n);
        item[n] = '\0';
        rc = parse_one(item, &r, e);
        text += n + (text[n] == ',');
    }
    if (rc == 0)
        *ret_retries = r;
    return rc;
}

void retries_format(const struct retries *r, char out[RETRIES_TEXT_MAX])
{
    size_t n = 0;
    out[0] = '\0';
    for (int k = 0; k < RETRY_KINDS; k++) {
        const char *comma = n > 0 ? "," : "";
        if (r->n[k] == 0 || r->n[k] == RETRIES_DEFAULT)
            continue;
        if (r->n[k] == RETRIES_UNLIMITED)
            text_format(
                out + n, RETRIES_TEXT_MAX - n, "%s%s=unlimited", comma, retry_kind_names[k]);
        else
            text_format(out + n, RETRIES_TEXT_MAX - n, "%s%s=%" PRId32, comma, retry_kind_names[k],
                r->n[k] == RETRIES_NEVER ? 0 : r->n[k]);
        n = strlen(out);
    }
}

/* ---- effective numbers ---- */

/* The number that a setting stands for; it must be set (not 0). */
static int32_t retries_of_setting(int32_t wish, int k)
{
    return wish == RETRIES_NEVER ? 0 : wish == RETRIES_DEFAULT ? retries_default.n[k] : wish;
}

int retries_resolve(const struct retries *job, const struct retries *pool,
    const struct retry_options *o, struct retries *ret_retries, struct err *e)
{
    struct retries r;
    for (int k = 0; k < RETRY_KINDS; k++) {
        int32_t wish = job->n[k] ? job->n[k] : pool && pool->n[k] ? pool->n[k] : o->defaults.n[k];
        int32_t most = o->max.n[k] ? retries_of_setting(o->max.n[k], k) : RETRIES_UNLIMITED;
        if (job->n[k] > most)
            return err_set(e, ERR_INVALID,
                "it requests more requeues after an end as %s than belayd's configuration allows, "
                "at most %" PRId32,
                retry_kind_names[k], most);
        r.n[k] = wish ? retries_of_setting(wish, k) : retries_default.n[k];
        r.n[k] = r.n[k] < most ? r.n[k] : most;
    }
    *ret_retries = r;
    return 0;
}

bool retries_are_none(const struct job_row *j)
{
    for (int k = 0; k < RETRY_KINDS; k++)
        if (j->spec.retries.n[k] > 0)
            return false;
    return true;
}

int32_t retries_left(const struct job_row *j, enum retry_kind kind)
{
    int32_t n = j->spec.retries.n[kind];
    return n == RETRIES_UNLIMITED ? n : j->used[kind] < n ? n - j->used[kind] : 0;
}

bool job_can_drain(const struct job_row *j)
{
    return j->spec.method != CKPT_NONE && retries_left(j, RETRY_DRAINED) > 0;
}
