/* Any bytes: the reader either fails, or returns graphs whose text is a fixpoint: reading what is
 * printed and printing it again gives the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuck.h"

struct text {
    char *at;
    size_t len, cap;
};

static bool append(void *ctx, const char *s, size_t n)
{
    struct text *t = ctx;

    if (n > t->cap - t->len) {
        t->cap = (t->len + n) * 2;
        t->at = realloc(t->at, t->cap);
        if (t->at == NULL)
            abort();
    }
    memcpy(t->at + t->len, s, n);
    t->len += n;
    return true;
}

static bool nothing(void *ctx, const char *s, size_t n)
{
    (void)ctx;
    (void)s;
    (void)n;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tuck_diags *diags = tuck_diags_new(NULL);
    tuck_doc *doc, *again;
    tuck_status st = tuck_doc_read_text((const char *)data, size, "fuzz", NULL, diags, &doc);

    if (st == TUCK_OK) {
        struct text once = {NULL, 0, 0}, twice = {NULL, 0, 0};

        if (tuck_doc_print(doc, TUCK_FORM_TEXT, NULL, append, &once) != TUCK_OK)
            abort();
        tuck_doc_print(doc, TUCK_FORM_CODE, NULL, nothing, NULL);
        tuck_doc_print(doc, TUCK_FORM_EXEC, diags, nothing, NULL);
        for (size_t i = 0; i < tuck_doc_count(doc); i++) {
            tuck_graph *g = tuck_doc_graph(doc, i);
            (void)!tuck_graph_lint(g, diags);
            tuck_graph_dot(g, nothing, NULL);
        }
        if (tuck_doc_read_text(once.at ? once.at : "", once.len, "once", NULL, NULL, &again) !=
            TUCK_OK) {
            fwrite(once.at, 1, once.len, stderr);
            abort();
        }
        if (tuck_doc_print(again, TUCK_FORM_TEXT, NULL, append, &twice) != TUCK_OK)
            abort();
        if (once.len != twice.len || memcmp(once.at, twice.at, once.len) != 0) {
            fprintf(stderr, "--- once\n%.*s\n--- twice\n%.*s\n", (int)once.len, once.at,
                    (int)twice.len, twice.at);
            abort();
        }
        tuck_doc_free(again);
        tuck_doc_free(doc);
        free(once.at);
        free(twice.at);
    } else if (st == TUCK_ESYNTAX && tuck_diags_errors(diags) == 0) {
        abort(); /* failed without a diagnostic */
    }
    tuck_diags_free(diags);
    return 0;
}
