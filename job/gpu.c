/* SPDX-License-Identifier: Apache-2.0 */
#include "job/gpu.h"

#include "base/str.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

#define SEPARATORS " \t-_"

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words && !str_eq(*words, word))
        words++;
    return *words != NULL;
}

/* The next word in lower case; false if there is none or it has other characters. */
static bool next_word(const char **p, char out[GPU_MODEL_MAX])
{
    size_t n = 0;
    *p += strspn(*p, SEPARATORS);
    for (; **p && !strchr(SEPARATORS, **p); (*p)++) {
        if (n + 1 == GPU_MODEL_MAX || (!isalnum((unsigned char)**p) && **p != '.'))
            return false;
        out[n++] = (char)tolower((unsigned char)**p);
    }
    out[n] = '\0';
    return n > 0;
}

void gpu_model(const char *name, char out[GPU_MODEL_MAX])
{
    static const char *const vendors[] = {
        "nvidia", "amd", "tesla", "geforce", "quadro", "instinct", NULL};
    /* families whose next word is the model */
    static const char *const families[] = {"rtx", "gtx", "titan", NULL};
    char word[GPU_MODEL_MAX];
    out[0] = '\0';
    do {
        if (!next_word(&name, word))
            return;
    } while (is_one_of(word, vendors));
    str_copy(out, GPU_MODEL_MAX, word);
    size_t n = strlen(out);
    if (is_one_of(out, families) && next_word(&name, word) &&
        n + 1 + strlen(word) < GPU_MODEL_MAX) {
        out[n] = '-';
        str_copy(out + n + 1, GPU_MODEL_MAX - n - 1, word);
    }
}

int64_t gpu_model_mib(const char *name)
{
    for (const char *p = name; *p;) {
        int64_t gib = 0;
        if (!isdigit((unsigned char)*p)) {
            p++;
            continue;
        }
        for (; isdigit((unsigned char)*p); p++)
            gib = gib < 100000 ? gib * 10 + (*p - '0') : gib;
        if (str_starts(p, "GB") && !isalnum((unsigned char)p[2]))
            return gib * 1024;
    }
    return 0;
}

/* Skips digits followed by unit. */
static bool skip_number(const char **p, const char *unit)
{
    size_t n = strspn(*p, "0123456789"), len = strlen(unit);
    if (n == 0 || n > 4 || strncasecmp(*p + n, unit, len) != 0)
        return false;
    *p += n + len;
    return true;
}

bool gpu_slice(const char *name, char out[GPU_MODEL_MAX])
{
    const char *p = name;
    skip_number(&p, "c.");
    if (strlen(name) >= GPU_MODEL_MAX || !skip_number(&p, "g.") || !skip_number(&p, "gb"))
        return false;
    if (*p && ((*p != '+' && *p != '.') || !p[1]))
        return false;
    for (; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '+' && *p != '.')
            return false;
    for (size_t i = 0; i <= strlen(name); i++)
        out[i] = name[i] == '+' ? '.' : (char)tolower((unsigned char)name[i]);
    return true;
}

bool gpu_is_amd(const char *model)
{
    return (str_starts(model, "mi") && isdigit((unsigned char)model[2])) ||
           str_starts(model, "radeon") || str_eq(model, "rx");
}

bool gpu_serves(const struct gpu_kind *is, const struct gpu_kind *asked)
{
    size_t n = strlen(asked->model);
    bool same = n == 0 || (strncmp(is->model, asked->model, n) == 0 &&
                              (!is->model[n] || is->model[n] == '-'));
    return same && is->memory_mib >= asked->memory_mib;
}
