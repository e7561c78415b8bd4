/* Tables of operators and passes, which are the same for every graph; results of lint; suggestions
 * for misspelled names. */
#include "api/api.h"
#include "base/suggest.h"
#include "op/ops.h"
#include "report/lint_show.h"
#include "report/ops_show.h"
#include "report/passes_show.h"
#include "study/pass_table.h"

const char *tuck_suggest(const char *word, const char *(*name)(const void *ctx, size_t i),
                         const void *ctx)
{
    return word != NULL && name != NULL ? near_name(word, strlen(word), name, ctx) : NULL;
}

/* ---- operators ---- */

uint32_t tuck_op_count(void)
{
    return op_count();
}

uint32_t tuck_op_find(const char *name)
{
    return name != NULL ? op_find(name, strlen(name)) : 0;
}

bool tuck_op_info(uint32_t op, tuck_op *out)
{
    if (op == 0 || op > op_count() || out == NULL || out->size <= sizeof(out->size))
        return false;
    const struct op_row *row = op_at(op);
    const tuck_op all = {.size = sizeof(all),
                         .name = row->name,
                         .signature = row->signature,
                         .op_class = op_class_name((enum op_class)row->cls),
                         .class_meaning = op_class_meaning((enum op_class)row->cls)};
    size_t size = out->size;
    memcpy(out, &all, size < sizeof(all) ? size : sizeof(all));
    out->size = size;
    return true;
}

uint32_t tuck_ops_matching(const char *name)
{
    return ops_matching(name);
}

static void print_ops(struct buf *b, const tuck_print_options *how, const void *name)
{
    if (how->form == TUCK_PRINT_JSON)
        ops_json(name, b);
    else
        ops_table(name, b);
}

tuck_status tuck_ops_print(const char *name, const tuck_print_options *how, tuck_write_fn write,
                           void *ctx)
{
    return api_print(NULL, how, write, ctx, print_ops, name);
}

/* ---- passes ---- */

static void print_passes(struct buf *b, const tuck_print_options *how, const void *one)
{
    if (one != NULL)
        pass_table_row(one, b);
    else if (how->form == TUCK_PRINT_JSON)
        passes_json(&all_passes, b);
    else
        passes_table(&all_passes, b);
}

tuck_status tuck_passes_print(const tuck_print_options *how, tuck_write_fn write, void *ctx)
{
    return api_print(NULL, how, write, ctx, print_passes, NULL);
}

tuck_status tuck_pass_print(size_t pass, const tuck_print_options *how, tuck_write_fn write,
                            void *ctx)
{
    if (pass >= all_passes.n)
        return TUCK_EINVAL;
    return api_print(NULL, how, write, ctx, print_passes, all_passes.row[pass]);
}

static void print_reasons(struct buf *b, const tuck_print_options *how, const void *arg)
{
    (void)how;
    (void)arg;
    passes_reasons(b);
}

tuck_status tuck_reasons_print(const tuck_print_options *how, tuck_write_fn write, void *ctx)
{
    return api_print(NULL, how, write, ctx, print_reasons, NULL);
}

/* ---- lint ---- */

void tuck_lint_sum_init(tuck_lint_sum *sum)
{
    *sum = (tuck_lint_sum){.size = sizeof(*sum), .file = ""};
}

struct lint_args {
    tuck_lint_sum sum;
    const tuck_diags *found;
};

static void print_lint(struct buf *b, const tuck_print_options *how, const void *arg)
{
    const struct lint_args *x = arg;

    if (how->form == TUCK_PRINT_JSON)
        lint_json(&x->sum, x->found, b);
    else
        lint_sum(&x->sum, b);
}

tuck_status tuck_lint_print(const tuck_lint_sum *sum, const tuck_diags *found,
                            const tuck_print_options *how, tuck_write_fn write, void *ctx)
{
    struct lint_args x = {.found = found};

    tuck_lint_sum_init(&x.sum);
    if (options_take(&x.sum, sizeof(x.sum), sum) != TUCK_OK || x.sum.file == NULL)
        return TUCK_EINVAL;
    if (found == NULL && how != NULL && how->form == TUCK_PRINT_JSON)
        return TUCK_EINVAL;
    return api_print(NULL, how, write, ctx, print_lint, &x);
}
