/* Runs calls of kernels from a file and writes what the tensors hold afterwards: how the tests
 * against torch call kernels. tests/torch/kernels.py writes the file and says what is in it. */
#include "support/kernel_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/kernel/kernel.h"

struct calls {
    FILE *in, *out;
    bool bad;
    struct rt_tensor *tensor;
    char **storage;
    int64_t *bytes;
    uint32_t n_tensor;
};

static void take(struct calls *c, void *to, size_t n)
{
    if (n > 0 && fread(to, 1, n, c->in) != n) {
        c->bad = true;
        memset(to, 0, n);
    }
}

static int64_t take_int(struct calls *c)
{
    int64_t i;

    take(c, &i, sizeof(i));
    return i;
}

static void *room(size_t n)
{
    void *p = aligned_alloc(RT_ALIGN, (n + RT_ALIGN) / RT_ALIGN * RT_ALIGN);

    if (p == NULL)
        abort();
    return p;
}

/* As malloc gives it: the sanitizer sees the first byte too many. */
static void take_tensor(struct calls *c, uint32_t i)
{
    struct rt_tensor *t = &c->tensor[i];

    t->dtype = (uint8_t)dtype_by_scalar_type(take_int(c));
    t->n = (uint8_t)take_int(c);
    for (int d = 0; d < t->n; d++)
        t->size[d] = take_int(c);
    for (int d = 0; d < t->n; d++)
        t->stride[d] = take_int(c);
    int64_t offset = take_int(c);
    c->bytes[i] = take_int(c);
    c->storage[i] = malloc((size_t)c->bytes[i] + 1);
    take(c, c->storage[i], (size_t)c->bytes[i]);
    t->data = c->storage[i] + offset * dtype_at(t->dtype)->bytes;
}

static char *take_text(struct calls *c)
{
    size_t n = (size_t)take_int(c);
    char *s = malloc(n + 1);

    take(c, s, n);
    s[n] = 0;
    return s;
}

static void take_value(struct calls *c, struct rt_value *v)
{
    *v = (struct rt_value){.kind = (uint8_t)take_int(c)};
    switch (v->kind) {
    case RT_TENSOR: v->tensor = &c->tensor[take_int(c)]; break;
    case RT_INT: v->i = take_int(c); break;
    case RT_BOOL: v->b = take_int(c) != 0; break;
    case RT_FLOAT: take(c, &v->f, sizeof(v->f)); break;
    case RT_COMPLEX: take(c, v->z, sizeof(v->z)); break;
    case RT_STR: v->str = take_text(c); break;
    case RT_DTYPE: v->dtype = (uint8_t)dtype_by_scalar_type(take_int(c)); break;
    case RT_LIST: {
        v->n = (uint32_t)take_int(c);
        struct rt_value *item = calloc(v->n + 1, sizeof(*item));

        for (uint32_t i = 0; i < v->n; i++)
            take_value(c, &item[i]);
        v->item = item;
        break;
    }
    default: break;
    }
}

static void free_value(const struct rt_value *v)
{
    if (v->kind == RT_LIST) {
        for (uint32_t i = 0; i < v->n; i++)
            free_value(&v->item[i]);
        free((void *)(uintptr_t)v->item);
    } else if (v->kind == RT_STR) {
        free((void *)(uintptr_t)v->str);
    }
}

static void put(struct calls *c, const void *p, size_t n)
{
    if (n > 0 && fwrite(p, 1, n, c->out) != n)
        c->bad = true;
}

static void put_int(struct calls *c, int64_t i)
{
    put(c, &i, sizeof(i));
}

static void run_call(struct calls *c)
{
    char *name = take_text(c), error[200] = "";
    struct rt_call call = {.error = error, .error_size = sizeof(error)};
    bool ok = false;

    c->n_tensor = (uint32_t)take_int(c);
    c->tensor = calloc(c->n_tensor + 1, sizeof(*c->tensor));
    c->storage = calloc(c->n_tensor + 1, sizeof(*c->storage));
    c->bytes = calloc(c->n_tensor + 1, sizeof(*c->bytes));
    for (uint32_t i = 0; i < c->n_tensor; i++)
        take_tensor(c, i);
    call.n_arg = (uint32_t)take_int(c);
    struct rt_value *arg = calloc(call.n_arg + 1, sizeof(*arg));
    for (uint32_t i = 0; i < call.n_arg; i++)
        take_value(c, &arg[i]);
    call.arg = arg;
    call.n_out = (uint32_t)take_int(c);
    call.out = calloc(call.n_out + 1, sizeof(*call.out));
    for (uint32_t i = 0; i < call.n_out; i++) {
        int64_t id = take_int(c);

        if (id >= 0)
            call.out[i] = c->tensor[id];
    }
    call.kernel = kernel_at(op_at(op_find(name, strlen(name)))->kernel);
    if (call.kernel == NULL) {
        snprintf(error, sizeof(error), "%.100s has no kernel", name);
    } else {
        char *scratch = room(kernel_scratch(&call));

        call.scratch = scratch;
        ok = kernel_run(&call);
        free(scratch);
    }
    put_int(c, ok);
    put_int(c, (int64_t)strlen(error));
    put(c, error, strlen(error));
    for (uint32_t i = 0; i < c->n_tensor; i++) {
        put(c, c->storage[i], (size_t)c->bytes[i]);
        free(c->storage[i]);
    }
    for (uint32_t i = 0; i < call.n_arg; i++)
        free_value(&arg[i]);
    free(arg);
    free(call.out);
    free(c->tensor);
    free(c->storage);
    free(c->bytes);
    free(name);
}

int kernel_calls(const char *in, const char *out)
{
    struct calls c = {.in = fopen(in, "rb"), .out = fopen(out, "wb")};

    if (c.in == NULL || c.out == NULL)
        return 1;
    for (int64_t n = take_int(&c); n > 0 && !c.bad; n--)
        run_call(&c);
    fclose(c.in);
    return fclose(c.out) != 0 || c.bad;
}
