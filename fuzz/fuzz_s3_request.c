/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator's S3: calls, one per line, METHOD TARGET BODY, without signatures. For any request
 * the reply has an HTTP status, errors are XML with a code, and the sum of stored bytes is right.
 */
#include "base/mem.h"
#include "base/str.h"
#include "emulator/s3/api.h"
#include "cloud/xml.h"
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_MAX 40
#define QUOTA 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sum(const struct s3_objects *o)
{
    size_t sum = 0;
    for (size_t k = 0; k < o->n_buckets; k++)
        for (size_t i = 0; i < o->buckets[k].n; i++) {
            sum += o->buckets[k].objects[i]->data.len;
            assert(i == 0 ||
                   strcmp(o->buckets[k].objects[i - 1]->key, o->buckets[k].objects[i]->key) < 0);
        }
    LIST_FOREACH (&o->uploads, l) {
        const struct s3_upload *u = LIST_ENTRY(l, struct s3_upload, link);
        for (size_t i = 0; i < u->n_parts; i++)
            sum += u->parts[i].data.len;
    }
    assert(sum == o->bytes);
}

static void check_reply(const struct front_reply *reply)
{
    struct xml x;
    assert(reply->status >= 200 && reply->status < 600);
    if (reply->status < 300)
        return;
    int rc = xml_open(&x, buf_str(&reply->body), reply->body.len, NULL);
    assert(rc == 0 && xml_child(xml_root(&x), "Code"));
    (void)rc;
    xml_close(&x);
}

static void call(struct s3_account *account, struct faults *faults, char *line)
{
    char *rest = line, *method = strsep(&rest, " "), *target = strsep(&rest, " ");
    const struct http_header headers[] = {{"Host", "x"}, {"Range", rest ? rest : "bytes=1-2"},
        {"x-amz-copy-source", "/jobs/a"}, {"Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg=="}};
    if (!target || target[0] != '/')
        return;
    char *path = mem_strndup(target, strcspn(target, "?"));
    struct front_request r = {.method = method,
        .path = path,
        .target = target,
        .headers = headers,
        .n_headers = str_ends(target, "&copy=") ? 3
                     : str_eq(method, "POST")   ? 1
                                                : 2,
        .body = rest ? rest : "",
        .body_len = rest ? strlen(rest) : 0};
    struct front_reply reply = {.status = 200};
    struct s3_call c = {
        .account = account, .request = &r, .faults = faults, .now = {1000}, .reply = &reply};
    if (s3_api_route(&c))
        s3_api_run(&c);
    check_reply(&reply);
    check_sum(&account->objects);
    form_deinit(&c.query);
    buf_deinit(&reply.body);
    free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct s3_account account = {
        .region = "us-east-1", .has_conditions = true, .quota_bytes = QUOTA, .page = 2};
    struct faults faults = {0};
    char *text = mem_strndup((const char *)data, size), *rest = text;
    s3_objects_add_bucket(&account.objects, "jobs");
    for (int i = 0; i < CALLS_MAX && rest; i++)
        call(&account, &faults, strsep(&rest, "\n"));
    s3_objects_deinit(&account.objects);
    free(text);
    return 0;
}
