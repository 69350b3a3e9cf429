/* SPDX-License-Identifier: Apache-2.0
 *
 * Small parsers of outside text: the counterpart of each reads what it writes; limits hold; UTF-8
 * stays UTF-8.
 */
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include <assert.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void numbers(const char *text)
{
    int64_t n, mib, uusd;
    char shown[64];
    struct err e;
    if (str_to_i64(text, -1000, INT64_MAX, "n", &n, &e) == 0) {
        assert(n >= -1000);
        snprintf(shown, sizeof(shown), "%" PRId64, n);
        int64_t again;
        assert(str_to_i64(shown, -1000, INT64_MAX, "n", &again, &e) == 0 && again == n);
    }
    if (str_to_mib(text, &mib, &e) == 0)
        assert(mib >= 1 && mib <= (int64_t)1 << 40);
    if (str_to_uusd(text, &uusd, &e) == 0) {
        assert(uusd >= 0 && uusd <= INT64_C(1000000000000000));
        str_format_usd(uusd, shown, sizeof(shown));
        assert(shown[0] == '$');
    }
}

static void times(const char *text)
{
    struct wall w, again;
    char iso[TIME_ISO_MAX];
    int64_t ms;
    struct err e;
    if (time_parse_iso(text, &w, &e) == 0) {
        time_format_iso(w, iso);
        assert(time_parse_iso(iso, &again, &e) == 0 && again.ms == w.ms);
    }
    for (int slurm = 0; slurm < 2; slurm++)
        if (time_parse_duration(text, slurm, &ms, &e) == 0)
            assert(ms >= 0 && ms <= TIME_DURATION_MAX_MS);
}

static void codes(const char *p, size_t n)
{
    struct buf coded = {0}, back = {0};
    struct err e;
    if (!memchr(p, 0, n)) {
        str_url_encode(&coded, p, n);
        int rc = str_url_decode(&back, buf_str(&coded), coded.len, false, &e);
        assert(rc == 0 && back.len == n && memcmp(buf_str(&back), p, n) == 0);
    }
    buf_clear(&back);
    if (str_url_decode(&back, p, n, true, &e) == 0)
        assert(back.len <= n && !memchr(buf_str(&back), 0, back.len));
    char *hex = mem_alloc(2 * n + 1);
    str_hex(p, n, hex);
    assert(strlen(hex) == 2 * n);
    free(hex);
    buf_deinit(&coded);
    buf_deinit(&back);
}

static void cuts(const char *text, size_t n)
{
    char small[24], shown[STR_SHOW_MAX];
    bool whole = STR_COPY(small, text);
    assert(whole == (n < sizeof(small)) && str_starts(text, small));
    str_show(text, shown);
    assert(shown[0] == '"' && strcspn(shown, "\n\r\x1B") == strlen(shown));
    assert(str_is_utf8(shown, strlen(shown)));
    if (str_is_utf8(text, n)) {
        assert(str_is_utf8(small, strlen(small)));
        for (size_t max = 0; max < n && max < 40; max++)
            assert(str_is_utf8(text, str_cut(text, n, max)));
    }
}

static void on_line(void *ctx, enum log_level level, const char *line)
{
    (void)ctx, (void)level;
    size_t n = strlen(line);
    assert(n < LOG_LINE_MAX && str_is_utf8(line, n) && str_starts(line, "info: m k="));
    for (size_t i = 0; i < n; i++)
        assert((unsigned char)line[i] >= 0x20 && line[i] != 0x7F);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"spot", "on-demand", "any", NULL};
    char *text = mem_strndup((const char *)data, size);
    size_t n = strlen(text);
    numbers(text);
    times(text);
    codes((const char *)data, size);
    cuts(text, n);
    const char *nearest = str_nearest(text, names);
    assert(!nearest || n <= STR_NEAREST_MAX);
    struct buf word = {0};
    str_shell_quote(&word, text);
    assert(word.len >= n);
    buf_deinit(&word);
    log_set_sink(on_line, NULL);
    log_info("m", log_s("k", text));
    free(text);
    return 0;
}
