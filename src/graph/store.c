#include "graph/graph.h"

static void fill(void *p)
{
    struct fx_store *s = p;
    struct strtab *t = &s->str;

    vec_push(&s->mem, &s->anns, (struct fx_ann){.text = 0}); /* number 0: no annotation */
    s->word.empty = str_intern(t, "", 0);
}

static void destroy(struct fx_store *s)
{
    struct mem m = s->mem;

    vec_free(&s->mem, &s->anns);
    typetab_destroy(&s->type);
    symtab_destroy(&s->sym);
    arena_destroy(&s->arena);
    strtab_destroy(&s->str);
    m.alloc.resize(m.alloc.ctx, s, sizeof(*s), 0);
}

struct fx_store *store_new(const tuck_allocator *alloc)
{
    struct mem m;

    mem_init(&m, alloc);
    struct fx_store *s = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*s));
    if (s == NULL)
        return NULL;
    *s = (struct fx_store){.mem = m, .refs = 1};
    strtab_init(&s->str, &s->mem);
    arena_init(&s->arena, &s->mem);
    symtab_init(&s->sym, &s->mem);
    symtab_assume(&s->sym, SYM_NONNEG_S | SYM_NONNEG_U);
    typetab_init(&s->type, &s->mem);
    if (!mem_guard(&s->mem, fill, s)) {
        destroy(s);
        return NULL;
    }
    return s;
}

void store_release(struct fx_store *s)
{
    if (s != NULL && --s->refs == 0)
        destroy(s);
}
