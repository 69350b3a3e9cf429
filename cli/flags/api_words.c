/* SPDX-License-Identifier: Apache-2.0
 *
 * See api_words.h.
 */
#include "cli/flags/api_words.h"

#include "base/str.h"
#include "job/attributes.h"
#include <ctype.h>
#include <string.h>

#define MEMBER_MAX 80

/* Of an option with several flags the one that is named as the member: --pool, not --partition. */
static const struct job_attribute *row_of(const char *member)
{
    for (size_t i = 0; i < job_attributes_count; i++) {
        const struct job_attribute *a = &job_attributes[i];
        if (str_eq(a->name, member) && str_eq(a->flag, member))
            return a;
    }
    return job_attribute_by_name(member);
}

static const char *flag_of(const char *member)
{
    const struct job_attribute *a = row_of(member);
    return a ? a->flag : NULL;
}

static const char *key_of(const char *member)
{
    const struct job_attribute *a = row_of(member);
    return a ? a->key : NULL;
}

/* The options of belay cron for the members of an entry. */
static const char *cron_word(const char *member)
{
    static const char *const flags[][2] = {{"name", "--name"}, {"zone", "--tz"},
        {"gap", "--dst-gap"}, {"twice", "--dst-overlap"}, {"overlap", "--overlap"},
        {"catch_up", "--catch-up"}, {"catch_up_max", "--catch-up"}, {"schedule", "the schedule"}};
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (str_eq(member, flags[i][0]))
            return flags[i][1];
    return NULL;
}

static const struct {
    const char *object, *before;
    const char *(*word)(const char *member);
} objects[] = {{"spec.", "--", flag_of}, {"changes.", "", key_of}, {"cron.", "", cron_word}};

static size_t member_length(const char *p)
{
    size_t n = 0;
    while (islower((unsigned char)p[n]) || p[n] == '_' ||
           (p[n] == '.' && islower((unsigned char)p[n + 1])))
        n++;
    return n;
}

/* The length of what is replaced; 0 if nothing at p is. Of "launch.grace.ms" the part that has a
 * flag counts. */
static size_t replace(const char *p, struct buf *out)
{
    char member[MEMBER_MAX];
    for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
        if (!str_starts(p, objects[i].object))
            continue;
        size_t skip = strlen(objects[i].object), n = member_length(p + skip);
        if (n == 0 || n >= sizeof(member))
            return 0;
        memcpy(member, p + skip, n);
        member[n] = '\0';
        const char *word = objects[i].word(member);
        for (char *dot; !word && (dot = strrchr(member, '.')); word = objects[i].word(member))
            *dot = '\0';
        if (!word)
            return 0;
        buf_printf(out, "%s%s", objects[i].before, word);
        return skip + n;
    }
    return 0;
}

void api_words_to_flags(const char *text, struct buf *out)
{
    for (const char *p = text; *p;) {
        bool is_start = p == text || p[-1] == ' ' || p[-1] == '(';
        size_t n = is_start ? replace(p, out) : 0;
        if (n == 0)
            buf_addc(out, *p);
        p += n > 0 ? n : 1;
    }
    buf_adds(out, "");
}

/* How the option of the flag at p ("--pool: ...") was written; NULL if it was not. *ret_n: the
 * length of the flag. */
static const json_t *written_as(const char *p, const json_t *written, size_t *ret_n)
{
    char flag[MEMBER_MAX];
    size_t n = strspn(p, "-abcdefghijklmnopqrstuvwxyz");
    if (!str_starts(p, "--") || n < 3 || n - 2 >= sizeof(flag))
        return NULL;
    memcpy(flag, p + 2, n - 2);
    flag[n - 2] = '\0';
    const struct job_attribute *a = job_attribute_by_flag(flag);
    *ret_n = n;
    return a && a->name ? json_object_get(written, a->name) : NULL;
}

void api_words_as_written(const char *text, const json_t *written, struct buf *out)
{
    for (const char *p = text; *p;) {
        size_t n = 0;
        bool is_start = p == text || p[-1] == ' ' || p[-1] == '(';
        const json_t *as = is_start ? written_as(p, written, &n) : NULL;
        const char *place = p == text ? json_string_value(json_array_get(as, 1)) : NULL;
        if (place)
            buf_printf(out, "%s: ", place);
        if (as)
            buf_adds(out, json_string_value(json_array_get(as, 0)));
        else
            buf_addc(out, *p);
        p += as ? n : 1;
    }
    buf_adds(out, "");
}
