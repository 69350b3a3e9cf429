/* SPDX-License-Identifier: Apache-2.0
 *
 * The program of each task of a step: an accepted file has one for each task; a refused one gives
 * an error.
 */
#include "base/mem.h"
#include "cli/slurm/programs.h"
#include "fuzz/check.h"
#include <stdint.h>
#include <stdlib.h>

#define TASKS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size), more[] = "more";
    char *const rest[] = {more, NULL};
    struct err e = {0};
    int rc = programs_check(text, TASKS, &e);
    if (rc != 0)
        check_error(rc, &e);
    for (int64_t task = 0; task < TASKS; task++) {
        char **words = NULL;
        struct err why = {0};
        int one = programs_words(text, task, rest, &words, &why);
        size_t n = 0;
        assert(one == 0 || rc != 0);
        if (one != 0)
            check_error(one, &why);
        while (words && words[n])
            n++;
        assert(one != 0 || (n >= 2 && words[0][0] && str_eq(words[n - 1], more)));
        mem_free_texts(words);
    }
    free(text);
    return 0;
}
