#include "base/str.h"

void strtab_init(struct strtab *t, struct mem *m)
{
    *t = (struct strtab){.n_slot = 0};
    arena_init(&t->bytes, m);
}

void strtab_destroy(struct strtab *t)
{
    struct mem *m = t->bytes.mem;

    mem_free(m, t->slot, t->n_slot * sizeof(*t->slot));
    vec_free(m, &t->all);
    arena_destroy(&t->bytes);
    t->slot = NULL;
    t->n_slot = 0;
}

/* Eight bytes a step: names are short and comments long, both come in by the million. */
uint32_t hash_bytes(const char *s, size_t len)
{
    uint64_t h = 0x9E3779B97F4A7C15u ^ len;

    while (len >= 8) {
        uint64_t w;
        memcpy(&w, s, 8);
        h = (h ^ w) * 0xD6E8FEB86659FD93u;
        h ^= h >> 32;
        s += 8;
        len -= 8;
    }
    if (len > 0) {
        uint64_t w = 0;
        memcpy(&w, s, len);
        h = (h ^ w) * 0xD6E8FEB86659FD93u;
        h ^= h >> 32;
    }
    h *= 0xD6E8FEB86659FD93u;
    return (uint32_t)(h >> 32);
}

static void grow(struct strtab *t)
{
    struct mem *m = t->bytes.mem;
    uint32_t n = t->n_slot ? t->n_slot * 2 : 64;
    uint32_t *slot;

    if (n == 0 || t->n_slot > UINT32_MAX / 4)
        mem_exhausted(m);
    slot = mem_resize(m, NULL, 0, n * sizeof(*slot));
    memset(slot, 0, n * sizeof(*slot));
    for (uint32_t id = 1; id < t->all.len; id++) {
        uint32_t i = t->all.at[id].hash & (n - 1);
        while (slot[i] != 0)
            i = (i + 1) & (n - 1);
        slot[i] = id;
    }
    mem_free(m, t->slot, t->n_slot * sizeof(*t->slot));
    t->slot = slot;
    t->n_slot = n;
}

/* The slot that holds s, or the free one where it would go. */
static uint32_t probe(const struct strtab *t, const char *s, size_t len, uint32_t hash)
{
    uint32_t i = hash & (t->n_slot - 1);

    while (t->slot[i] != 0) {
        const struct str *e = &t->all.at[t->slot[i]];

        if (e->hash == hash && e->len == len && memcmp(e->at, s, len) == 0)
            break;
        i = (i + 1) & (t->n_slot - 1);
    }
    return i;
}

str_id str_find(const struct strtab *t, const char *s, size_t len)
{
    return t->n_slot ? t->slot[probe(t, s, len, hash_bytes(s, len))] : 0;
}

str_id str_intern(struct strtab *t, const char *s, size_t len)
{
    struct mem *m = t->bytes.mem;
    uint32_t hash = hash_bytes(s, len);

    if (t->all.len == 0)
        vec_push(m, &t->all, (struct str){.at = ""});
    if (t->all.len >= t->n_slot / 2)
        grow(t);
    uint32_t i = probe(t, s, len, hash);
    if (t->slot[i] != 0)
        return t->slot[i];
    if (len > UINT32_MAX)
        mem_exhausted(m);
    vec_reserve(m, &t->all, 1);
    const char *copy = arena_str(&t->bytes, s, len);
    t->all.at[t->all.len] = (struct str){.at = copy, .len = (uint32_t)len, .hash = hash};
    t->slot[i] = t->all.len;
    return t->all.len++;
}
