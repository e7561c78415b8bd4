/* A program as text, which program_read() reads:
 *
 *   program NAME
 *   group NAME size 8 rank 0
 *   input NAME "f32[8, 4][4, 1]cuda:0" bytes 128 fixed freeable
 *   buffer NAME "f32[8][1]cuda:0" bytes 32 flexible at 0 output
 *   op NAME gemm aten.mm.default reads a,b writes c ns 5.1
 *   op NAME collective _c10d_functional.all_reduce_.default mutates c coll all_reduce sum group 0
 *      message 32 async ns 9                          (on one line)
 *   op NAME wait _c10d_functional.wait_tensor.default ends x mutates c after y fake z
 *
 * Words are separated by blanks, lists by commas; # begins a comment. Defaults are
 * not printed.
 */
#include <inttypes.h>

#include "lower/gaps.h"
#include "lower/program.h"

static const char *const layout_name[] = {"flexible", "fixed", "comm"};

/* A word, quoted if necessary: names of groups and unknown operators may contain anything. */
static void put_word(struct buf *b, const char *s)
{
    if (*s != '\0' && strpbrk(s, " \t\r\n,#\"") == NULL) {
        buf_str(b, s);
        return;
    }
    buf_chr(b, '"');
    for (; *s != '\0'; s++)
        buf_chr(b, *s == '"' ? '\'' : (unsigned char)*s < ' ' ? ' ' : *s);
    buf_chr(b, '"');
}

static void put_list(struct buf *b, const char *keyword, bool *first, const char *name)
{
    buf_printf(b, *first ? " %s " : ",", keyword);
    buf_str(b, name);
    *first = false;
}

static void put_uses(struct buf *b, const struct program *p, uint32_t op, enum program_access how,
                     const char *keyword)
{
    bool first = true;

    for (uint32_t i = p->use_at[op]; i < p->use_at[op + 1]; i++)
        if (p->use[i].how == how)
            put_list(b, keyword, &first, program_str(p, p->buf[p->use[i].buf].name));
}

/* Orders that do not follow from the buffers. */
static void put_order(struct buf *b, const struct program *p, uint32_t op, unsigned flags,
                      const char *keyword)
{
    bool first = true;

    for (uint32_t i = p->dep_at[op]; i < p->dep_at[op + 1]; i++)
        if (p->dep[i].buf == PROGRAM_NONE && p->dep[i].flags == flags)
            put_list(b, keyword, &first, program_str(p, p->op[p->dep[i].op].name));
}

static void put_collective(struct buf *b, const struct program *p, const struct program_op *op)
{
    if (op->coll == 0)
        return;
    buf_printf(b, " coll %s", tuck_coll_name((tuck_coll)op->coll));
    if (op->reduce_op != 0) {
        buf_str(b, " reduce ");
        put_word(b, program_str(p, op->reduce_op));
    }
    if (op->group != PROGRAM_NONE) {
        buf_str(b, " group ");
        put_word(b, program_str(p, p->group[op->group].name));
    }
    if (op->message >= 0)
        buf_printf(b, " message %" PRId64, op->message);
    if (op->algorithm != 0)
        buf_printf(b, " by %s", program_str(p, op->algorithm));
    if (op->flags & PROGRAM_ASYNC)
        buf_str(b, " async");
}

static void put_op(struct buf *b, const struct program *p, uint32_t i)
{
    const struct program_op *op = &p->op[i];
    uint32_t n = p->node_at[i + 1] - p->node_at[i];
    bool first = true;

    buf_printf(b, "op %s %s ", program_str(p, op->name), program_kind_name[op->kind]);
    put_word(b, program_str(p, op->kernel));
    /* An op named after its only node needs no list. */
    if (n != 1 || p->node[p->node_at[i]] != op->name)
        for (uint32_t k = p->node_at[i]; k < p->node_at[i + 1]; k++)
            if (*program_str(p, p->node[k])) /* a statement kept verbatim may define nothing */
                put_list(b, "nodes", &first, program_str(p, p->node[k]));
    put_uses(b, p, i, PROGRAM_READS, "reads");
    put_uses(b, p, i, PROGRAM_MUTATES, "mutates");
    put_uses(b, p, i, PROGRAM_WRITES, "writes");
    first = true;
    for (uint32_t k = p->wait_at[i]; k < p->wait_at[i + 1]; k++)
        put_list(b, "ends", &first, program_str(p, p->op[p->wait[k]].name));
    put_order(b, p, i, 0, "after");
    put_order(b, p, i, PROGRAM_WEAK, "weak");
    put_order(b, p, i, PROGRAM_FAKE, "fake");
    put_collective(b, p, op);
    if (op->flags & PROGRAM_BARRIER)
        buf_str(b, " barrier");
    if (op->flags & PROGRAM_LOOP)
        buf_str(b, " loop");
    if (op->flags & PROGRAM_NOP)
        buf_str(b, " nop");
    if (op->ps >= 0) {
        buf_str(b, " ns ");
        buf_float(b, ns_of_ps(op->ps));
    }
    if (op->flops > 0)
        buf_printf(b, " flops %" PRId64, op->flops);
    buf_chr(b, '\n');
}

static void put_buffer(struct buf *b, const struct program *p, const struct program_buf *f)
{
    buf_printf(b, "%s %s", f->flags & PROGRAM_INPUT ? "input" : "buffer", program_str(p, f->name));
    if (f->type != 0)
        buf_printf(b, " \"%s\"", program_str(p, f->type));
    if (!(f->flags & PROGRAM_UNKNOWN))
        buf_printf(b, " bytes %" PRId64, f->bytes);
    buf_printf(b, " %s", layout_name[f->layout]);
    if (f->layout == PROGRAM_COMM && f->group != PROGRAM_NONE) {
        buf_str(b, " group ");
        put_word(b, program_str(p, p->group[f->group].name));
    }
    if (f->offset >= 0)
        buf_printf(b, " at %" PRId64, f->offset);
    if (f->flags & PROGRAM_FREEABLE)
        buf_str(b, " freeable");
    if (f->flags & PROGRAM_OUTPUT)
        buf_str(b, " output");
    if (f->flags & PROGRAM_UNWAITED)
        buf_str(b, " unwaited");
    buf_chr(b, '\n');
}

static void put_memory(struct buf *b, const struct program *p)
{
    uint32_t unknown = gaps_of(p).n_buf;
    const char *least = unknown > 0 ? "at least " : "";

    buf_printf(b,
               "# peak %s%" PRId64 " bytes, arena %s%" PRId64 " bytes, resident inputs %" PRId64
               " bytes\n",
               least, p->peak, least, p->arena_bytes, p->resident);
    if (unknown > 0)
        buf_printf(b, "# %u buffer%s of unknown size, not counted\n", unknown,
                   unknown == 1 ? "" : "s");
}

void program_print(const struct program *p, struct buf *b)
{
    buf_str(b, "program ");
    put_word(b, program_str(p, p->name));
    buf_chr(b, '\n');
    if (p->peak >= 0)
        put_memory(b, p);
    if (p->comm_digest != 0)
        buf_printf(b, "# heap digest %016" PRIx64 "\n", p->comm_digest);
    for (uint32_t i = 0; i < p->n_group; i++) {
        buf_str(b, "group ");
        put_word(b, program_str(p, p->group[i].name));
        if (p->group[i].size > 0)
            buf_printf(b, " size %" PRId64, p->group[i].size);
        if (p->group[i].rank >= 0)
            buf_printf(b, " rank %" PRId64, p->group[i].rank);
        if (p->heap[i] > 0)
            buf_printf(b, " heap %" PRId64, p->heap[i]);
        buf_chr(b, '\n');
    }
    for (uint32_t i = 0; i < p->n_input; i++)
        put_buffer(b, p, &p->buf[i]);
    for (uint32_t i = 0; i < p->n_op; i++) {
        for (uint32_t k = p->use_at[i]; k < p->use_at[i + 1]; k++)
            if (p->use[k].how == PROGRAM_WRITES)
                put_buffer(b, p, &p->buf[p->use[k].buf]);
        put_op(b, p, i);
    }
}
