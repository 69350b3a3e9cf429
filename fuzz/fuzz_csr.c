/* SPDX-License-Identifier: Apache-2.0
 *
 * The certificate request of a joining machine: PEM, or DER that is converted to PEM here, because
 * most mutations break PEM. An accepted request gets a certificate, and the same key gives the same
 * hash; others give an error.
 */
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "fuzz/check.h"
#include "scheduler/ca.h"
#include <openssl/evp.h>
#include <stdint.h>
#include <stdlib.h>

#define BYTES_MAX 4095 /* size of csr_pem in struct wire_join */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One for all inputs: its directory is not needed once it is open. */
static struct ca *the_ca(void)
{
    static struct ca *ca;
    char dir[] = "/tmp/belay-fuzz-ca-XXXXXX";
    struct err e;
    if (ca)
        return ca;
    log_set_level(LOG_ERROR);
    bool made = mkdtemp(dir) != NULL;
    int rc = made ? ca_open(dir, "lab", &clock_system, &ca, &e) : -1;
    assert(rc == 0);
    fs_remove_tree(dir, &e);
    return ca;
}

static char *to_pem(const uint8_t *der, size_t n)
{
    unsigned char *text = mem_alloc(4 * (n / 3 + 1) + 1);
    EVP_EncodeBlock(text, der, (int)n);
    struct buf pem = {0};
    buf_adds(&pem, "-----BEGIN CERTIFICATE REQUEST-----\n");
    for (const char *at = (const char *)text; *at; at += strnlen(at, 64))
        buf_printf(&pem, "%.64s\n", at);
    buf_adds(&pem, "-----END CERTIFICATE REQUEST-----\n");
    free(text);
    return buf_take(&pem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > BYTES_MAX)
        return 0;
    bool is_pem = size > 0 && data[0] == '-';
    char *pem = is_pem ? mem_strndup((const char *)data, size) : to_pem(data, size), *cert = NULL;
    char hash[65], again[65];
    struct err e = {0};
    memset(hash, CHECK_PATTERN, sizeof(hash));
    int rc = ca_csr_key_hash(pem, hash, &e);
    if (rc == 0) {
        assert(strlen(hash) == 64);
        rc = ca_csr_key_hash(pem, again, &e);
        assert(rc == 0 && str_eq(hash, again));
        rc = ca_issue_node(the_ca(), pem, "node-7", 3600000, &cert, &e);
        assert(rc == 0 && str_starts(cert, "-----BEGIN CERTIFICATE-----"));
    } else {
        check_error(rc, &e);
        check_untouched(hash, sizeof(hash));
        assert(rc == ERR_INVALID);
    }
    free(cert);
    free(pem);
    return 0;
}
