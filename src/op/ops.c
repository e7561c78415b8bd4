/* The operator table, and how a spelling in a text finds its row. */
#include "op/ops.h"

#include <string.h>

/* As spelled in ops.def. */
enum {
#define X(id, ...) F_##id = OP_F_##id,
    OP_FLAGS(X)
#undef X
};

const struct op_row op_rows[] = {
    {"", "-> ()", NULL, NULL, 0, OP_CLASS_END, OP_SHAPE_none, OP_FLOPS_none, OP_MOVES_all,
     OP_KERNEL_none, OP_FORM_CALL},
#define PYOP(name, form, symbol, cls, flags, sig, shape, flops, moves, kernel, lies)               \
    {name,                                                                                         \
     sig,                                                                                          \
     lies,                                                                                         \
     symbol,                                                                                       \
     (flags),                                                                                      \
     OP_##cls,                                                                                     \
     OP_SHAPE_##shape,                                                                             \
     OP_FLOPS_##flops,                                                                             \
     OP_MOVES_##moves,                                                                             \
     OP_KERNEL_##kernel,                                                                           \
     OP_FORM_##form},
#define OP(name, cls, flags, sig, shape, flops, moves, kernel, lies)                               \
    PYOP(name, CALL, NULL, cls, flags, sig, shape, flops, moves, kernel, lies)
#include "op/ops.def"
};

#define N_ROWS ((uint32_t)(sizeof(op_rows) / sizeof(*op_rows)))

const uint32_t op_n_rows = N_ROWS;

uint32_t op_count(void)
{
    return N_ROWS - 1;
}

/* strcmp() for a text that is not terminated and may contain anything. */
static int compare(const char *s, size_t len, const char *name)
{
    size_t n = strnlen(name, len + 1);
    int c = memcmp(s, name, n < len ? n : len);

    return c ? c : (len > n) - (len < n);
}

static bool starts(const char *name, const char *s, size_t len)
{
    return strnlen(name, len) == len && memcmp(name, s, len) == 0;
}

/* The first row whose name is not below s. */
static uint32_t lower_bound(const char *s, size_t len)
{
    uint32_t low = 1, high = N_ROWS;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (compare(s, len, op_rows[mid].name) > 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static uint32_t exact(const char *s, size_t len)
{
    uint32_t at = lower_bound(s, len);

    return at < N_ROWS && compare(s, len, op_rows[at].name) == 0 ? at : 0;
}

/* A packet: torch chooses the overload from the operands at run time. The table hardly ever differs
 * between overloads, so any will do; the most frequent one comes first. */
static uint32_t packet(const char *s, size_t len)
{
    static const char *const wanted[] = {"default", "Tensor", "self", "int"};
    const size_t n_wanted = sizeof(wanted) / sizeof(*wanted);
    uint32_t best = 0;
    size_t best_rank = n_wanted + 1;

    for (uint32_t at = lower_bound(s, len); at < N_ROWS; at++) {
        const char *name = op_rows[at].name;

        if (!starts(name, s, len))
            break;
        if (name[len] != '.' || strchr(name + len + 1, '.'))
            continue; /* aten.cat is not a packet of aten.cat_.x, nor torch of torch.neg.x */
        size_t rank = 0;
        while (rank < n_wanted && strcmp(name + len + 1, wanted[rank]) != 0)
            rank++;
        if (rank < best_rank) {
            best = at;
            best_rank = rank;
        }
    }
    return best;
}

bool op_same_packet(uint32_t a, uint32_t b)
{
    if (a == 0 || b == 0 || a >= N_ROWS || b >= N_ROWS)
        return false;
    const char *x = op_rows[a].name, *y = op_rows[b].name;
    const char *dot = strrchr(x, '.');
    size_t len = dot != NULL ? (size_t)(dot - x) : 0;
    return len > 0 && strncmp(x, y, len + 1) == 0 && strchr(y + len + 1, '.') == NULL;
}

/* Names outside torch as the printer writes them: the module's dots become underscores, and a
 * number is appended if two objects would have the same name. */
static uint32_t mangled(const char *s, size_t len)
{
    static const struct {
        const char *text, *means;
    } prefix[] = {
        {"_operator.", "operator."},        {"_operator_", "operator."}, {"math_", "math."},
        {"torch_Tensor_", "torch.Tensor."}, {"builtins_", "builtins."},  {"", "builtins."},
    };
    char name[64];

    for (size_t i = 0; i < sizeof(prefix) / sizeof(*prefix); i++) {
        size_t skip = strlen(prefix[i].text), front = strlen(prefix[i].means);

        if (len <= skip || memcmp(s, prefix[i].text, skip) != 0)
            continue;
        size_t rest = len - skip;
        if (front + rest > sizeof(name))
            continue;
        memcpy(name, prefix[i].means, front);
        memcpy(name + front, s + skip, rest);
        uint32_t op = exact(name, front + rest);
        if (op)
            return op;
    }
    return 0;
}

/* math_sqrt_1 without the number; 0 if there is none. */
static size_t without_number(const char *s, size_t len)
{
    size_t end = len;

    while (end && s[end - 1] >= '0' && s[end - 1] <= '9')
        end--;
    return end < len && end > 1 && s[end - 1] == '_' ? end - 1 : 0;
}

uint32_t op_find(const char *target, size_t len)
{
    static const char ops[] = "torch.ops.";
    const size_t n_ops = sizeof(ops) - 1;
    uint32_t op;

    if (len > n_ops && memcmp(target, ops, n_ops) == 0) {
        target += n_ops;
        len -= n_ops;
        op = exact(target, len);
        if (op)
            return op;
        /* torch.ops.aten.add.Foo is unknown, torch.ops.aten.add is a packet. */
        const char *dot = memchr(target, '.', len);
        return dot && !memchr(dot + 1, '.', len - (size_t)(dot + 1 - target)) ? packet(target, len)
                                                                              : 0;
    }
    if (len == 0)
        return 0;
    op = exact(target, len);
    if (!op)
        op = mangled(target, len);
    if (!op && without_number(target, len))
        op = mangled(target, without_number(target, len));
    if (!op && memchr(target, '.', len))
        op = packet(target, len);
    return op;
}

/* Row names are not C identifiers, but each row has its own line in ops.def. */
#define PASTE(a, b) a##b
#define ROW(line) PASTE(ROW_, line)

enum {
    ROW_NONE,
#define OP(...) ROW(__LINE__),
#define PYOP(...) ROW(__LINE__),
#include "op/ops.def"
};

uint32_t op_by_symbol(enum op_form form, const char *symbol, size_t len)
{
    static const uint16_t printed[] = {
#define OP(...)
#define PYOP(...) ROW(__LINE__),
#include "op/ops.def"
    };

    for (size_t i = 0; i < sizeof(printed) / sizeof(*printed); i++) {
        const struct op_row *row = &op_rows[printed[i]];

        if (row->form == (uint8_t)form && compare(symbol, len, row->symbol) == 0)
            return printed[i];
    }
    return 0;
}

static const struct {
    const char *name, *meaning;
} classes[] = {
#define X(id, name, meaning) {name, meaning},
    OP_CLASSES(X)
#undef X
        {"unknown", "not in the table: nothing moves across it"},
};

static const struct {
    const char *name, *meaning;
} shapes[] = {
#define X(id, meaning) {#id, meaning},
    OP_SHAPES(X)
#undef X
};

static const struct {
    const char *name, *meaning;
} flops[] =
    {
#define X(id, meaning) {#id, meaning},
        OP_FLOPS(X)
#undef X
},
  moves[] = {
#define X(id, meaning) {#id, meaning},
      OP_MOVES(X)
#undef X
};

static const struct {
    const char *name, *meaning;
} kernels[] = {
#define KERNEL(id, form, meaning) {#id, meaning},
#include "op/kernels.def"
#undef KERNEL
};

const char *op_class_name(enum op_class cls)
{
    return classes[(unsigned)cls < OP_CLASS_END ? cls : OP_CLASS_END].name;
}

const char *op_class_meaning(enum op_class cls)
{
    return classes[(unsigned)cls < OP_CLASS_END ? cls : OP_CLASS_END].meaning;
}

const char *op_shape_name(enum op_shape shape)
{
    return shapes[(unsigned)shape < OP_SHAPE_END ? shape : OP_SHAPE_none].name;
}

const char *op_shape_meaning(enum op_shape shape)
{
    return shapes[(unsigned)shape < OP_SHAPE_END ? shape : OP_SHAPE_none].meaning;
}

const char *op_flops_name(enum op_flops f)
{
    return flops[(unsigned)f < OP_FLOPS_END ? f : OP_FLOPS_none].name;
}

const char *op_flops_meaning(enum op_flops f)
{
    return flops[(unsigned)f < OP_FLOPS_END ? f : OP_FLOPS_none].meaning;
}

const char *op_moves_name(enum op_moves m)
{
    return moves[(unsigned)m < OP_MOVES_END ? m : OP_MOVES_all].name;
}

const char *op_moves_meaning(enum op_moves m)
{
    return moves[(unsigned)m < OP_MOVES_END ? m : OP_MOVES_all].meaning;
}

const char *op_kernel_name(enum op_kernel k)
{
    return kernels[(unsigned)k < OP_KERNEL_END ? k : OP_KERNEL_none].name;
}

const char *op_kernel_meaning(enum op_kernel k)
{
    return kernels[(unsigned)k < OP_KERNEL_END ? k : OP_KERNEL_none].meaning;
}

const char *op_flag_name(unsigned i)
{
    static const char *const names[] = {
#define X(id, name, meaning) name,
        OP_FLAGS(X)
#undef X
    };

    return i < sizeof(names) / sizeof(*names) ? names[i] : NULL;
}
