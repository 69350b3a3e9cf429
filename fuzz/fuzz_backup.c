/* SPDX-License-Identifier: Apache-2.0
 *
 * What a restore reads: the headers of a backup's archive, and its manifest.
 */
#include "backup/archive.h"
#include "backup/contents.h"

#include "base/str.h"
#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse_header(const char *block)
{
    struct archive_entry entry = {{0}, 0};
    struct err e = {0};
    bool is_end;
    int rc = archive_parse(block, &entry, &is_end, &e);
    assert(rc == 0 || rc == ERR_CORRUPT);
    assert(rc == 0 || str_is_utf8(e.text, strlen(e.text)));
    assert(rc != 0 || is_end || archive_name_is_valid(entry.name));
    assert(entry.size <= ARCHIVE_ENTRY_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct contents m = {0};
    struct err e = {0};
    if (size >= ARCHIVE_BLOCK)
        parse_header((const char *)data);
    int rc = contents_parse((const char *)data, size, &m, &e);
    assert(rc == 0 || rc == ERR_CORRUPT || rc == ERR_UNSUPPORTED);
    assert(rc == 0 || str_is_utf8(e.text, strlen(e.text)));
    for (size_t i = 0; i < m.n_files; i++)
        assert(archive_name_is_valid(m.files[i].name) && strlen(m.files[i].sha256) == 64);
    return 0;
}
