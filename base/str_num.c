/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers in text: strict parsing, and amounts for people. Independent of the locale.
 */
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads one or more digits and advances *at past them; false if there are none or they overflow. */
static bool read_digits(const char **at, uint64_t *ret_value)
{
    uint64_t value = 0;
    const char *start = *at;
    for (; is_digit(**at); (*at)++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(**at - '0'), &value))
            return false;
    *ret_value = value;
    return *at > start;
}

static bool read_i64(const char *text, int64_t *ret_value)
{
    bool negative = *text == '-';
    const char *at = text + negative;
    uint64_t magnitude;
    if (!read_digits(&at, &magnitude) || *at || magnitude > (uint64_t)INT64_MAX + negative)
        return false;
    *ret_value = (int64_t)(negative ? 0 - magnitude : magnitude);
    return true;
}

int str_to_i64(
    const char *text, int64_t min, int64_t max, const char *what, int64_t *ret_value, struct err *e)
{
    int64_t value;
    char shown[STR_SHOW_MAX];
    if (!text || !read_i64(text, &value) || value < min || value > max)
        return err_set(e, ERR_INVALID,
            "%s: expected an integer in %" PRId64 " .. %" PRId64 ", found %s", what, min, max,
            str_show(text, shown));
    *ret_value = value;
    return 0;
}

#define MIB_MAX ((uint64_t)1 << 40)

static bool read_mib(const char *text, int64_t *ret_mib)
{
    uint64_t number, unit_kib, kib;
    if (!read_digits(&text, &number))
        return false;
    switch (*text) {
    case 'k':
    case 'K':
        unit_kib = 1;
        break;
    case 0:
    case 'm':
    case 'M':
        unit_kib = 1 << 10;
        break;
    case 'g':
    case 'G':
        unit_kib = 1 << 20;
        break;
    case 't':
    case 'T':
        unit_kib = 1 << 30;
        break;
    default:
        return false;
    }
    text += *text != '\0';
    text += *text == 'B' || *text == 'b'; /* 16GB is accepted for 16G, as in Slurm */
    if (*text || __builtin_mul_overflow(number, unit_kib, &kib) || kib < 1 || kib > MIB_MAX * 1024)
        return false;
    *ret_mib = (int64_t)((kib + 1023) / 1024);
    return true;
}

int str_to_mib(const char *text, int64_t *ret_mib, struct err *e)
{
    char shown[STR_SHOW_MAX];
    if (!text || !read_mib(text, ret_mib))
        return err_set(e, ERR_INVALID,
            "expected a memory size such as 512M, 4G or 1T (a bare number is MiB), found %s",
            str_show(text, shown));
    return 0;
}

#define USD 1000000
#define UUSD_MAX ((uint64_t)1000000000 * USD)

static bool read_uusd(const char *text, int64_t *ret_uusd)
{
    uint64_t uusd;
    if (!read_digits(&text, &uusd) || uusd > UUSD_MAX / USD)
        return false;
    uusd *= USD;
    if (*text == '.') {
        uint64_t worth = USD; /* of one unit of the previous decimal place */
        for (text++; is_digit(*text); text++) {
            uint64_t digit = (uint64_t)(*text - '0');
            if (worth == 1 && digit >= 5)
                uusd++;
            worth /= 10;
            uusd += digit * worth;
        }
        if (!is_digit(text[-1]))
            return false;
    }
    *ret_uusd = (int64_t)uusd;
    return *text == 0 && uusd <= UUSD_MAX;
}

int str_to_uusd(const char *text, int64_t *ret_uusd, struct err *e)
{
    int64_t uusd;
    char shown[STR_SHOW_MAX];
    if (!text || !read_uusd(text, &uusd))
        return err_set(e, ERR_INVALID,
            "expected an amount in dollars such as 3.56, at most 10^9, found %s",
            str_show(text, shown));
    *ret_uusd = uusd;
    return 0;
}

void str_format_usd(int64_t uusd, char *out, size_t size)
{
    const char *sign = uusd < 0 ? "-" : "";
    uint64_t u = uusd < 0 ? 0 - (uint64_t)uusd : (uint64_t)uusd;
    uint64_t ten_thousandths = (u + 50) / 100, cents = (u + 5000) / 10000;
    if (u > 0 && u < 100)
        snprintf(out, size, "%s$0.%06" PRIu64, sign, u);
    else if (ten_thousandths < 10000 && ten_thousandths % 10)
        snprintf(out, size, "%s$0.%04" PRIu64, sign, ten_thousandths);
    else if (ten_thousandths < 10000 && ten_thousandths % 100)
        snprintf(out, size, "%s$0.%03" PRIu64, sign, ten_thousandths / 10);
    else
        snprintf(out, size, "%s$%" PRIu64 ".%02" PRIu64, sign, cents / 100, cents % 100);
}

void str_format_bytes(uint64_t bytes, char *out, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(out, size, "%" PRIu64 " B", bytes);
        return;
    }
    for (int i = 1; i <= 6; i++) {
        uint64_t unit = (uint64_t)1 << (10 * i);
        uint64_t tenths = bytes / unit * 10 + (bytes % unit * 10 + unit / 2) / unit;
        if (tenths < 10240 || i == 6) { /* what rounds to 1024.0 is shown as 1.0 of the next unit */
            snprintf(out, size, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10, units[i]);
            return;
        }
    }
}
