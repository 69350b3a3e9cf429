/* SPDX-License-Identifier: Apache-2.0
 *
 * Human-readable texts of bounded length. Truncation never splits a UTF-8 sequence.
 */
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"

#include "base/str.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Length of the n bytes at s, the start of a longer text, without a truncated last sequence. */
static size_t without_cut_sequence(const char *s, size_t n)
{
    size_t lead = n;
    while (lead > 0 && n - lead < 3 && ((unsigned char)s[lead - 1] & 0xC0) == 0x80)
        lead--;
    if (lead == 0 || ((unsigned char)s[lead - 1] & 0xC0) != 0xC0)
        return n;
    return str_utf8_len(s + lead - 1, n - lead + 1) > 0 ? n : lead - 1;
}

void text_vformat(char *out, size_t size, const char *fmt, va_list ap)
{
    int n = vsnprintf(out, size, fmt, ap);
    if (n >= 0 && (size_t)n >= size)
        out[without_cut_sequence(out, size - 1)] = 0;
}

void text_format(char *out, size_t size, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    text_vformat(out, size, fmt, ap);
    va_end(ap);
}

struct job_ref job_ref(const struct job_row *r)
{
    struct job_ref ref;
    if (r->array == CORE_ID_NONE)
        snprintf(ref.s, sizeof ref.s, "%" PRId64, r->id);
    else
        snprintf(ref.s, sizeof ref.s, "%" PRId64 "_%" PRId32, r->array, r->array_index);
    return ref;
}

struct job_ref job_ref_of(const struct model *m, int64_t job)
{
    const struct job *j = model_job(m, job);
    return job_ref(j ? &j->row : &(struct job_row){.id = job});
}

void job_ref_add(char *list, size_t size, struct job_ref ref)
{
    size_t n = strlen(list);
    if (n + 1 + strlen(ref.s) < size)
        snprintf(list + n, size - n, "%s%s", n > 0 ? "," : "", ref.s);
}

void text_origin(struct ckpt_ref from, int64_t progress, const char *begun, const char *resumed,
    char *out, size_t size)
{
    if (from.attempt == 0)
        text_format(out, size, "%s from the beginning", begun);
    else if (progress == PROGRESS_NONE)
        text_format(out, size, "%s from checkpoint %" PRId64 ".%" PRId64, resumed, from.attempt,
            from.sequence);
    else
        text_format(out, size, "%s at step %" PRId64 " from checkpoint %" PRId64 ".%" PRId64,
            resumed, progress, from.attempt, from.sequence);
}
