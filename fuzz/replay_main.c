/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a fuzz target on every file of the corpus directories in argv, for builds without libFuzzer.
 */
#include "base/fs.h"

#include "base/mem.h"
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define INPUT_MAX ((size_t)16 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    struct buf text = {0};
    struct err e;
    int rc = fs_read(path, INPUT_MAX, &text, &e);
    if (rc == 0) {
        /* A copy of exactly that size, so that the sanitizer detects reads beyond its end. */
        uint8_t *exact = mem_dup(text.data, text.len);
        LLVMFuzzerTestOneInput(exact, text.len);
        free(exact);
    } else {
        fprintf(stderr, "%s\n", e.text);
    }
    buf_deinit(&text);
    return rc;
}

static int replay_directory(const char *path)
{
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort), replayed = 0, failed = 0;
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.') {
            char *file = mem_printf("%s/%s", path, entries[i]->d_name);
            failed += replay_file(file) != 0;
            replayed++;
            free(file);
        }
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    printf("%s: %d inputs\n", path, replayed);
    /* a missing corpus is a mistake in the build */
    return failed == 0 && replayed > 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
    int rc = argc > 1 ? 0 : -1;
    for (int i = 1; i < argc; i++)
        if (replay_directory(argv[i]))
            rc = -1;
    return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
