/* Any bytes as a safetensors file: nothing crashes; an error has a diagnostic with a message; the
 * tensors of a valid file lie inside of it, have the bytes that their sizes need, and are found by
 * their names.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/safetensors.h"

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    abort();
}

static void check(const struct st_file *f, const uint8_t *data, size_t size)
{
    for (uint32_t i = 0; i < st_count(f); i++) {
        const struct st_tensor *t = st_at(f, i);
        int64_t bytes = dtype_at(t->dtype)->bytes;
        const uint8_t *at = t->data;

        for (uint32_t k = 0; k < t->n; k++)
            bytes *= t->size[k];
        if (bytes != t->bytes)
            fail("sizes and bytes differ");
        if (at < data || at > data + size || t->bytes > data + size - at)
            fail("a tensor outside of the file");
        if (st_find(f, t->name) == NULL)
            fail("a tensor is not found by its name");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tuck_diags *d = tuck_diags_new(NULL);
    struct st_file *f = NULL;

    if (d == NULL)
        abort();
    tuck_status st = st_read(data, size, "x.safetensors", NULL, d, &f);
    if (st == TUCK_OK) {
        if (tuck_diags_errors(d) > 0)
            fail("read, though there are errors");
        check(f, data, size);
        st_close(f);
    } else if (st != TUCK_ENOMEM) {
        if (tuck_diags_errors(d) == 0)
            fail("refused without a word");
        if (*tuck_diags_at(d, 0)->message == '\0')
            fail("an error without a message");
    }
    tuck_diags_free(d);
    return 0;
}
