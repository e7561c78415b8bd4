/* Random expressions compared with a reference, large ones, and no memory for them. */
#include "support/sym_test.h"

/* ---- Against a reference ------------------------------------------------------------------------
 *
 * Random trees: written with all parentheses, and computed by a few lines that know nothing about
 * canonical forms.
 */

static uint64_t random_state;

static uint32_t rnd(uint32_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % n;
}

enum { N_SYMBOLS = 4, MAX_TREE = 64 };
static const char *const symbol_names[N_SYMBOLS] = {"s0", "s1", "u0", "u1"};

struct tree {
    enum sym_op op;
    int64_t value; /* INT: itself; SYMBOL: which */
    int arg[3];
};

static int grow_tree(struct tree *pool, int *n, int depth, bool truth)
{
    static const enum sym_op numbers[] = {
        SYM_ADD, SYM_ADD, SYM_MUL, SYM_MUL,   SYM_FLOORDIV, SYM_FLOORDIV, SYM_PYMOD,
        SYM_MIN, SYM_MAX, SYM_POW, SYM_WHERE, SYM_ABS,      SYM_MODINDEX, SYM_ADD};
    static const enum sym_op truths[] = {SYM_EQ, SYM_NE,  SYM_LT, SYM_LE, SYM_GT,
                                         SYM_GE, SYM_AND, SYM_OR, SYM_NOT};
    int at = (*n)++;
    struct tree *v = &pool[at];

    *v = (struct tree){.op = truth ? truths[rnd(LENGTH(truths))] : numbers[rnd(LENGTH(numbers))]};
    if (truth && depth <= 1)
        v->op = truths[rnd(6)];
    if (!truth && (depth == 0 || *n > MAX_TREE - 8 || rnd(8) == 0)) {
        v->op = rnd(3) == 0 ? SYM_INT : SYM_SYMBOL;
        v->value = v->op == SYM_INT ? (int64_t)rnd(17) - 6 : rnd(N_SYMBOLS);
        return at;
    }
    int n_arg = sym_rows[v->op].max ? sym_rows[v->op].max : 2;
    bool logic = v->op == SYM_AND || v->op == SYM_OR || v->op == SYM_NOT;

    for (int i = 0; i < n_arg; i++) {
        int arg = grow_tree(pool, n, depth > 0 ? depth - 1 : 0,
                            logic || (v->op == SYM_WHERE && i == 0));

        pool[at].arg[i] = arg;
    }
    if (pool[at].op == SYM_POW) {
        pool[pool[at].arg[1]] = (struct tree){.op = SYM_INT, .value = rnd(4)};
    }
    return at;
}

static int64_t floor_quotient(int64_t a, int64_t b)
{
    int64_t q = a / b;

    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

/* False: no value, or one that is too large for this plain arithmetic. */
static bool reference(const struct tree *pool, int at, const int64_t *symbols, int64_t *out)
{
    const struct tree *v = &pool[at];
    int64_t a[3] = {0}, r = 1;
    int n = sym_rows[v->op].max ? sym_rows[v->op].max : 2;

    if (v->op == SYM_INT || v->op == SYM_SYMBOL) {
        *out = v->op == SYM_INT ? v->value : symbols[v->value];
        return true;
    }
    for (int i = 0; i < n; i++)
        if (!reference(pool, v->arg[i], symbols, &a[i]))
            return false;
    switch (v->op) {
    case SYM_ADD: r = a[0] + a[1]; break;
    case SYM_MUL: r = a[0] * a[1]; break;
    case SYM_FLOORDIV:
        if (a[1] == 0)
            return false;
        r = floor_quotient(a[0], a[1]);
        break;
    case SYM_MODINDEX:
        if (a[1] == 0 || a[2] == 0)
            return false;
        a[0] = floor_quotient(a[0], a[1]);
        r = a[0] - a[2] * floor_quotient(a[0], a[2]);
        break;
    case SYM_PYMOD:
        if (a[1] == 0)
            return false;
        r = a[0] - a[1] * floor_quotient(a[0], a[1]);
        break;
    case SYM_MIN: r = a[0] < a[1] ? a[0] : a[1]; break;
    case SYM_MAX: r = a[0] > a[1] ? a[0] : a[1]; break;
    case SYM_POW:
        for (int64_t i = 0; i < a[1] && llabs(r) < (1 << 30); i++)
            r *= a[0];
        break;
    case SYM_ABS: r = llabs(a[0]); break;
    case SYM_WHERE: r = a[0] ? a[1] : a[2]; break;
    case SYM_EQ: r = a[0] == a[1]; break;
    case SYM_NE: r = a[0] != a[1]; break;
    case SYM_LT: r = a[0] < a[1]; break;
    case SYM_LE: r = a[0] <= a[1]; break;
    case SYM_GT: r = a[0] > a[1]; break;
    case SYM_GE: r = a[0] >= a[1]; break;
    case SYM_AND: r = a[0] && a[1]; break;
    case SYM_OR: r = a[0] || a[1]; break;
    case SYM_NOT: r = !a[0]; break;
    default: return false;
    }
    *out = r;
    return llabs(r) < (1 << 30);
}

static void write_tree(const struct tree *pool, int at, struct buf *b)
{
    const struct tree *v = &pool[at];
    const char *infix = v->op == SYM_ADD        ? " + "
                        : v->op == SYM_MUL      ? "*"
                        : v->op == SYM_FLOORDIV ? "//"
                        : v->op == SYM_POW      ? "**"
                                                : ", ";
    int n = sym_rows[v->op].max ? sym_rows[v->op].max : 2;

    if (v->op == SYM_INT) {
        buf_printf(b, "(%lld)", (long long)v->value);
    } else if (v->op == SYM_SYMBOL) {
        buf_str(b, symbol_names[v->value]);
    } else {
        buf_printf(b, "%s(", *infix == ',' ? sym_rows[v->op].name : "");
        for (int i = 0; i < n; i++) {
            buf_str(b, i ? infix : "");
            write_tree(pool, v->arg[i], b);
        }
        buf_chr(b, ')');
    }
}

static sym_id build_tree(struct symtab *t, const struct tree *pool, int at)
{
    const struct tree *v = &pool[at];
    sym_id args[3];
    int n = sym_rows[v->op].max ? sym_rows[v->op].max : 2;

    if (v->op == SYM_INT)
        return sym_int(t, v->value);
    if (v->op == SYM_SYMBOL)
        return sym_symbol(t, symbol_names[v->value], 2);
    for (int i = 0; i < n; i++)
        args[i] = build_tree(t, pool, v->arg[i]);
    return sym_make(t, v->op, args, (uint32_t)n);
}

static bool lookup_random(void *ctx, const char *name, struct sym_num *out)
{
    for (int i = 0; i < N_SYMBOLS; i++) {
        if (strcmp(name, symbol_names[i]) == 0) {
            *out = sym_num_int(((int64_t *)ctx)[i]);
            return true;
        }
    }
    return false;
}

/* A form that was multiplied out may have too large intermediate values although the result is
 * small. */
static void check_value(struct fixture *f, sym_id id, int64_t *symbols, int64_t expected,
                        bool may_overflow, const char *text)
{
    struct sym_num v = {.kind = SYM_T_ANY};
    enum sym_status st = sym_eval(&f->t, id, lookup_random, symbols, &v);

    if (st == SYM_OVERFLOW && may_overflow)
        return;
    if (st != SYM_OK || v.kind == SYM_T_FLOAT || v.i != expected)
        fail_msg("%s\nhas become %s\nwith %lld %lld %lld %lld it is %lld, not %lld (status %d)",
                 text, print(f, id), (long long)symbols[0], (long long)symbols[1],
                 (long long)symbols[2], (long long)symbols[3], (long long)expected, (long long)v.i,
                 (int)st);
}

static void check_random(struct fixture *f)
{
    struct tree pool[4 * MAX_TREE];
    struct buf text;
    int rounds = getenv("TUCK_SOAK") ? 1000000 : 4000, refused = 0;

    buf_init(&text, &f->mem);
    for (int round = 0; round < rounds; round++) {
        int n = 0, root = grow_tree(pool, &n, 1 + (int)rnd(5), rnd(5) == 0);

        text.len = 0;
        write_tree(pool, root, &text);
        sym_id id = build_tree(&f->t, pool, root), normal = sym_normal(&f->t, id);
        assert_int_equal(id, sym_parse(&f->t, text.at, text.len));
        if (id == 0 || normal == 0) { /* a constant that does not fit */
            refused++;
            continue;
        }
        if (parse(f, print(f, id)) != id)
            fail_msg("%s\nis printed %s\nand read differently", buf_text(&text), print(f, id));
        for (int i = 0; i < 8; i++) {
            int64_t symbols[N_SYMBOLS], expected;

            for (int k = 0; k < N_SYMBOLS; k++) {
                symbols[k] = (int64_t)rnd(i < 4 ? 9 : 100) - (f->t.assume ? 0 : i < 4 ? 4 : 50);
            }
            if (!reference(pool, root, symbols, &expected))
                continue;
            check_value(f, id, symbols, expected, false, buf_text(&text));
            check_value(f, normal, symbols, expected, true, buf_text(&text));
        }
    }
    assert_in_range(refused, 0, rounds / 100);
    buf_destroy(&text);
}

static void test_random(void **state)
{
    (void)state;
    random_state = seed_of("test_sym");
    assert_true(with_table(NULL, 0, check_random));
    assert_true(with_table(NULL, SYM_NONNEG_S | SYM_NONNEG_U, check_random));
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

static sym_id parse_repeated(struct fixture *f, const char *before, const char *core,
                             const char *after, int n)
{
    struct buf b;

    buf_init(&b, &f->mem);
    for (int i = 0; i < n; i++)
        buf_str(&b, before);
    buf_str(&b, core);
    for (int i = 0; i < n; i++)
        buf_str(&b, after);
    sym_id id = sym_parse(&f->t, b.at, b.len);
    buf_destroy(&b);
    return id;
}

static void check_sizes(struct fixture *f)
{
    struct buf b;
    struct sym_num v;
    int64_t symbols[N_SYMBOLS] = {3, 5, 7, 11};

    assert_int_equal(parse_repeated(f, "(", "s0", ")", 100000), parse(f, "s0"));
    assert_int_equal(parse_repeated(f, "-", "s0", "", 100000), parse(f, "s0"));
    assert_int_equal(parse_repeated(f, "(", "s0", " + s1)", 1000), parse(f, "s0 + 1000*s1"));
    assert_int_equal(parse_repeated(f, "(", "s0", "//2)", 62), parse(f, "s0//4611686018427387904"));
    assert_int_equal(parse_repeated(f, "(", "", "", 100000), 0);
    assert_int_equal(parse_repeated(f, "f(", "s0", ")", 100000), 0);
    assert_int_not_equal(parse_repeated(f, "f(", "s0", ")", SYM_MAX_DEPTH - 1), 0);
    assert_int_equal(parse_repeated(f, "f(", "s0", ")", SYM_MAX_DEPTH), 0);
    assert_int_equal(parse_repeated(f, "2**", "2", "", 1000), 0);

    /* A sum as wide as it comes, backwards. */
    buf_init(&b, &f->mem);
    for (int i = 20000; i > 0; i--)
        buf_printf(&b, "%su%d", i < 20000 ? " + " : "", i);
    sym_id wide = sym_parse(&f->t, b.at, b.len);
    assert_int_not_equal(wide, 0);
    assert_int_equal(wide, parse(f, print(f, wide)));
    buf_destroy(&b);

    /* Doubled in every step: 2**k leaves in theory, and refused before that matters. */
    sym_id x = parse(f, "s0"), last = x;
    for (int i = 0; i < 100 && x != 0; i++) {
        last = x;
        x = sym_call(&f->t, "f", 1, (sym_id[]){x, x}, 2);
    }
    assert_int_equal(x, 0);
    assert_int_equal(sym_eval(&f->t, last, lookup_random, symbols, &v), SYM_UNDEFINED);
    assert_int_equal(parse(f, print(f, last)), last);
}

static void test_sizes(void **state)
{
    (void)state;
    assert_true(with_table(NULL, 0, check_sizes));
}

/* ---- No memory ------------------------------------------------------------------------------- */

struct counter {
    size_t calls, fail_at, bytes;
};

static void *counted_resize(void *ctx, void *p, size_t old_size, size_t new_size)
{
    struct counter *c = ctx;

    if (new_size == 0) {
        c->bytes -= old_size;
        free(p);
        return NULL;
    }
    if (c->calls++ == c->fail_at)
        return NULL;
    void *q = realloc(p, new_size);
    if (q != NULL)
        c->bytes += new_size - old_size;
    return q;
}

static void work(struct fixture *f)
{
    static const char *const texts[] = {
        "3*s0*s1 + 2*s1 - 7",   "((4*s0 + s1 + 9)//4) + Max(3, s0, Min(s1, u0))",
        "f(s0, 2.5*zuf0)",      "~((s0 > 2) & Eq(u0, 1))",
        "(s0 + 1)**3*(s1 - 2)", "PythonMod(6*s0 + 3, 4) - s0",
    };
    sym_id two = sym_int(&f->t, 2);

    for (size_t i = 0; i < LENGTH(texts); i++) {
        sym_id id = parse(f, texts[i]);

        if (id == 0 || parse(f, print(f, id)) != id)
            abort();
        sym_normal(&f->t, id);
        sym_subst(&f->t, id, replace_s0, &two);
    }
}

static void test_no_memory(void **state)
{
    (void)state;
    struct counter c = {.fail_at = 0};
    tuck_allocator alloc = {.ctx = &c, .resize = counted_resize};

    for (;; c.fail_at++) {
        c.calls = 0;
        bool done = with_table(&alloc, 0, work);

        assert_int_equal(c.bytes, 0);
        if (done)
            break;
    }
    assert_true(c.fail_at > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
