/* The tables of operators and dtypes: order, signatures, look-up, and facts that passes rely on.
 *
 * test_ops --dump prints both tables as JSON, one line a row, with every signature taken apart;
 * tests/torch/test_ops.py compares that with what PyTorch says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "op/dtype.h"
#include "op/ops.h"

struct fixture {
    struct mem mem;
    struct arena arena;
};

static int set_up(void **state)
{
    static struct fixture f;

    mem_init(&f.mem, NULL);
    arena_init(&f.arena, &f.mem);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    arena_destroy(&((struct fixture *)*state)->arena);
    return 0;
}

static uint32_t find(const char *target)
{
    return op_find(target, strlen(target));
}

static const char *found(const char *target)
{
    return op_at(find(target))->name;
}

/* The signature of an operator that must exist. */
static struct op_sig sig_of(void **state, const char *name)
{
    struct op_sig sig;
    uint32_t op = find(name);

    if (!op)
        fail_msg("%s is not in the table", name);
    assert_true(op_sig_parse(&((struct fixture *)*state)->arena, op_at(op), &sig, NULL));
    return sig;
}

static int param(const struct op_sig *sig, const char *name)
{
    return op_param_find(sig, name, strlen(name));
}

/* ---- the whole table ------------------------------------------------------------------------- */

static void test_order(void **state)
{
    (void)state;
    assert_true(op_count() > 1000);
    for (uint32_t op = 2; op <= op_count(); op++)
        if (strcmp(op_at(op - 1)->name, op_at(op)->name) >= 0)
            fail_msg("%s must stand before %s", op_at(op)->name, op_at(op - 1)->name);
}

static void test_unknown(void **state)
{
    (void)state;
    assert_string_equal(op_at(0)->name, "");
    assert_int_equal(op_at(0)->cls, OP_CLASS_END);
    assert_ptr_equal(op_at(op_count() + 1), op_at(0));
    assert_ptr_equal(op_at(UINT32_MAX), op_at(0));
    assert_string_equal(op_class_name(OP_CLASS_END), "unknown");
    assert_string_equal(op_class_name(OP_POINTWISE), "pointwise");
    assert_string_equal(op_shape_name(OP_SHAPE_broadcast), "broadcast");
}

static void test_signatures_parse(void **state)
{
    struct fixture *f = *state;

    for (uint32_t op = 1; op <= op_count(); op++) {
        const struct op_row *row = op_at(op);
        struct op_sig sig;
        const char *at = "";
        bool mutates = false;

        if (!op_sig_parse(&f->arena, row, &sig, &at))
            fail_msg("%s: cannot read the signature from here on: '%s'", row->name, at);
        for (uint32_t p = 0; p < sig.n_params; p++) {
            mutates |= sig.params[p].mutated;
            for (uint32_t q = 0; q < p; q++)
                if (*sig.params[p].name && strcmp(sig.params[p].name, sig.params[q].name) == 0)
                    fail_msg("%s: two parameters '%s'", row->name, sig.params[p].name);
        }
        if (mutates != !!(row->flags & OP_F_MUTATES))
            fail_msg("%s: F_MUTATES and the signature disagree", row->name);
        if ((row->shape == OP_SHAPE_void) != (sig.n_results == 0))
            if (row->shape != OP_SHAPE_none)
                fail_msg("%s: shape 'void' is for operators without result", row->name);
        /* A letter on a result that no parameter has would be a mistake. */
        for (uint32_t r = 0; r < sig.n_results; r++)
            if (sig.results[r].alias && op_result_alias_of(&sig, r) < 0)
                fail_msg("%s: result %u aliases nothing", row->name, (unsigned)r);
    }
}

/* What a class promises must be in the signature. */
static void test_classes_fit(void **state)
{
    struct fixture *f = *state;

    for (uint32_t op = 1; op <= op_count(); op++) {
        const struct op_row *row = op_at(op);
        struct op_sig sig;
        bool shares = false;

        assert_true(op_sig_parse(&f->arena, row, &sig, NULL));
        for (uint32_t r = 0; r < sig.n_results; r++)
            shares |= sig.results[r].alias != 0;
        bool communicates = row->cls == OP_COLLECTIVE || row->cls == OP_WAIT ||
                            row->cls == OP_P2P || row->cls == OP_SYNC_COLLECTIVE;
        if (row->cls == OP_VIEW && !shares)
            fail_msg("%s: a view whose result aliases nothing", row->name);
        if (row->cls == OP_WAIT && (sig.n_params != 1 || !op_result_aliases(&sig, 0, 0)))
            fail_msg("%s: a wait returns its one operand", row->name);
        if (communicates && !(row->flags & OP_F_EFFECT))
            fail_msg("%s: communication is never dead", row->name);
        if (row->shape == OP_SHAPE_self && !shares)
            fail_msg("%s: shape 'self' and a fresh result", row->name);
        if ((row->flags & OP_F_MAYBE) && !shares && !(row->flags & OP_F_MUTATES))
            fail_msg("%s: F_MAYBE is about aliases and writes, and there is none", row->name);
        if ((row->flags & OP_F_METADATA) && (row->flags & (OP_F_EFFECT | OP_F_MUTATES)))
            fail_msg("%s: metadata only, and an effect", row->name);
        if ((row->form != OP_FORM_CALL) != (row->symbol != NULL))
            fail_msg("%s: symbol and form go together", row->name);
    }
}

/* ---- look-up --------------------------------------------------------------------------------- */

static void test_every_row_is_found(void **state)
{
    char text[256];

    (void)state;
    for (uint32_t op = 1; op <= op_count(); op++) {
        const char *name = op_at(op)->name;

        assert_int_equal(find(name), op);
        snprintf(text, sizeof(text), "torch.ops.%s", name);
        assert_int_equal(find(text), op);
        /* Only as many bytes as its length says. */
        snprintf(text, sizeof(text), "%s!", name);
        assert_int_equal(op_find(text, strlen(name)), op);
        assert_int_equal(find(text), 0);
    }
}

static void test_spellings(void **state)
{
    static const struct {
        const char *text, *name;
    } cases[] = {
        {"torch.ops.aten.add.Tensor", "aten.add.Tensor"},
        {"aten.add.Tensor", "aten.add.Tensor"},
        {"torch.ops.aten.cat", "aten.cat.default"},
        {"torch.ops.aten.reshape", "aten.reshape.default"},
        {"torch.ops.aten.split", "aten.split.default"},
        {"torch.ops.aten.add", "aten.add.Tensor"},
        {"torch.ops.aten.where", "aten.where.self"},
        {"torch.ops.aten.select", "aten.select.int"},
        {"torch.ops.aten.add_", "aten.add_.Tensor"},
        {"torch.ops._c10d_functional.all_reduce", "_c10d_functional.all_reduce.default"},
        {"torch.ops.higher_order.cond", "higher_order.cond"},
        {"torch.ops.higher_order.control_deps", "higher_order.control_deps"},
        {"operator.add", "operator.add"},
        {"_operator.getitem", "operator.getitem"},
        {"_operator_not_", "operator.not_"},
        {"_operator_not__1", "operator.not_"},
        {"_operator_is_not", "operator.is_not"},
        {"math.sqrt", "math.sqrt"},
        {"math_sqrt_12", "math.sqrt"},
        {"torch_Tensor_add_", "torch.Tensor.add_"},
        {"torch.sym_sum", "torch.sym_sum"},
        {"getattr", "builtins.getattr"},
        {"builtins.len", "builtins.len"},
        {"len", "builtins.len"},
        /* and what is none of these */
        {"", ""},
        {"torch", ""},
        {"torch.ops", ""},
        {"torch.ops.", ""},
        {"torch.ops.aten", ""},
        {"torch.ops.aten.", ""},
        {"torch.ops.aten.cat.", ""},
        {"torch.ops.aten.add.Foo", ""},
        {"torch.ops.aten.add.Tensor.x", ""},
        {"torch.ops.aten.ad", ""},
        {"aten", ""},
        {"operator", ""},
        {"_1", ""},
        {"_operator_", ""},
        {"__main___helper", ""},
        {"torch.ops.my.inpl.default", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (strcmp(found(cases[i].text), cases[i].name) != 0)
            fail_msg("%s is taken for '%s', not for '%s'", cases[i].text, found(cases[i].text),
                     cases[i].name);
}

static void test_hostile_names(void **state)
{
    char longest[5000];

    (void)state;
    memset(longest, 'a', sizeof(longest));
    assert_int_equal(op_find(longest, sizeof(longest)), 0);
    memset(longest, '1', sizeof(longest));
    assert_int_equal(op_find(longest, sizeof(longest)), 0);
    memset(longest, '.', sizeof(longest));
    assert_int_equal(op_find(longest, sizeof(longest)), 0);
    assert_int_equal(op_find("aten.mm\0default", 15), 0);
    assert_int_equal(op_find("aten.mm.default\0", 16), 0);
    assert_int_equal(op_find("\0", 1), 0);
    assert_int_equal(op_find("\xff\xfe", 2), 0);
}

static void test_symbols(void **state)
{
    static const struct {
        enum op_form form;
        const char *symbol, *name;
    } cases[] = {
        {OP_FORM_BINARY, "+", "operator.add"},
        {OP_FORM_BINARY, "//", "operator.floordiv"},
        {OP_FORM_BINARY, "**", "operator.pow"},
        {OP_FORM_BINARY, "&", "operator.and_"},
        {OP_FORM_BINARY, ">=", "operator.ge"},
        {OP_FORM_UNARY, "-", "operator.neg"},
        {OP_FORM_UNARY, "~", "operator.invert"},
        {OP_FORM_AUGMENTED, "+=", "operator.iadd"},
        {OP_FORM_AUGMENTED, "@=", "operator.imatmul"},
        {OP_FORM_GETITEM, "[]", "operator.getitem"},
        {OP_FORM_SETITEM, "[]=", "operator.setitem"},
        {OP_FORM_BINARY, "+=", ""},
        {OP_FORM_UNARY, "*", ""},
        {OP_FORM_BINARY, "", ""},
    };
    unsigned n[OP_FORM_SETITEM + 1] = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint32_t op = op_by_symbol(cases[i].form, cases[i].symbol, strlen(cases[i].symbol));

        assert_string_equal(op_at(op)->name, cases[i].name);
    }
    for (uint32_t op = 1; op <= op_count(); op++)
        n[op_at(op)->form]++;
    assert_int_equal(n[OP_FORM_BINARY], 19);
    assert_int_equal(n[OP_FORM_UNARY], 3);
    assert_int_equal(n[OP_FORM_AUGMENTED], 13);
}

/* ---- facts ----------------------------------------------------------------------------------- */

static void test_parameters(void **state)
{
    struct op_sig s = sig_of(state, "aten._to_copy.default");

    assert_int_equal(param(&s, "dtype"), 1);
    assert_int_equal(s.params[1].type, OP_T_DTYPE);
    assert_true(s.params[1].optional && s.params[1].kwarg_only);
    assert_string_equal(s.params[1].default_text, "None");
    assert_false(s.params[0].kwarg_only || s.params[0].default_text);
    assert_int_equal(param(&s, "nothing"), -1);
    assert_int_equal(param(&s, ""), -1);

    s = sig_of(state, "aten.index.Tensor");
    assert_true(s.params[1].items_optional && !s.params[1].optional && s.params[1].depth == 1);
    s = sig_of(state, "aten.sum.dim_IntList");
    assert_true(s.params[1].optional && s.params[1].depth == 1 && s.params[1].list_size == 1);
    s = sig_of(state, "aten.native_layer_norm_backward.default");
    assert_true(s.params[7].type == OP_T_BOOL && s.params[7].list_size == 3);
    assert_int_equal(s.n_results, 3);
    s = sig_of(state, "aten.max.dim");
    assert_string_equal(s.results[1].name, "indices");
    s = sig_of(state, "aten.avg_pool2d.default");
    assert_string_equal(s.params[param(&s, "stride")].default_text, "[]");
    s = sig_of(state, "aten.gelu.default");
    assert_string_equal(s.params[1].default_text, "'none'");
    s = sig_of(state, "aten.upsample_bicubic2d.default");
    assert_int_equal(s.params[1].list_size, 2);
    s = sig_of(state, "higher_order.invoke_subgraph");
    assert_true(s.params[2].rest && s.params[0].type == OP_T_GRAPH);
    s = sig_of(state, "aten._scaled_dot_product_cudnn_attention_backward.default");
    assert_true(s.params[param(&s, "attn_bias")].optional);
}

static void test_mutation(void **state)
{
    struct op_sig s = sig_of(state, "aten.copy_.default");

    assert_true(op_param_mutated(&s, 0) && !op_param_mutated(&s, 1));
    assert_true(op_result_aliases(&s, 0, 0) && !op_result_aliases(&s, 0, 1));
    assert_int_equal(op_result_alias_of(&s, 0), 0);
    assert_false(op_param_mutated(&s, 99) || op_result_aliases(&s, 0, 99));

    s = sig_of(state, "_c10d_functional.all_reduce_.default");
    assert_true(op_param_mutated(&s, 0) && op_result_aliases(&s, 0, 0));
    s = sig_of(state, "_c10d_functional.all_reduce.default");
    assert_true(!op_param_mutated(&s, 0) && op_result_alias_of(&s, 0) == -1);
    s = sig_of(state, "_c10d_functional.all_reduce_coalesced_.default");
    assert_true(op_param_mutated(&s, 0) && op_result_aliases(&s, 0, 0));
    s = sig_of(state, "_c10d_functional.all_gather_into_tensor_out.default");
    assert_true(op_param_mutated(&s, (uint32_t)param(&s, "out")) && !op_param_mutated(&s, 0));
    assert_int_equal(op_result_alias_of(&s, 0), param(&s, "out"));
    s = sig_of(state, "fsdp.split_with_sizes_copy.default");
    assert_true(op_param_mutated(&s, (uint32_t)param(&s, "out")) && s.n_results == 0);
    s = sig_of(state, "aten._foreach_add_.Scalar");
    assert_true(op_param_mutated(&s, 0) && s.n_results == 0);
}

static void test_aliases(void **state)
{
    struct op_sig s = sig_of(state, "aten.split.Tensor");

    assert_true(op_result_aliases(&s, 0, 0) && s.results[0].depth == 1);
    s = sig_of(state, "aten.clone.default");
    assert_int_equal(op_result_alias_of(&s, 0), -1);
    assert_true(op_at(find("aten.reshape.default"))->flags & OP_F_MAYBE);
    assert_false(op_at(find("aten.view.default"))->flags & OP_F_MAYBE);
}

/* Where the schema and the operator's behavior differ. */
static void test_lies(void **state)
{
    struct fixture *f = *state;
    struct op_sig s;

    assert_true(op_sig_parse_schema(&f->arena, op_at(find("aten._unsafe_view")), &s, NULL));
    assert_int_equal(op_result_alias_of(&s, 0), -1);
    s = sig_of(state, "aten._unsafe_view.default");
    assert_int_equal(op_result_alias_of(&s, 0), 0);
    s = sig_of(state, "_c10d_functional.wait_tensor.default");
    assert_true(op_result_aliases(&s, 0, 0) && !op_param_mutated(&s, 0));
    s = sig_of(state, "fsdp.all_gather_copy_in.default");
    int out = param(&s, "all_gather_output");
    assert_true(op_param_mutated(&s, (uint32_t)out));
    assert_true(op_result_alias_of(&s, 0) == out && op_result_alias_of(&s, 1) == out);
    s = sig_of(state, "inductor.resize_storage_bytes_.default");
    assert_true(op_param_mutated(&s, 0));
    s = sig_of(state, "aten.native_batch_norm.default");
    assert_true(op_param_mutated(&s, (uint32_t)param(&s, "running_var")));
    assert_false(op_param_mutated(&s, 0));
}

static void test_flags(void **state)
{
    (void)state;
    assert_true(op_at(find("aten.sym_size.int"))->flags & OP_F_METADATA);
    assert_true(op_at(find("aten._assert_scalar.default"))->flags & OP_F_EFFECT);
    assert_true(op_at(find("aten.native_dropout.default"))->flags & OP_F_RANDOM);
    assert_true(op_at(find("aten.nonzero.default"))->flags & OP_F_DATADEP);
    assert_true(op_at(find("_c10d_functional.reduce_scatter_tensor"))->flags & OP_F_CONTIG);
    assert_false(op_at(find("_c10d_functional.all_reduce"))->flags & OP_F_CONTIG);
    assert_true(op_at(find("aten._scaled_mm.default"))->flags & OP_F_EXACT);
    assert_int_equal(op_at(find("_dtensor.shard_dim_alltoall"))->cls, OP_SYNC_COLLECTIVE);
    assert_int_equal(op_at(find("_c10d_functional.irecv"))->cls, OP_P2P);
    assert_string_equal(op_flag_name(1), "mutates");
    assert_null(op_flag_name(99));
}

static void test_bad_signatures(void **state)
{
    static const char *const bad[] = {
        "",
        "T",
        "T x",
        "x -> T",
        "T x ->",
        "T x -> ",
        "T x -> T,",
        "T(a x -> T",
        "T(A) x -> T",
        "T[ x -> T",
        "T x= -> T",
        "T x T y -> T",
        "T x, -> T",
        "T x -> T y z",
        "T x -> () y",
        "*, -> T",
        "tensor x -> T",
        "T x -> T(",
        "T x\n-> T",
    };
    static const char *const bad_lies[] = {
        "", "y(a)", "x", "x(a", "x(a) ->", "x(a) -> ", "x(a) -> (b", "x(a) -> (a), (a)", "x(a),"};
    struct fixture *f = *state;
    struct op_sig sig;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct op_row row = {.name = "x", .signature = bad[i]};
        const char *at = NULL;

        if (op_sig_parse(&f->arena, &row, &sig, &at))
            fail_msg("'%s' was taken for a signature", bad[i]);
        assert_true(at >= bad[i] && at <= bad[i] + strlen(bad[i]));
    }
    for (size_t i = 0; i < sizeof(bad_lies) / sizeof(*bad_lies); i++) {
        struct op_row row = {.name = "x", .signature = "T x -> T", .lies = bad_lies[i]};

        if (op_sig_parse(&f->arena, &row, &sig, NULL))
            fail_msg("'%s' was taken for marks", bad_lies[i]);
    }
}

/* ---- dtypes ---------------------------------------------------------------------------------- */

static enum dtype abbr(const char *text)
{
    return dtype_by_abbr(text, strlen(text));
}

static enum dtype named(const char *text)
{
    return dtype_by_name(text, strlen(text));
}

static void test_dtype_names(void **state)
{
    (void)state;
    for (unsigned d = 1; d < DTYPE_END; d++) {
        const struct dtype_row *row = dtype_at((enum dtype)d);
        char text[64];

        assert_int_equal(named(row->name), d);
        snprintf(text, sizeof(text), "torch.%s", row->name);
        assert_int_equal(named(text), d);
        if (*row->abbr)
            assert_int_equal(abbr(row->abbr), d);
        assert_int_equal(dtype_by_scalar_type(row->scalar_type), d);
        for (unsigned e = 1; e < d; e++) {
            const struct dtype_row *other = dtype_at((enum dtype)e);

            assert_true(other->scalar_type != row->scalar_type);
            assert_true(other->index_2_13 != row->index_2_13);
        }
    }
    assert_int_equal(named("torch.half"), DTYPE_F16);
    assert_int_equal(named("long"), DTYPE_I64);
    assert_int_equal(abbr("b16"), DTYPE_B16X1);
    assert_int_equal(abbr("b8"), DTYPE_B8);
    assert_int_equal(abbr("f4e2m1fnx2"), DTYPE_F4E2M1FNX2);
    assert_int_equal(abbr(""), DTYPE_NONE);
    assert_int_equal(named(""), DTYPE_NONE);
    assert_int_equal(named("torch."), DTYPE_NONE);
    assert_int_equal(abbr("f3"), DTYPE_NONE);
    assert_int_equal(abbr("f322"), DTYPE_NONE);
    assert_int_equal(named("torch.strided"), DTYPE_NONE);
    assert_int_equal(dtype_by_scalar_type(-1), DTYPE_NONE);
    assert_int_equal(dtype_at(DTYPE_END)->bytes, 0);
    assert_int_equal(dtype_at(DTYPE_C64)->bytes, 8);
}

static void test_promotion(void **state)
{
    (void)state;
    for (unsigned a = 0; a < DTYPE_END; a++)
        for (unsigned b = 0; b < DTYPE_END; b++)
            assert_int_equal(dtype_promote((enum dtype)a, (enum dtype)b),
                             dtype_promote((enum dtype)b, (enum dtype)a));
    assert_int_equal(dtype_promote(DTYPE_F16, DTYPE_BF16), DTYPE_F32);
    assert_int_equal(dtype_promote(DTYPE_I8, DTYPE_U8), DTYPE_I16);
    assert_int_equal(dtype_promote(DTYPE_I64, DTYPE_BF16), DTYPE_BF16);
    assert_int_equal(dtype_promote(DTYPE_C32, DTYPE_F64), DTYPE_C128);
    assert_int_equal(dtype_promote(DTYPE_C64, DTYPE_F32), DTYPE_C64);
    assert_int_equal(dtype_promote(DTYPE_F8E5M2, DTYPE_F32), DTYPE_NONE);
    assert_int_equal(dtype_promote(DTYPE_B8, DTYPE_U8), DTYPE_U8);
    assert_int_equal(dtype_promote(DTYPE_NONE, DTYPE_F32), DTYPE_NONE);
    assert_int_equal(dtype_complex_of(DTYPE_F64), DTYPE_C128);
    assert_int_equal(dtype_real_of(DTYPE_C32), DTYPE_F16);
    assert_true(dtype_is_float(DTYPE_F8E4M3FN) && !dtype_is_float(DTYPE_C64));
    assert_false(dtype_is_float(DTYPE_NONE));
}

/* ---- --dump ---------------------------------------------------------------------------------- */

static void put_string(const char *s)
{
    putchar('"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            putchar('\\');
        putchar(*s);
    }
    putchar('"');
}

static void put_key(const char *key, const char *value)
{
    printf(", \"%s\": ", key);
    if (value)
        put_string(value);
    else
        fputs("null", stdout);
}

static void put_params(const char *key, const struct op_param *p, uint32_t n)
{
    printf("\"%s\": [", key);
    for (uint32_t i = 0; i < n; i++, p++) {
        printf("%s{\"type\": %d, \"depth\": %d, \"list_size\": %d, \"optional\": %d", i ? ", " : "",
               p->type, p->depth, p->list_size, p->optional);
        printf(", \"items_optional\": %d, \"kwarg_only\": %d, \"rest\": %d, \"mutated\": %d",
               p->items_optional, p->kwarg_only, p->rest, p->mutated);
        put_key("name", p->name);
        put_key("default", p->default_text);
        put_key("alias", p->alias ? (const char[]){p->alias, 0} : "");
        putchar('}');
    }
    putchar(']');
}

static void put_sig(const char *key, const struct op_sig *sig)
{
    printf(", \"%s\": {", key);
    put_params("params", sig->params, sig->n_params);
    fputs(", ", stdout);
    put_params("results", sig->results, sig->n_results);
    putchar('}');
}

static int dump(void)
{
    struct fixture *f;
    void *state;

    set_up(&state);
    f = state;
    for (uint32_t op = 1; op <= op_count(); op++) {
        const struct op_row *row = op_at(op);
        struct op_sig schema, truth;

        if (!op_sig_parse_schema(&f->arena, row, &schema, NULL) ||
            !op_sig_parse(&f->arena, row, &truth, NULL))
            return 1;
        printf("{\"kind\": \"op\"");
        put_key("name", row->name);
        put_key("class", op_class_name(row->cls));
        put_key("shape", op_shape_name(row->shape));
        put_key("flops", op_flops_name(row->flops));
        put_key("moves", op_moves_name(row->moves));
        put_key("kernel", op_kernel_name(row->kernel));
        put_key("symbol", row->symbol);
        put_key("lies", row->lies);
        printf(", \"flags\": [");
        for (unsigned i = 0, n = 0; op_flag_name(i); i++)
            if (row->flags >> i & 1)
                printf("%s\"%s\"", n++ ? ", " : "", op_flag_name(i));
        putchar(']');
        put_sig("schema", &schema);
        put_sig("truth", &truth);
        puts("}");
    }
    for (unsigned d = 1; d < DTYPE_END; d++) {
        const struct dtype_row *row = dtype_at((enum dtype)d);

        printf("{\"kind\": \"dtype\", \"bytes\": %d, \"bits\": %d, \"scalar_type\": %d", row->bytes,
               row->bits, row->scalar_type);
        printf(", \"index\": %d, \"is_float\": %d, \"category\": %d", row->index_2_13,
               dtype_is_float((enum dtype)d), row->category);
        put_key("name", row->name);
        put_key("aliases", row->aliases);
        put_key("abbr", row->abbr);
        printf(", \"promote\": [");
        for (unsigned e = 1; e < DTYPE_END; e++) {
            printf("%s", e > 1 ? ", " : "");
            put_string(dtype_at(dtype_promote((enum dtype)d, (enum dtype)e))->name);
        }
        puts("]}");
    }
    tear_down(&state);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_signatures_parse),
        cmocka_unit_test(test_classes_fit),
        cmocka_unit_test(test_every_row_is_found),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_hostile_names),
        cmocka_unit_test(test_symbols),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_mutation),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_lies),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_bad_signatures),
        cmocka_unit_test(test_dtype_names),
        cmocka_unit_test(test_promotion),
    };

    if (argc == 2 && strcmp(argv[1], "--dump") == 0)
        return dump();
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
