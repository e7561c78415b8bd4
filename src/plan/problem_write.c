/* Writes a problem as the JSON that problem_read_text() reads: one op per line. */
#include "base/json.h"
#include "plan/problem.h"

static void put_names(struct json_out *j, const struct problem *p, const char *key,
                      const str_id *name, uint32_t n)
{
    json_open(j, key, '[');
    for (uint32_t i = 0; i < n; i++)
        json_str(j, NULL, str_text(&p->str, name[i]));
    json_close(j, ']');
}

static void put_ops(struct json_out *j, const struct problem *p, const char *key,
                    const uint32_t *op, uint32_t n)
{
    json_open(j, key, '[');
    for (uint32_t i = 0; i < n; i++)
        json_str(j, NULL, problem_name(p, op[i]));
    json_close(j, ']');
}

static void put_maybe(struct json_out *j, const struct problem *p, const char *key, str_id s)
{
    if (s != 0)
        json_str(j, key, str_text(&p->str, s));
}

static void put_op(struct json_out *j, const struct problem *p, uint32_t x)
{
    static const char *const kind[] = {"compute", "gemm", "collective", "wait"};

    json_open(j, NULL, '{');
    j->flat = true;
    json_str(j, "name", problem_name(p, x));
    json_str(j, "kind", kind[p->kind[x]]);
    json_float(j, "runtime", p->runtime[x]);
    if (problem_is_coll(p, x))
        json_bool(j, "is_async", problem_is_async(p, x));
    put_maybe(j, p, "kernel", p->kernel[x]);
    if (p->group[x] != PROBLEM_NONE)
        json_str(j, "group", str_text(&p->str, p->group_name[p->group[x]]));
    put_maybe(j, p, "coll", p->coll_name[x]);
    if (p->bytes[x] > 0)
        json_int(j, "bytes", p->bytes[x]);
    if (p->member_at[x + 1] > p->member_at[x])
        put_names(j, p, "ops", p->member + p->member_at[x], p->member_at[x + 1] - p->member_at[x]);
    json_open(j, "deps", '[');
    for (uint32_t d = p->dep_at[x]; d < p->dep_at[x + 1]; d++) {
        json_open(j, NULL, '{');
        json_str(j, "name",
                 p->dep_flags[d] & PROBLEM_ON_OP ? problem_name(p, p->dep[d])
                                                 : problem_buf_name(p, p->dep[d]));
        json_bool(j, "weak", p->dep_flags[d] & PROBLEM_WEAK);
        json_bool(j, "fake", p->dep_flags[d] & PROBLEM_FAKE);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_open(j, "outputs", '[');
    for (uint32_t b = p->out_at[x]; b < p->out_at[x + 1]; b++) {
        json_open(j, NULL, '{');
        json_str(j, "name", problem_buf_name(p, b));
        json_int(j, "size_alloc", p->size_alloc[b]);
        json_int(j, "size_free", p->size_free[b]);
        put_ops(j, p, "succ", p->succ + p->succ_at[b], p->succ_at[b + 1] - p->succ_at[b]);
        put_ops(j, p, "succ_ordering", p->order + p->order_at[b],
                p->order_at[b + 1] - p->order_at[b]);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
    j->flat = false;
}

/* A builder need not list names of inputs and outputs; then the buffers have them. */
static void put_ends(struct json_out *j, const struct problem *p)
{
    json_open(j, "graph_inputs", '[');
    j->flat = true;
    for (uint32_t i = 0; i < p->n_graph_input; i++)
        json_str(j, NULL, str_text(&p->str, p->graph_input[i]));
    for (uint32_t b = 0; p->n_graph_input == 0 && b < p->n_input; b++)
        json_str(j, NULL, problem_buf_name(p, b));
    json_close(j, ']');
    j->flat = false;
    json_open(j, "graph_outputs", '[');
    j->flat = true;
    for (uint32_t i = 0; i < p->n_graph_output; i++)
        json_str(j, NULL, str_text(&p->str, p->graph_output[i]));
    for (uint32_t b = 0; p->n_graph_output == 0 && b < p->n_buf; b++)
        if (p->buf_flags[b] & PROBLEM_OUTPUT)
            json_str(j, NULL, problem_buf_name(p, b));
    json_close(j, ']');
    j->flat = false;
    json_open(j, "freeable_inputs", '[');
    for (uint32_t b = 0; b < p->n_input; b++)
        if (p->buf_flags[b] & PROBLEM_FREEABLE) {
            json_open(j, NULL, '{');
            j->flat = true;
            json_str(j, "name", problem_buf_name(p, b));
            json_int(j, "size_free", p->size_free[b]);
            put_ops(j, p, "succ", p->succ + p->succ_at[b], p->succ_at[b + 1] - p->succ_at[b]);
            json_close(j, '}');
            j->flat = false;
        }
    json_close(j, ']');
    if (p->n_mutation > 0) {
        json_open(j, "mutation_real_name", '{');
        for (uint32_t i = 0; i < p->n_mutation; i++)
            json_str(j, str_text(&p->str, p->mutation[2 * i]),
                     str_text(&p->str, p->mutation[2 * i + 1]));
        json_close(j, '}');
    }
}

void problem_write(const struct problem *p, const uint32_t *order, struct buf *out)
{
    struct json_out j;

    json_begin(&j, out);
    json_open(&j, NULL, '{');
    json_int(&j, "schema", 1);
    put_maybe(&j, p, "unit", p->unit);
    json_open(&j, "snodes", '[');
    for (uint32_t i = 0; i < p->n_op; i++)
        put_op(&j, p, order ? order[i] : i);
    json_close(&j, ']');
    put_ends(&j, p);
    json_close(&j, '}');
    json_end(&j);
}
