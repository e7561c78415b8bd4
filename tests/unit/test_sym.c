/* Sizes as expressions: parsing, canonical form, printing, values.
 *
 *   test_sym           the tests
 *   test_sym --eval    for each line "expression;symbol=value,…" of standard input: the value
 *   test_sym --print   for each line "expression": its canonical text
 *
 * The last two are what the comparison with PyTorch drives.
 */
#include "support/sym_test.h"

/* ---- Parsing and printing -------------------------------------------------------------------- */

/* Texts of PyTorch's normal printer: canonical already. */
/* clang-format off */
static const char *const as_printed[] = {
    "s0", "u3", "j1", "4", "-3", "0", "zuf0", "2*s0", "s0 + 1", "s0 - 1", "s0 - s1", "-u0",
    "-u0 - 1", "1 - s0", "4 - 2*s0", "-2*s0*s1 + 4", "s0**2", "12*s27**2", "s0*s1 + 2", "2*s27 + 1",
    "3*j1", "3*s0*s1 + 2*s1 - 7", "s0**2*s1 + s0*s1**2 + s0*s1 + s1**2 + s1", "u0 + u1 + u2 + u3",
    "s0*s10*s2", "(s0//2)", "2*((s0//2))", "-((s0//2))", "(((-u0)//3)) + 5", "((s27 + 1)//2)",
    "((s1 + 7)//8)", "((s0//2))**2", "(s0//s1)", "((2*s0)//3)", "(((s0//u0))//u1)", "((-3)//s0)",
    "Mod(s0, 4)", "(Mod(s0, 4)) + 1", "s0 - (PythonMod(u0, 2))", "PythonMod(u0, 2)",
    "ModularIndexing(s0, 2, 3)", "Max(3, s0, s1)", "Max(1, s0*s1)", "Min(s0, s1)", "2*Max(1, s0)",
    "((Max(1, u0) + 1)//2)", "(Max(1, u0)//2)", "CeilToInt(IntTrueDiv(s0, 2))",
    "PowByNatural(s0, s1)", "2*(PowByNatural(s0, s1))", "-PowByNatural(s0, s1)",
    "TruncToInt(1.5*ToFloat(s0))", "Where(s0 > 2, s0, s1)", "(s0 + 1)*(s1 - 1)",
    "-(s0 + 1)*(s1 - 1)", "s1*(s0 + 1)", "2*s1*(s0 + 1)", "(s0 + 1)**2", "-(-s0 + s1)*(s0 + 1)",
    "2.5*zuf0", "zuf0 + 1.0", "2.0*zuf0", "1.0e-5*zuf0", "1.0e+20*zuf0", "0.0001*zuf0",
    "100000000000000.0*zuf0", "2.50000000000000", "1.00000000000000e-5",
    "FloatTrueDiv(IntTrueDiv(4*s0, 4), (IntTrueDiv(4*s0, 4)) - 1.0)", "FloatPow(zuf0, 0.5)",
    "u0 >= 0", "u0 <= 64", "s0 > 2", "8*s0 >= 1", "Eq(s0, 2)", "Eq(u0 + u1, 64)", "Ne(s0, s1)",
    "(s0 > 2) & (s1 < 5)", "(s0 > 2) | (s1 < 5)", "~((s0 > 2) & (u0 > 1))", "Eq(s0, 2) & (u0 > 1)",
    "((s0//2)) > 1", "Eq(s27, 3) | ((s0 > 2) & (s1 < 5))", "True", "False", "f(s0, g(1))",
    "2*f(s0) + 1", "OpaqueUnaryFn_sqrt(ToFloat(s0))", "s0**s1", "2**s0", "s0/2", "Abs(u0)",
    "IsNonOverlappingAndDenseIndicator(s0, 3, s1, 1)", "9223372036854775807*s0",
};
/* clang-format on */

static void check_as_printed(struct fixture *f)
{
    for (size_t i = 0; i < LENGTH(as_printed); i++) {
        sym_id id = parse(f, as_printed[i]);

        if (id == 0)
            fail_msg("not an expression: %s", as_printed[i]);
        assert_string_equal(print(f, id), as_printed[i]);
    }
}

static void test_as_printed(void **state)
{
    (void)state;
    assert_true(with_table(NULL, 0, check_as_printed));
}

/* Left: another spelling, of the fast printer, of Python, or one that can be simplified. */
static const char *const spellings[][2] = {
    {"2 * s0", "2*s0"},
    {"1 + s0", "s0 + 1"},
    {"-7 + 2 * s1 + 3 * s0 * s1", "3*s0*s1 + 2*s1 - 7"},
    {"(1 + s0) * (-1 + s1)", "(s0 + 1)*(s1 - 1)"},
    {"FloorDiv(s0, 2)", "(s0//2)"},
    {"CleanDiv(s0, 2)", "(s0//2)"},
    {"CeilDiv(s1, 8)", "((s1 + 7)//8)"},
    {"5 + FloorDiv(-u0, 3)", "(((-u0)//3)) + 5"},
    {"s0 - PythonMod(u0, 2)", "s0 - (PythonMod(u0, 2))"},
    {"2.50000000000000 * zuf0", "2.5*zuf0"},
    {"1.00000000000000 + zuf0", "zuf0 + 1.0"},
    {"-1.00000000000000 + IntTrueDiv(4*s77, 4)", "(IntTrueDiv(4*s77, 4)) - 1.0"},
    {"Identity(s0 + 1)", "s0 + 1"},
    {"LShift(s0, 3)", "8*s0"},
    {"RShift(s0, 3)", "(s0//8)"},
    {"Ge(u0, 0)", "u0 >= 0"},
    {"s0 == 2", "Eq(s0, 2)"},
    {"s0 != 2", "Ne(s0, 2)"},
    {"And(s0 > 2, s1 < 5)", "(s0 > 2) & (s1 < 5)"},
    {"Not(s0 > 2)", "s0 <= 2"},
    {"~~(s0 > 2)", "s0 > 2"},
    {"u0 % 2", "PythonMod(u0, 2)"},
    {" ( ( s0 ) ) ", "s0"},
    {"+s0", "s0"},
    {"--s0", "s0"},
    {"-s0**2", "-s0**2"},
    {"(-s0)**2", "s0**2"},
    {"(-s0)**3", "-s0**3"},
    {"(2*s0*s1**2)**3", "8*s0**3*s1**6"},
    {"2**3**2", "512"},
    {"2*s0//3", "((2*s0)//3)"},
    {"-s0//2", "((-s0)//2)"},
    {"7 - 2 - 1", "4"},
    {"s1 + s0 + s1", "s0 + 2*s1"},
    {"s0*(s1 + 1) - s0*(1 + s1)", "0"},
    {"2*(s0 + 1)", "2*s0 + 2"},
    {"-(s0 - s1)", "-s0 + s1"},
    {"(s0 + 1)*(s0 + 1)", "(s0 + 1)**2"},
    {"s0**0", "1"},
    {"0*s0", "0"},
    {"PowByNatural(s0, 2)", "s0**2"},
    {"4*s0//4", "s0"},
    {"(4*s0 + 8)//4", "s0 + 2"},
    {"(4*s0 + s1 + 8)//4", "s0 + ((s1//4)) + 2"},
    {"(4*s0 + 2)//6", "((2*s0 + 1)//3)"},
    {"(s0*s1)//s1", "s0"},
    {"(6*s0*s1 + 4*s1)//(2*s1)", "3*s0 + 2"},
    {"s1*(s0 + 1)//(s0 + 1)", "s1"},
    {"s0//1", "s0"},
    {"s0//(-1)", "-s0"},
    {"s0//s0", "1"},
    {"0//s0", "0"},
    {"(s0//2)//3", "(s0//6)"},
    {"((s0 + 1)//2)//2", "((s0 + 1)//4)"},
    {"(s0//2)//(-3)", "(((s0//2))//(-3))"},
    {"-7//2", "-4"},
    {"7//-2", "-4"},
    {"-7 % 3", "2"},
    {"7 % -3", "-2"},
    {"1//0", "(1//0)"},
    {"s0//0", "(s0//0)"},
    {"Mod(4*s0, 4)", "0"},
    {"Mod(4*s0*s1 + 8*s0, 4*s0)", "0"},
    {"Mod(2*s0 + 1, 2)", "1"},
    {"Mod(s0, 1)", "0"},
    {"PythonMod(-s0, s0)", "0"},
    {"PythonMod(s0**2, s0)", "0"},
    {"ModularIndexing(13, 2, 4)", "2"},
    {"Max(s0, Max(s1, 3), 5)", "Max(5, s0, s1)"},
    {"Max(s0, s0)", "s0"},
    {"Min(3, 4)", "3"},
    {"Min(s0)", "s0"},
    {"Max(0, Mod(s0, 4))", "Mod(s0, 4)"},
    {"s0 >= s0", "True"},
    {"s0 + 1 > s0", "True"},
    {"Ne(s0, s0)", "False"},
    {"Eq(s0 - s1, s0 - s1 + 1)", "False"},
    {"(s0 > 2) & True", "s0 > 2"},
    {"(s0 > 2) & False", "False"},
    {"(s0 > 2) | (s0 <= 2)", "True"},
    {"(s0 > 2) & (s0 <= 2)", "False"},
    {"(s1 < 5) & (s0 > 2) & (s1 < 5)", "(s0 > 2) & (s1 < 5)"},
    {"Where(True, s0, s1)", "s0"},
    {"Where(2 < 1, s0, s1)", "s1"},
    {"CeilToInt(2.5)", "3"},
    {"FloorToInt(-2.5)", "-3"},
    {"TruncToInt(-2.5)", "-2"},
    {"RoundToInt(2.5)", "2"},
    {"RoundToInt(3.5)", "4"},
    {"RoundDecimal(2.675, 2)*zuf0", "2.67*zuf0"},
    {"CeilToInt(s0)", "s0"},
    {"ToFloat(3)*zuf0", "3.0*zuf0"},
    {"IntTrueDiv(1, 3)*zuf0", "0.3333333333333333*zuf0"},
    {"Abs(-3)", "3"},
    {"Abs(-2*u0)", "2*Abs(u0)"},
    {"Abs(s0**2)", "s0**2"},
    {"2.0*zuf0 + 0.5*zuf0", "2.5*zuf0"},
    {"zuf0 - zuf0", "0.0"},
    {"s0**-2", "1/s0**2"},
    {"3*s0/2", "3*s0/2"},
    {"BitwiseFn_bitwise_and(6, 3)", "2"},
    {"True + 1", "2"},
};

static void check_spellings(struct fixture *f)
{
    for (size_t i = 0; i < LENGTH(spellings); i++) {
        sym_id id = parse(f, spellings[i][0]);

        if (id == 0)
            fail_msg("not an expression: %s", spellings[i][0]);
        assert_string_equal(print(f, id), spellings[i][1]);
        if (id != parse(f, spellings[i][1]))
            fail_msg("%s has another id when read again", spellings[i][1]);
    }
}

static void test_spellings(void **state)
{
    (void)state;
    assert_true(with_table(NULL, 0, check_spellings));
}

/* clang-format off */
static const char *const not_expressions[] = {
    "", " ", "(", ")", "()", "s0 +", "* s0", "s0 s1", "2s0", "1.2.3", "f(", "f()", "f(,)", "f(s0,)",
    "f(s0", "(s0, s1)", "s0]", "s0[1]", "\"s0\"", "a.b", "s0 < s1 < s2", "s0 & s1", "~s0", "oo",
    "int_oo", "-oo", "nan", "None", "9223372036854775808", "-9223372036854775808",
    "9223372036854775807 + 1", "4611686018427387904*2*s0", "10**19", "1e999", "Mod(s0)",
    "FloorDiv(s0, 1, 2)", "s0 // ", "s0**", "\xc3\xa9", "s0 @ s1", "s0 << 2", "0x10", ".", "1e",
    "1e+", "s0 = 1", "And(s0, s1)", "!", "'",
};
/* clang-format on */

static void check_not_expressions(struct fixture *f)
{
    for (size_t i = 0; i < LENGTH(not_expressions); i++) {
        sym_id id = parse(f, not_expressions[i]);

        if (id != 0)
            fail_msg("'%s' was read as %s", not_expressions[i], print(f, id));
    }
    assert_int_equal(f->t.stack.len, 0);
    assert_int_equal(f->t.term.len, 0);
    assert_int_equal(f->t.frame.len, 0);
    assert_string_equal(print(f, 0), "");
}

static void test_not_expressions(void **state)
{
    (void)state;
    assert_true(with_table(NULL, 0, check_not_expressions));
}

/* ---- Building -------------------------------------------------------------------------------- */

static void count_symbol(void *ctx, sym_id symbol, const char *name)
{
    (void)symbol;
    strcat(ctx, name);
    strcat(ctx, " ");
}

static void check_building(struct fixture *f)
{
    struct symtab *t = &f->t;
    sym_id s0 = sym_symbol(t, "s0", 2), s1 = sym_symbol(t, "s1", 2), two = sym_int(t, 2);
    struct sym_num n;
    int64_t v;
    char names[32] = "";

    assert_int_equal(sym_add(t, s0, s1), parse(f, "s1 + s0"));
    assert_int_equal(sym_sub(t, s0, s0), parse(f, "0"));
    assert_int_equal(sym_mul(t, sym_add(t, s0, two), two), parse(f, "2*s0 + 4"));
    assert_int_equal(sym_ceildiv(t, s0, two), parse(f, "((s0 + 1)//2)"));
    assert_int_equal(sym_pow(t, s0, two), sym_mul(t, s0, s0));
    assert_int_equal(sym_mod(t, s0, two), parse(f, "PythonMod(s0, 2)"));
    assert_int_equal(sym_truediv(t, s0, two), parse(f, "IntTrueDiv(s0, 2)"));
    assert_int_equal(sym_min(t, s0, s1), parse(f, "Min(s1, s0)"));
    assert_int_equal(sym_max(t, s0, two), parse(f, "Max(2, s0)"));
    assert_int_equal(sym_make2(t, SYM_LE, s0, two), parse(f, "s0 <= 2"));
    assert_int_equal(sym_to_float(t, s0), parse(f, "ToFloat(s0)"));
    assert_int_equal(sym_call(t, "foo", 3, (sym_id[]){s0, s1}, 2), parse(f, "foo(s0, s1)"));

    /* No operand, no result. */
    assert_int_equal(sym_add(t, s0, 0), 0);
    assert_int_equal(sym_floordiv(t, 0, s0), 0);
    assert_int_equal(sym_max(t, 0, s0), 0);
    assert_int_equal(sym_make1(t, SYM_NOT, 0), 0);
    assert_int_equal(sym_make2(t, SYM_EQ, 0, 0), 0);
    assert_int_equal(sym_mod(t, s0, 0), 0);
    assert_int_equal(sym_call(t, "foo", 3, (sym_id[]){0}, 1), 0);
    assert_int_equal(sym_call(t, "f-", 2, (sym_id[]){s0}, 1), 0);
    assert_int_equal(sym_make(t, SYM_INT, NULL, 0), 0);
    assert_int_equal(sym_make(t, SYM_ADD, NULL, 0), 0);
    assert_int_equal(sym_symbol(t, "0a", 2), 0);
    assert_int_equal(sym_int(t, INT64_MIN), 0);
    assert_int_equal(sym_float(t, NAN), 0);
    assert_int_equal(sym_float(t, -0.0), sym_float(t, 0.0));

    assert_true(sym_as_int(t, sym_sub(t, sym_int(t, 7), two), &v));
    assert_int_equal(v, 5);
    assert_false(sym_as_int(t, s0, &v));
    assert_false(sym_as_int(t, 0, &v));
    assert_false(sym_as_int(t, sym_float(t, 2), &v));
    assert_true(sym_as_number(t, sym_bool(t, true), &n));
    assert_int_equal(n.kind, SYM_T_BOOL);

    sym_symbols(t, parse(f, "Max(s0*u1, s0 + 3*u1) + (s0//2) + s0"), count_symbol, names);
    assert_non_null(strstr(names, "s0 "));
    assert_non_null(strstr(names, "u1 "));
    assert_int_equal(strlen(names), 6);
    sym_symbols(t, 0, count_symbol, names);
    assert_int_equal(sym_subst(t, parse(f, "((s0 + s1)//2) + Max(s0, 3)"), replace_s0, &two),
                     parse(f, "((s1 + 2)//2) + 3"));
    assert_int_equal(sym_subst(t, 0, replace_s0, &two), 0);
}

static void test_building(void **state)
{
    (void)state;
    assert_true(with_table(NULL, 0, check_building));
}

/* What differs if symbols are known to be non-negative. */
static void check_assumed(struct fixture *f)
{
    assert_string_equal(print(f, parse(f, "s0 % 4")), "Mod(s0, 4)");
    assert_string_equal(print(f, parse(f, "Max(0, s0)")), "s0");
    assert_string_equal(print(f, parse(f, "Min(0, s0*s1)")), "0");
    assert_string_equal(print(f, parse(f, "Abs(s0 + 1)")), "s0 + 1");
    assert_string_equal(print(f, parse(f, "s0 >= 0")), "True");
    assert_string_equal(print(f, parse(f, "s0 + 1 > 0")), "True");
    assert_string_equal(print(f, parse(f, "-s0 - 1 >= 0")), "False");
    assert_string_equal(print(f, parse(f, "Ne(s0 + s1 + 1, 0)")), "True");
    assert_string_equal(print(f, parse(f, "(s0//2)//s1")), "(s0//(2*s1))");
    assert_string_equal(print(f, parse(f, "u0 >= 0")), "u0 >= 0");
    assert_string_equal(print(f, parse(f, "u0 % 4")), "PythonMod(u0, 4)");
}

static void test_assumed(void **state)
{
    (void)state;
    assert_true(with_table(NULL, SYM_NONNEG_S, check_assumed));
}

static const char *const same[][2] = {
    {"s1*(s0 + 1)", "s0*s1 + s1"},
    {"(s0 + s1)**3", "s0**3 + 3*s0**2*s1 + 3*s0*s1**2 + s1**3"},
    {"(s0 + 1)*(s0 - 1)", "s0**2 - 1"},
    {"(s0 + 9)//4", "(s0 + 1)//4 + 2"},
    {"(5*s0)//4", "s0 + (s0//4)"},
    {"s0//(-3)", "(-s0)//3"},
    {"s0**2//s0", "s0"},
    {"s0 - 4*(s0//4)", "Mod(s0, 4)"},
    {"PythonMod(s0, 4)", "Mod(s0 + 8, 4)"},
    {"ModularIndexing(s0, 2, 3)", "PythonMod((s0//2), 3)"},
    {"s0 < s1", "s1 > s0"},
    {"s0 < s1", "s0 + 1 <= s1"},
    {"Eq(s0, s1)", "Eq(s1 - s0, 0)"},
    {"Max(s0*(s1 + 1), 3)", "Max(s0*s1 + s0, 3)"},
};

static const char *const different[][2] = {
    {"s0", "s1"},         {"s0*s1", "s0 + s1"}, {"(s0 + 1)//2", "s0//2"}, {"s0 < s1", "s0 <= s1"},
    {"Mod(s0, 4)", "s0"}, {"(s0//2)*2", "s0"},
};

static void check_same(struct fixture *f)
{
    for (size_t i = 0; i < LENGTH(same); i++)
        if (!sym_same(&f->t, parse(f, same[i][0]), parse(f, same[i][1])))
            fail_msg("%s and %s are the same", same[i][0], same[i][1]);
    for (size_t i = 0; i < LENGTH(different); i++)
        if (sym_same(&f->t, parse(f, different[i][0]), parse(f, different[i][1])))
            fail_msg("%s and %s are not the same", different[i][0], different[i][1]);
    assert_false(sym_same(&f->t, 0, 0));
    /* Too much to multiply out: no answer, but quickly. */
    assert_false(
        sym_same(&f->t, parse(f, "(s0 + s1 + s2)**100"), parse(f, "(s0 + s1 + s2)**100 + 1")));
    assert_true(sym_same(&f->t, parse(f, "(s0 + s1 + s2)**100"), parse(f, "(s2 + s1 + s0)**100")));
}

static void test_same(void **state)
{
    (void)state;
    assert_true(with_table(NULL, 0, check_same));
}

/* ---- Values ---------------------------------------------------------------------------------- */

static const char *const values[][3] = {
    {"12*s27**2", "s27=5", "300"},
    {"((s0 + 7)//8)", "s0=-1", "0"},
    {"((s0 + 7)//8)", "s0=-8", "-1"},
    {"(s0//s1)", "s0=-7,s1=2", "-4"},
    {"(s0//s1)", "s0=7,s1=-2", "-4"},
    {"(s0//s1)", "s0=-7,s1=-2", "3"},
    {"(s0//s1)", "s0=1,s1=0", "undefined"},
    {"PythonMod(s0, s1)", "s0=-7,s1=3", "2"},
    {"PythonMod(s0, s1)", "s0=7,s1=-3", "-2"},
    {"PythonMod(s0, s1)", "s0=7,s1=0", "undefined"},
    {"Mod(s0, 4)", "s0=7", "3"},
    {"ModularIndexing(s0, 2, 3)", "s0=11", "2"},
    {"Max(3, s0, s1)", "s0=1,s1=9", "9"},
    {"Min(3, s0, s1)", "s0=1,s1=9", "1"},
    {"s0 + u0", "s0=1", "unbound"},
    {"f(s0)", "s0=1", "undefined"},
    {"CeilToInt(IntTrueDiv(s0, 2))", "s0=7", "4"},
    {"IntTrueDiv(s0, s1)", "s0=1,s1=3", "0.33333333333333331"},
    {"IntTrueDiv(s0, s1)", "s0=2320186190944359976,s1=78916116747505020", "29.400663471162424"},
    {"IntTrueDiv(s0, s1)", "s0=9007199254740993,s1=9007199254740992", "1.0"},
    {"IntTrueDiv(s0, 3)", "s0=9223372036854775807", "3.0744573456182584e+18"},
    {"TruncToInt(1.5*ToFloat(s0))", "s0=-3", "-4"},
    {"RoundToInt(zuf0)", "zuf0=-2.5", "-2"},
    {"RoundToInt(zuf0)", "zuf0=1e40", "overflow"},
    {"FloatPow(zuf0, 0.5)", "zuf0=9.0", "3.0"},
    {"FloatPow(zuf0, 0.5)", "zuf0=-9.0", "undefined"},
    {"FloatTrueDiv(zuf0, zuf1)", "zuf0=1.0,zuf1=0.0", "undefined"},
    {"PowByNatural(s0, s1)", "s0=-2,s1=3", "-8"},
    {"PowByNatural(s0, s1)", "s0=2,s1=-1", "undefined"},
    {"s0**s1", "s0=2,s1=-1", "0.5"},
    {"Where(s0 > 2, s0//s1, s0)", "s0=1,s1=0", "1"},
    {"Where(s0 > 2, s0//s1, s0)", "s0=3,s1=0", "undefined"},
    {"(s0 > 2) & (s1 < 5)", "s0=3,s1=4", "True"},
    {"Ne(s1, 0) & (s0//s1 > 2)", "s0=3,s1=0", "False"},
    {"~(s0 > zuf0)", "s0=3,zuf0=3.0", "True"},
    {"s0 > zuf0", "s0=9007199254740993,zuf0=9007199254740992.0", "True"},
    {"s0*s1", "s0=4611686018427387904,s1=2", "overflow"},
    {"s0*s1 - s0*s1", "s0=4611686018427387904,s1=2", "0"},
    {"s0*s1 - s0*u0", "s0=4611686018427387904,s1=4,u0=3", "4611686018427387904"},
    {"s0**1000000", "s0=2", "overflow"},
    {"s0**1000000", "s0=-1", "1"},
    {"(s0//-1)", "s0=-9223372036854775807", "9223372036854775807"},
    {"zuf0//0.7", "zuf0=-1.0", "-2.0"},
    {"zuf0 % 0.75", "zuf0=-1.0", "0.5"},
    {"s0/4", "s0=1", "0.25"},
    {"Abs(u0)", "u0=-3", "3"},
    {"RoundDecimal(zuf0, 2)", "zuf0=2.675", "2.6699999999999999"},
    {"BitwiseFn_bitwise_xor(s0, 3)", "s0=5", "6"},
    {"OpaqueUnaryFn_sqrt(ToFloat(s0))", "s0=16", "4.0"},
    {"OpaqueUnaryFn_sin(ToFloat(s0))", "s0=0", "0.0"},
    {"OpaqueUnaryFn_cosh(ToFloat(s0))", "s0=0", "1.0"},
    {"2*zuf0 + s0", "zuf0=0.5,s0=3", "4.0"},
    {"(s0 > 1) + 1", "s0=3", "2"},
};

static void check_values(struct fixture *f)
{
    for (size_t i = 0; i < LENGTH(values); i++) {
        char assigned[128], text[64];

        snprintf(assigned, sizeof(assigned), "%s", values[i][1]);
        value_text(f, parse(f, values[i][0]), assigned, text, sizeof(text));
        if (strcmp(text, values[i][2]) != 0)
            fail_msg("%s with %s is %s, not %s", values[i][0], values[i][1], values[i][2], text);
    }
}

static void test_values(void **state)
{
    (void)state;
    assert_true(with_table(NULL, 0, check_values));
}

/* ---- For the comparison with PyTorch --------------------------------------------------------- */

static void answer_lines(struct fixture *f, bool eval)
{
    char *line = NULL, text[64];
    size_t size = 0;
    ssize_t len;

    while ((len = getline(&line, &size, stdin)) >= 0) {
        if (len > 0 && line[len - 1] == '\n')
            line[--len] = '\0';
        char *assigned = eval ? strchr(line, ';') : NULL;
        size_t n = assigned ? (size_t)(assigned - line) : (size_t)len;
        sym_id id = sym_parse(&f->t, line, n);

        if (id == 0)
            snprintf(text, sizeof(text), "none");
        else if (eval)
            value_text(f, id, assigned ? assigned + 1 : line + len, text, sizeof(text));
        puts(id && !eval ? print(f, id) : text);
    }
    free(line);
}

static void answer_values(struct fixture *f)
{
    answer_lines(f, true);
}

static void answer_texts(struct fixture *f)
{
    answer_lines(f, false);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_printed),      cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_not_expressions), cmocka_unit_test(test_building),
        cmocka_unit_test(test_assumed),         cmocka_unit_test(test_same),
        cmocka_unit_test(test_values),
    };

    if (argc == 2 && strcmp(argv[1], "--eval") == 0)
        return with_table(NULL, 0, answer_values) ? 0 : 1;
    if (argc == 2 && strcmp(argv[1], "--print") == 0)
        return with_table(NULL, 0, answer_texts) ? 0 : 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
