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

/* One to seven bytes as a number; no call of memcpy(), which takes longer than the rest. */
static uint64_t tail_bytes(const char *s, size_t len)
{
    const unsigned char *p = (const unsigned char *)s;
    uint32_t low, high;

    if (len < 4)
        return p[0] | (uint64_t)p[len / 2] << len / 2 * 8 | (uint64_t)p[len - 1] << (len - 1) * 8;
    memcpy(&low, p, 4);
    memcpy(&high, p + len - 4, 4);
    return low | (uint64_t)high << (len - 4) * 8;
}

/* Eight bytes per step: names are short and comments long, and there are millions of both. */
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
        uint64_t w = tail_bytes(s, len);
        h = (h ^ w) * 0xD6E8FEB86659FD93u;
        h ^= h >> 32;
    }
    h *= 0xD6E8FEB86659FD93u;
    return (uint32_t)(h >> 32);
}

/* Names are numbered, and mm_170 and mm_171 are close in a text. The last character is added
 * unmixed, so that their slots are adjacent: after one, the other is in the cache. */
static uint32_t hash_str(const char *s, size_t len)
{
    return len > 0 ? hash_bytes(s, len - 1) << 4 | (s[len - 1] & 15) : 0;
}

/* n is a power of two. */
static void grow_to(struct strtab *t, uint32_t n)
{
    struct mem *m = t->bytes.mem;
    struct str_slot *slot;

    slot = mem_resize(m, NULL, 0, n * sizeof(*slot));
    memset(slot, 0, n * sizeof(*slot));
    for (uint32_t k = 0; k < t->n_slot; k++) {
        uint32_t i = t->slot[k].hash & (n - 1);

        if (t->slot[k].id == 0)
            continue;
        while (slot[i].id != 0)
            i = (i + 1) & (n - 1);
        slot[i] = t->slot[k];
    }
    mem_free(m, t->slot, t->n_slot * sizeof(*t->slot));
    t->slot = slot;
    t->n_slot = n;
}

static void grow(struct strtab *t)
{
    if (t->n_slot > UINT32_MAX / 4)
        mem_exhausted(t->bytes.mem);
    grow_to(t, t->n_slot ? t->n_slot * 2 : 64);
}

void strtab_reserve(struct strtab *t, uint32_t n)
{
    uint32_t n_slot = 64;

    while (n_slot / 2 <= n && n_slot < UINT32_MAX / 4)
        n_slot *= 2;
    vec_reserve(t->bytes.mem, &t->all, n);
    if (n_slot > t->n_slot)
        grow_to(t, n_slot);
}

/* The slot that holds s, or the free one where it would go. */
static struct str_slot *probe(const struct strtab *t, const char *s, size_t len, uint32_t hash)
{
    uint32_t i = hash & (t->n_slot - 1);

    for (; t->slot[i].id != 0; i = (i + 1) & (t->n_slot - 1)) {
        if (t->slot[i].hash != hash)
            continue;
        const struct str *e = &t->all.at[t->slot[i].id];
        if (e->len == len && (len == 0 || memcmp(e->at, s, len) == 0))
            break; /* s may be NULL if len is 0 */
    }
    return &t->slot[i];
}

str_id str_find(const struct strtab *t, const char *s, size_t len)
{
    return t->n_slot ? probe(t, s, len, hash_str(s, len))->id : 0;
}

str_id str_intern(struct strtab *t, const char *s, size_t len)
{
    struct mem *m = t->bytes.mem;
    uint32_t hash = hash_str(s, len);

    if (t->all.len == 0)
        vec_push(m, &t->all, (struct str){.at = ""});
    if (t->all.len >= t->n_slot / 2)
        grow(t);
    struct str_slot *slot = probe(t, s, len, hash);
    if (slot->id != 0)
        return slot->id;
    if (len > UINT32_MAX)
        mem_exhausted(m);
    vec_reserve(m, &t->all, 1);
    const char *copy = arena_str(&t->bytes, s, len);
    t->all.at[t->all.len] = (struct str){.at = copy, .len = (uint32_t)len};
    *slot = (struct str_slot){hash, t->all.len};
    return t->all.len++;
}
