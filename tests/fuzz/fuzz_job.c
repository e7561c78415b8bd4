/* Any bytes as what a job leaves behind: an archive (tar, gzip, zip) or a log, structured or of a
 * terminal. Nothing crashes; an error has a message; of a job that is read, the contents are
 * printed, every step has parts, and each is described.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/fuzzing.h"
#include "tuck_experimental.h"

static void check_step(tuck_job *j, size_t i, const tuck_print_options *how)
{
    size_t len = 0, n = 0, first = tuck_job_first_part(j, i, &n);
    int64_t bytes;

    if (n == 0 || first + n > tuck_doc_count(tuck_job_parts(j)))
        fail("a step without parts");
    if (tuck_job_say(j, i, "job", how, drop, &len) != TUCK_OK || len == 0)
        fail("a step is not described");
    tuck_status st = tuck_job_pytorch_peak(j, i, &bytes);
    if (st == TUCK_OK && bytes < 0)
        fail("a peak below nothing");
}

static void check_job(tuck_job *j)
{
    tuck_print_options how;
    size_t len = 0;

    tuck_print_options_init(&how);
    if (tuck_job_print(j, "job", &how, drop, &len) != TUCK_OK || len == 0)
        fail("contents are not printed");
    for (size_t i = 0; i < tuck_doc_count(tuck_job_steps(j)); i++)
        check_step(j, i, &how);
    how.form = TUCK_PRINT_JSON;
    if (tuck_job_print(j, "job", &how, drop, &len) != TUCK_OK)
        fail("JSON is not printed");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tuck_diags *d = tuck_diags_new(NULL);
    int file = memfd_create("job", 0);
    tuck_job *j = NULL;
    char path[40];

    if (d == NULL || file < 0 || write(file, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    const char *const paths[] = {path};
    (void)tuck_path_is_job(path);
    (void)tuck_path_is_job_log(path);
    tuck_status st = tuck_job_read(paths, 1, NULL, d, &j);
    if (st == TUCK_OK)
        check_job(j);
    else if (st != TUCK_ENOMEM && tuck_diags_errors(d) == 0)
        fail("refused without a word");
    for (size_t i = 0; i < tuck_diags_count(d); i++)
        if (*tuck_diags_at(d, i)->message == '\0')
            fail("an error without a message");
    tuck_job_free(j);
    tuck_diags_free(d);
    close(file);
    return 0;
}
