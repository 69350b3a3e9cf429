/* SPDX-License-Identifier: Apache-2.0
 *
 * See member.h.
 */
#include "job/member.h"

#include "base/str.h"
#include <assert.h>
#include <inttypes.h>
#include <string.h>

_Static_assert(sizeof(enum market_wish) == sizeof(int32_t) && sizeof(enum script_on) == 4,
    "words are stored as numbers of 32 bits");

static const char *member(const struct job_attribute *a, const struct job_spec *s)
{
    return (const char *)s + a->at;
}

const struct job_attribute *job_member_row(size_t i)
{
    if (i < job_attributes_count)
        return &job_attributes[i];
    i -= job_attributes_count;
    return i < job_stored_count ? &job_stored[i] : NULL;
}

bool job_member_is_number(const struct job_attribute *a)
{
    return a->member_type == JOB_MEMBER_INT32 || a->member_type == JOB_MEMBER_INT64 ||
           a->member_type == JOB_MEMBER_WORD || a->member_type == JOB_MEMBER_MOMENT;
}

int64_t job_member_number(const struct job_attribute *a, const struct job_spec *s)
{
    int64_t n;
    int32_t small;
    assert(job_member_is_number(a));
    if (a->size == sizeof(n)) {
        memcpy(&n, member(a, s), sizeof(n));
        return n;
    }
    memcpy(&small, member(a, s), sizeof(small));
    return small;
}

void job_member_set_number(const struct job_attribute *a, struct job_spec *s, int64_t n)
{
    const int32_t small = (int32_t)n;
    char *at = (char *)s + a->at;
    assert(job_member_is_number(a) && (a->size == sizeof(n) || small == n));
    if (a->size == sizeof(n))
        memcpy(at, &n, sizeof(n));
    else
        memcpy(at, &small, sizeof(small));
}

bool job_member_truth(const struct job_attribute *a, const struct job_spec *s)
{
    return *(const bool *)member(a, s) != (a->member_type == JOB_MEMBER_NOT);
}

void job_member_set_truth(const struct job_attribute *a, struct job_spec *s, bool is_true)
{
    *(bool *)((char *)s + a->at) = is_true != (a->member_type == JOB_MEMBER_NOT);
}

const char *job_member_text(const struct job_attribute *a, const struct job_spec *s)
{
    assert(a->member_type == JOB_MEMBER_TEXT);
    return member(a, s);
}

void job_member_set_text(const struct job_attribute *a, struct job_spec *s, const char *text)
{
    const size_t n = strlen(text);
    char *at = (char *)s + a->at;
    assert(a->member_type == JOB_MEMBER_TEXT && n < a->size);
    memcpy(at, text, n);
    memset(at + n, 0, a->size - n);
}

bool job_member_is_equal(
    const struct job_attribute *a, const struct job_spec *s, const struct job_spec *other)
{
    return a->member_type == JOB_MEMBER_TEXT ? str_eq(member(a, s), member(a, other))
                                             : memcmp(member(a, s), member(a, other), a->size) == 0;
}

bool job_member_is_default(const struct job_attribute *a, const struct job_spec *s)
{
    return job_member_is_equal(a, s, &job_spec_default);
}

void job_spec_for_agent(const struct job_spec *s, struct job_spec *ret_spec)
{
    memset(ret_spec, 0, sizeof(*ret_spec));
    for (size_t i = 0; i < job_attributes_count; i++)
        if (job_attributes[i].wire)
            memcpy((char *)ret_spec + job_attributes[i].at, member(&job_attributes[i], s),
                job_attributes[i].size);
}

static int check_number(const struct job_attribute *a, const struct job_spec *s, struct err *e)
{
    const int64_t n = job_member_number(a, s);
    int64_t max = a->max;
    if (a->member_type == JOB_MEMBER_WORD)
        for (max = -1; a->words[max + 1];)
            max++;
    return n >= a->min && n <= max
               ? 0
               : err_set(e, ERR_INVALID, "%s: expected %" PRId64 " to %" PRId64 ", found %" PRId64,
                     a->name, a->min, max, n);
}

int job_spec_check(const struct job_spec *s, const struct job_spec *was, struct err *e)
{
    const struct job_attribute *a;
    int rc = 0;
    for (size_t i = 0; rc == 0 && (a = job_member_row(i)); i++)
        if (job_member_is_number(a) && !(a->masks & JOB_READ_APART) &&
            !job_member_is_default(a, s) && !(was && job_member_is_equal(a, s, was)))
            rc = check_number(a, s, e);
    return rc;
}
