/* SPDX-License-Identifier: Apache-2.0
 *
 * libbelay's parsing of the agent's small JSON files. The functions are static in a single-file
 * library.
 */
#include "ckpt/lib/belay.c"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const keys[] = {"ok", "stop", "error", "reason", "deadline_ms", ""};
    char text[FILE_BYTES_MAX], out[16];
    double number;

    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *value = find_value(text, keys[i]);

        if (value && (value < text || value > text + size))
            abort();
        is_true(text, keys[i]);
        find_number(text, keys[i], &number);
        if (find_string(text, keys[i], out, sizeof(out)) == 0 && strlen(out) >= sizeof(out))
            abort();
    }
    return 0;
}
