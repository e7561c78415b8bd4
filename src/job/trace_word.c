#include "job/trace_word.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

/* ---- kernels ---- */

size_t trace_short_name(const char *full, const char **out)
{
    static const char no_name[] = "(anonymous namespace)";
    size_t from = 0, end = 0, i = 0, depth = 0; /* depth: inside of template arguments */
    bool cxx = strncmp(full, "void ", 5) == 0;

    for (; full[i] != '\0'; i++) {
        if (full[i] == '<' && depth++ == 0 && end <= from)
            end = i;
        else if (full[i] == '>' && depth > 0)
            depth--;
        if (depth > 0)
            continue;
        if (full[i] == '(' && strncmp(full + i, no_name, sizeof(no_name) - 1) == 0)
            i += sizeof(no_name) - 2;
        else if (full[i] == '(')
            break;
        else if (full[i] == ' ')
            from = i + 1;
        else if (full[i] == ':' && full[i + 1] == ':')
            from = ++i + 1;
    }
    cxx |= full[i] == '(' || end > 0;
    if (end <= from)
        end = i;
    if (!cxx || from >= end) {
        from = 0;
        end = strlen(full);
    } else if (full[end] == '<' && strncmp(full + from, "Kernel", 6) == 0 && end - from <= 7) {
        from = end + 1; /* cutlass::Kernel<what it is>, cutlass::Kernel2<what it is> */
        end = from + strcspn(full + from, "<,>(");
    }
    *out = full + from;
    return end - from;
}

enum { PLAIN = 96 }; /* all names of collectives are shorter */

/* The letters of a name, in lower case. */
static void make_plain(const char *name, char plain[PLAIN])
{
    const char *from;
    size_t len = trace_short_name(name, &from), n = 0;

    for (size_t i = 0; i < len && from[i] != '(' && n < PLAIN - 1; i++)
        if (isalpha((unsigned char)from[i]))
            plain[n++] = (char)tolower((unsigned char)from[i]);
    plain[n] = '\0';
}

static bool has_word(const char *name, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(name, words[i]) != NULL)
            return true;
    return false;
}

bool trace_communicates(const char *kernel)
{
    /* NCCL and RCCL; MSCCL, MSCCL++, NVSHMEM, DeepEP, vLLM's own */
    static const char *const library[] = {
        "ncclKernel", "ncclDevKernel", "mscclKernel", "mscclpp::",
        "nvshmem",    "deep_ep::",     "multimem_",   "cross_device_reduce"};
    /* symmetric memory, and kernels of one's own: named after what they do */
    static const char *const own[] = {"allreduce", "allgather", "reducescatter", "alltoall"};
    char plain[PLAIN];

    if (strncmp(kernel, "nccl", 4) == 0 || strncmp(kernel, "rccl", 4) == 0)
        return true;
    if (strstr(kernel, "_fused_") != NULL)
        return false; /* Inductor names its kernels after all that is near them */
    make_plain(kernel, plain);
    return has_word(plain, own, sizeof(own) / sizeof(*own)) ||
           has_word(kernel, library, sizeof(library) / sizeof(*library));
}

bool trace_is_product(const char *name)
{
    /* cuBLAS, CUTLASS, Tensile, cuDNN, MIOpen, FlashAttention; operators of the host */
    static const char *const words[] = {"gemm",          "Gemm",
                                        "GEMM",          "nvjet",
                                        "Cijk_",         "cutlass",
                                        "flash_",        "fmha",
                                        "attn_fwd",      "xmma",
                                        "wgrad",         "dgrad",
                                        "implicit_conv", "winograd",
                                        "attn_bwd",      "AsmConv",
                                        "aten::mm",      "::addmm",
                                        "::bmm",         "::baddbmm",
                                        "aten::conv",    "scaled_dot_product",
                                        "mkldnn::_"};

    if (strstr(name, "triton_tem_") != NULL) /* Inductor's templates are products, its loops not */
        return true;
    return strstr(name, "_fused_") == NULL && has_word(name, words, sizeof(words) / sizeof(*words));
}

/* ---- collectives ---- */

tuck_coll trace_kind(const char *name)
{
    static const struct {
        const char *word;
        tuck_coll kind;
    } words[] = {
        {"allreduce", TUCK_ALL_REDUCE},
        {"allgather", TUCK_ALL_GATHER},
        {"reducescatter", TUCK_REDUCE_SCATTER},
        {"alltoall", TUCK_ALL_TO_ALL},
        {"crossdevicereduce", TUCK_ALL_REDUCE},
        {"broadcast", TUCK_BROADCAST},
        {"sendrecv", TUCK_P2P},
        {"send", TUCK_P2P},
        {"recv", TUCK_P2P},
        {"reduce", TUCK_OTHER_COLLECTIVE},
        {"gather", TUCK_OTHER_COLLECTIVE},
        {"scatter", TUCK_OTHER_COLLECTIVE},
        {"barrier", TUCK_OTHER_COLLECTIVE},
    };
    char plain[PLAIN];

    make_plain(name, plain);
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strstr(plain, words[i].word) != NULL)
            return words[i].kind;
    return (tuck_coll)0;
}

struct trace_shapes trace_shapes(const char *dims, int64_t wanted)
{
    struct trace_shapes x = {.most = -1, .total = -1};
    int64_t n = 1, sum = 0; /* of a tensor, and of the operand that it is part of */
    bool sized = false, any = false;
    int depth = 0;

    for (const char *p = dims; *p; p++) {
        if (*p == '[') {
            depth++;
            n = 1;
            sized = false;
        } else if (isdigit((unsigned char)*p)) {
            char *end;
            int64_t v = strtoll(p, &end, 10);
            if (!size_mul(n, v, &n))
                return (struct trace_shapes){.most = -1, .total = -1};
            sized = true;
            p = end - 1;
        } else if (*p == ']') {
            if (sized && !size_add(sum, n, &sum))
                return (struct trace_shapes){.most = -1, .total = -1};
            any |= sized;
            sized = false;
            if (--depth != 1 || !any)
                continue;
            x.most = sum > x.most ? sum : x.most;
            if (!size_add(x.total < 0 ? 0 : x.total, sum, &x.total))
                return (struct trace_shapes){.most = -1, .total = -1};
            x.found |= sum == wanted;
            sum = 0;
            any = false;
        }
    }
    return x;
}

int64_t trace_numel(const char *dims)
{
    return trace_shapes(dims, -1).most;
}

const struct trace_dtype *trace_dtype(const char *name, size_t len)
{
    static const struct trace_dtype types[] = {
        {"Float", "f32", 4},
        {"float", "f32", 4},
        {"BFloat16", "bf16", 2},
        {"c10::BFloat16", "bf16", 2},
        {"Half", "f16", 2},
        {"c10::Half", "f16", 2},
        {"Double", "f64", 8},
        {"double", "f64", 8},
        {"Long", "i64", 8},
        {"long", "i64", 8},
        {"long int", "i64", 8},
        {"Int", "i32", 4},
        {"int", "i32", 4},
        {"Short", "i16", 2},
        {"short", "i16", 2},
        {"short int", "i16", 2},
        {"Char", "i8", 1},
        {"signed char", "i8", 1},
        {"Byte", "u8", 1},
        {"unsigned char", "u8", 1},
        {"Bool", "b8", 1},
        {"bool", "b8", 1},
        {"ComplexFloat", "c64", 8},
        {"c10::complex<float>", "c64", 8},
        {"ComplexDouble", "c128", 16},
        {"c10::complex<double>", "c128", 16},
        {"Float8_e4m3fn", "f8e4m3fn", 1},
        {"c10::Float8_e4m3fn", "f8e4m3fn", 1},
        {"Float8_e5m2", "f8e5m2", 1},
        {"c10::Float8_e5m2", "f8e5m2", 1},
        {"Float8_e4m3fnuz", "f8e4m3fnuz", 1},
        {"c10::Float8_e4m3fnuz", "f8e4m3fnuz", 1},
        {"Float8_e5m2fnuz", "f8e5m2fnuz", 1},
        {"c10::Float8_e5m2fnuz", "f8e5m2fnuz", 1},
        {"Float8_e8m0fnu", "f8e8m0fnu", 1},
        {"c10::Float8_e8m0fnu", "f8e8m0fnu", 1},
        {"Float4_e2m1fn_x2", "f4e2m1fnx2", 1},
        {"c10::Float4_e2m1fn_x2", "f4e2m1fnx2", 1},
        {"UInt16", "u16", 2},
        {"unsigned short", "u16", 2},
        {"UInt32", "u32", 4},
        {"unsigned int", "u32", 4},
        {"UInt64", "u64", 8},
        {"unsigned long", "u64", 8},
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (strlen(types[i].name) == len && memcmp(types[i].name, name, len) == 0)
            return &types[i];
    return NULL;
}

const struct trace_dtype *trace_dtype_in(const char *types)
{
    for (const char *p = types; (p = strchr(p, '"')) != NULL; p++) {
        const char *end = strchr(p + 1, '"');
        const struct trace_dtype *d = end != NULL ? trace_dtype(p + 1, (size_t)(end - p - 1))
                                                  : NULL;

        if (d != NULL || end == NULL)
            return d;
        p = end;
    }
    return NULL;
}

double trace_bus_gbps(tuck_coll kind, int64_t bytes, int64_t p, int64_t ps)
{
    double share = (double)(p - 1) / (double)(p > 0 ? p : 1);

    if (bytes <= 0 || ps <= 0 || (p < 2 && kind != TUCK_P2P))
        return 0;
    if (kind == TUCK_ALL_REDUCE)
        share *= 2;
    else if (kind == TUCK_BROADCAST || kind == TUCK_P2P || kind == TUCK_OTHER_COLLECTIVE)
        share = 1;
    return (double)bytes * share / ((double)ps / PS_PER_NS);
}
