/* SPDX-License-Identifier: Apache-2.0
 *
 * The certificate authority, verified with OpenSSL like a peer: chains, names, usages, validity;
 * requests that must be refused; files that do not match.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/vtimers.h"
#include "scheduler/ca.h"
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define START_MS 1800000000000 /* 2027 */

struct world {
    char dir[64];
    struct vtimers vt;
    struct ca *ca;
};

static int setup(void **state)
{
    struct world *w = mem_alloc(sizeof(*w));
    struct err e;
    strcpy(w->dir, "/tmp/belay-ca-XXXXXX");
    vtimers_init(&w->vt, START_MS);
    *state = w;
    return mkdtemp(w->dir) && ca_open(w->dir, "lab", &w->vt.clock, &w->ca, &e) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
    struct world *w = *state;
    struct err e;
    ca_close(w->ca);
    vtimers_deinit(&w->vt);
    int rc = fs_remove_tree(w->dir, &e);
    free(w);
    return rc;
}

/* ---- verification by a peer ---- */

static X509 *cert_of(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    assert_non_null(cert);
    return cert;
}

/* X509_V_OK or OpenSSL's reason, at a time in milliseconds. */
static int verify(const char *ca_text, X509 *cert, int purpose, int64_t at_ms)
{
    X509_STORE *store = X509_STORE_new();
    X509 *ca = cert_of(ca_text);
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    X509_STORE_add_cert(store, ca);
    X509_STORE_CTX_init(ctx, store, cert, NULL);
    X509_STORE_CTX_set_purpose(ctx, purpose);
    X509_STORE_CTX_set_time(ctx, 0, (time_t)(at_ms / 1000));
    X509_STORE_CTX_set_flags(ctx, X509_V_FLAG_X509_STRICT);
    int ok = X509_verify_cert(ctx);
    int rc = ok == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx);
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    X509_free(ca);
    return rc;
}

/* ---- requests ---- */

static char *csr_pem(X509_REQ *req)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *p;
    PEM_write_bio_X509_REQ(bio, req);
    long n = BIO_get_mem_data(bio, &p);
    char *text = mem_strndup(p, (size_t)n);
    BIO_free(bio);
    return text;
}

static X509_REQ *make_request(EVP_PKEY *key, const char *cn)
{
    X509_REQ *req = X509_REQ_new();
    X509_NAME_add_entry_by_txt(
        X509_REQ_get_subject_name(req), "CN", MBSTRING_UTF8, (const unsigned char *)cn, -1, -1, 0);
    X509_REQ_set_pubkey(req, key);
    X509_REQ_sign(req, key, EVP_sha256());
    return req;
}

static char *request(EVP_PKEY *key, const char *cn)
{
    X509_REQ *req = make_request(key, cn);
    char *text = csr_pem(req);
    X509_REQ_free(req);
    return text;
}

static X509 *issue(struct world *w, EVP_PKEY *key, const char *cn, int64_t life_ms)
{
    struct err e;
    char *cert = NULL, *csr = request(key, "root");
    if (ca_issue_node(w->ca, csr, cn, life_ms, &cert, &e) != 0)
        fail_msg("%s", e.text);
    X509 *x = cert_of(cert);
    free(csr);
    free(cert);
    return x;
}

/* ---- */

static void the_key_is_for_its_owner_only(void **state)
{
    struct world *w = *state;
    struct stat st;
    char *path = mem_printf("%s/ca.key", w->dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    free(path);
    assert_null(strstr(ca_pem(w->ca), "PRIVATE"));
}

static void a_second_start_has_the_same_authority(void **state)
{
    struct world *w = *state;
    struct ca *again;
    struct err e;
    assert_int_equal(ca_open(w->dir, "other", &w->vt.clock, &again, &e), 0);
    assert_string_equal(ca_pem(again), ca_pem(w->ca));
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = issue(w, key, "node-1", DAY_MS);
    assert_int_equal(verify(ca_pem(again), cert, X509_PURPOSE_SSL_CLIENT, START_MS), X509_V_OK);
    X509_free(cert);
    EVP_PKEY_free(key);
    ca_close(again);
}

static void a_nodes_certificate_is_a_clients_under_the_name_that_we_chose(void **state)
{
    struct world *w = *state;
    char cn[64];
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = issue(w, key, "node-17", DAY_MS);
    assert_int_equal(verify(ca_pem(w->ca), cert, X509_PURPOSE_SSL_CLIENT, START_MS), X509_V_OK);
    assert_int_equal(
        verify(ca_pem(w->ca), cert, X509_PURPOSE_SSL_SERVER, START_MS), X509_V_ERR_INVALID_PURPOSE);
    assert_int_equal(X509_check_ca(cert), 0);
    X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, cn, sizeof(cn));
    assert_string_equal(cn, "node-17"); /* the request had "root" */
    assert_int_equal(EVP_PKEY_eq(X509_get0_pubkey(cert), key), 1);
    X509_free(cert);
    EVP_PKEY_free(key);
}

static void it_is_good_for_its_life_and_a_little_before(void **state)
{
    struct world *w = *state;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = issue(w, key, "node-1", DAY_MS);
    const char *ca = ca_pem(w->ca);
    assert_int_equal(verify(ca, cert, X509_PURPOSE_SSL_CLIENT, START_MS - 200000), X509_V_OK);
    assert_int_equal(verify(ca, cert, X509_PURPOSE_SSL_CLIENT, START_MS - 400000),
        X509_V_ERR_CERT_NOT_YET_VALID);
    assert_int_equal(
        verify(ca, cert, X509_PURPOSE_SSL_CLIENT, START_MS + DAY_MS - 1000), X509_V_OK);
    assert_int_equal(verify(ca, cert, X509_PURPOSE_SSL_CLIENT, START_MS + DAY_MS + 2000),
        X509_V_ERR_CERT_HAS_EXPIRED);
    X509_free(cert);
    EVP_PKEY_free(key);
}

static void a_node_cannot_issue_certificates(void **state)
{
    struct world *w = *state;
    EVP_PKEY *node_key = EVP_EC_gen("P-256"), *key = EVP_EC_gen("P-256");
    X509 *node = issue(w, node_key, "node-1", DAY_MS), *forged = X509_new();
    X509_set_version(forged, X509_VERSION_3);
    X509_set_pubkey(forged, key);
    X509_set_issuer_name(forged, X509_get_subject_name(node));
    X509_set_subject_name(forged, X509_get_subject_name(node));
    ASN1_TIME_set(X509_getm_notBefore(forged), START_MS / 1000);
    ASN1_TIME_set(X509_getm_notAfter(forged), START_MS / 1000 + 1000);
    X509_sign(forged, node_key, EVP_sha256());
    assert_int_not_equal(
        verify(ca_pem(w->ca), forged, X509_PURPOSE_SSL_CLIENT, START_MS), X509_V_OK);
    X509_free(forged);
    X509_free(node);
    EVP_PKEY_free(node_key);
    EVP_PKEY_free(key);
}

static void serial_numbers_differ(void **state)
{
    struct world *w = *state;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *a = issue(w, key, "node-1", DAY_MS), *b = issue(w, key, "node-1", DAY_MS);
    assert_int_not_equal(ASN1_INTEGER_cmp(X509_get0_serialNumber(a), X509_get0_serialNumber(b)), 0);
    X509_free(a);
    X509_free(b);
    EVP_PKEY_free(key);
}

static void the_servers_certificate_has_every_name_and_address(void **state)
{
    struct world *w = *state;
    const char *names[] = {"head", "10.0.0.7", "fd00::7"};
    char *cert_text, *key_text;
    struct err e;
    assert_int_equal(ca_issue_server(w->ca, names, 3, &cert_text, &key_text, &e), 0);
    X509 *cert = cert_of(cert_text);
    assert_int_equal(verify(ca_pem(w->ca), cert, X509_PURPOSE_SSL_SERVER, START_MS), X509_V_OK);
    assert_int_equal(
        verify(ca_pem(w->ca), cert, X509_PURPOSE_SSL_CLIENT, START_MS), X509_V_ERR_INVALID_PURPOSE);
    /* For any uptime of belayd: until the CA's last second. */
    assert_int_equal(
        verify(ca_pem(w->ca), cert, X509_PURPOSE_SSL_SERVER, ca_ends_at(w->ca).ms - 1000),
        X509_V_OK);
    assert_int_equal(
        verify(ca_pem(w->ca), cert, X509_PURPOSE_SSL_SERVER, ca_ends_at(w->ca).ms + 1000),
        X509_V_ERR_CERT_HAS_EXPIRED);
    assert_int_equal(X509_check_host(cert, "head", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(cert, "localhost", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(cert, "tail", 0, 0, NULL), 0);
    assert_int_equal(X509_check_ip_asc(cert, "127.0.0.1", 0), 1);
    assert_int_equal(X509_check_ip_asc(cert, "::1", 0), 1);
    assert_int_equal(X509_check_ip_asc(cert, "10.0.0.7", 0), 1);
    assert_int_equal(X509_check_ip_asc(cert, "fd00::7", 0), 1);
    assert_int_equal(X509_check_ip_asc(cert, "10.0.0.8", 0), 0);
    BIO *bio = BIO_new_mem_buf(key_text, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    assert_int_equal(X509_check_private_key(cert, key), 1);
    EVP_PKEY_free(key);
    BIO_free(bio);
    X509_free(cert);
    free(cert_text);
    free(key_text);
}

static void a_name_that_cannot_stand_in_a_certificate_is_the_operators_to_mend(void **state)
{
    struct world *w = *state;
    const char *names[] = {"head,tail"};
    char *cert, *key;
    struct err e = {0};
    assert_int_equal(ca_issue_server(w->ca, names, 1, &cert, &key, &e), ERR_CONFIG);
    assert_non_null(strstr(e.text, "head,tail"));
}

/* ---- requests that are refused ---- */

static void check_refused(struct world *w, const char *csr)
{
    char *cert = NULL, hash[65];
    struct err e = {0};
    assert_int_equal(ca_issue_node(w->ca, csr, "node-1", DAY_MS, &cert, &e), ERR_INVALID);
    assert_null(cert);
    assert_non_null(strstr(e.text, "certificate request"));
    assert_int_equal(ca_csr_key_hash(csr, hash, &e), ERR_INVALID);
    assert_int_equal(ca_issue_node(w->ca, csr, "node-1", DAY_MS, &cert, NULL), ERR_INVALID);
}

static void other_keys_than_p256_are_refused(void **state)
{
    struct world *w = *state;
    EVP_PKEY *keys[] = {EVP_RSA_gen(2048), EVP_EC_gen("P-384"), EVP_EC_gen("secp256k1")};
    for (size_t i = 0; i < 3; i++) {
        char *csr = request(keys[i], "node");
        check_refused(w, csr);
        free(csr);
        EVP_PKEY_free(keys[i]);
    }
}

static void a_request_that_its_key_did_not_sign_is_refused(void **state)
{
    struct world *w = *state;
    EVP_PKEY *mine = EVP_EC_gen("P-256"), *somebodys = EVP_EC_gen("P-256");
    X509_REQ *req = make_request(mine, "node");
    X509_REQ_set_pubkey(req, somebodys);
    X509_REQ_sign(req, mine, EVP_sha256());
    char *csr = csr_pem(req);
    check_refused(w, csr);
    free(csr);
    X509_REQ_free(req);
    EVP_PKEY_free(mine);
    EVP_PKEY_free(somebodys);
}

static void what_is_no_request_is_refused(void **state)
{
    struct world *w = *state;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    char *csr = request(key, "node");
    check_refused(w, "");
    check_refused(w, "hello");
    check_refused(w, ca_pem(w->ca));
    check_refused(
        w, "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n");
    for (size_t n = 0; n < strlen(csr) - 30; n += 7) {
        char *cut = mem_strndup(csr, n);
        check_refused(w, cut);
        free(cut);
    }
    free(csr);
    EVP_PKEY_free(key);
}

static void the_hash_of_a_key_is_the_same_in_every_request_for_it(void **state)
{
    EVP_PKEY *key = EVP_EC_gen("P-256"), *other = EVP_EC_gen("P-256");
    char a[65], b[65], c[65];
    struct err e;
    char *one = request(key, "x"), *two = request(key, "y"), *three = request(other, "x");
    (void)state;
    assert_int_equal(ca_csr_key_hash(one, a, &e), 0);
    assert_int_equal(ca_csr_key_hash(two, b, &e), 0);
    assert_int_equal(ca_csr_key_hash(three, c, &e), 0);
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    assert_int_equal(strlen(a), 64);
    free(one);
    free(two);
    free(three);
    EVP_PKEY_free(key);
    EVP_PKEY_free(other);
}

/* ---- files ---- */

static void write_file(const char *dir, const char *name, const char *text)
{
    char *path = mem_printf("%s/%s", dir, name);
    struct err e;
    assert_int_equal(fs_write_atomic(path, text, strlen(text), 0600, &e), 0);
    free(path);
}

static void check_open_fails(struct world *w, int kind)
{
    struct ca *ca = NULL;
    struct err e = {0};
    assert_int_equal(ca_open(w->dir, "lab", &w->vt.clock, &ca, &e), kind);
    assert_null(ca);
    assert_non_null(strstr(e.text, "ca.key"));
}

static void files_that_do_not_belong_together_are_refused_and_kept(void **state)
{
    struct world *w = *state;
    struct err e;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    BIO *bio = BIO_new(BIO_s_mem());
    char *p, *path = mem_printf("%s/ca.pem", w->dir);
    struct buf before = {0}, after = {0};
    PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
    char *other = mem_strndup(p, (size_t)BIO_get_mem_data(bio, &p));
    assert_int_equal(fs_read(path, 65536, &before, &e), 0);

    write_file(w->dir, "ca.key", other);
    check_open_fails(w, ERR_CORRUPT);
    write_file(w->dir, "ca.key", "nonsense");
    check_open_fails(w, ERR_CORRUPT);
    write_file(w->dir, "ca.key", "");
    check_open_fails(w, ERR_CORRUPT);
    assert_int_equal(fs_read(path, 65536, &after, &e), 0);
    assert_string_equal(buf_str(&before), buf_str(&after));

    char *key_path = mem_printf("%s/ca.key", w->dir);
    remove(key_path);
    check_open_fails(w, ERR_NOT_FOUND);
    free(key_path);
    buf_deinit(&before);
    buf_deinit(&after);
    free(other);
    free(path);
    BIO_free(bio);
    EVP_PKEY_free(key);
}

/* A kill at the first start, between the two files. */
static void a_key_without_its_certificate_is_begun_anew(void **state)
{
    struct world *w = *state;
    struct ca *ca;
    struct err e;
    char *path = mem_printf("%s/ca.pem", w->dir);
    remove(path);
    assert_int_equal(ca_open(w->dir, "lab", &w->vt.clock, &ca, &e), 0);
    ca_close(ca);
    assert_int_equal(ca_open(w->dir, "lab", &w->vt.clock, &ca, &e), 0);
    ca_close(ca);
    free(path);
}

static void a_hash_is_that_of_the_standard(void **state)
{
    char out[65];
    (void)state;
    ca_sha256_hex("abc", out); /* FIPS 180-2, B.1 */
    assert_string_equal(out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_key_is_for_its_owner_only),
        TEST(a_second_start_has_the_same_authority),
        TEST(a_nodes_certificate_is_a_clients_under_the_name_that_we_chose),
        TEST(it_is_good_for_its_life_and_a_little_before),
        TEST(a_node_cannot_issue_certificates),
        TEST(serial_numbers_differ),
        TEST(the_servers_certificate_has_every_name_and_address),
        TEST(a_name_that_cannot_stand_in_a_certificate_is_the_operators_to_mend),
        TEST(other_keys_than_p256_are_refused),
        TEST(a_request_that_its_key_did_not_sign_is_refused),
        TEST(what_is_no_request_is_refused),
        TEST(the_hash_of_a_key_is_the_same_in_every_request_for_it),
        TEST(files_that_do_not_belong_together_are_refused_and_kept),
        TEST(a_key_without_its_certificate_is_begun_anew),
        cmocka_unit_test(a_hash_is_that_of_the_standard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
