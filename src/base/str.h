/* Interned strings: equal text has equal ids, and ids are dense, so that tables indexed by them are
 * plain arrays. Id 0 means "no string"; the empty string has an id of its own.
 */
#ifndef TUCK_BASE_STR_H
#define TUCK_BASE_STR_H

#include "base/arena.h"
#include "base/check.h"
#include "base/vec.h"

typedef uint32_t str_id;

struct str {
    const char *at; /* NUL-terminated */
    uint32_t len;
    /* Scratch for the owner of the table, initially zero. A reader that sees the same name again
     * finds its meaning here, without a second hash table. */
    uint32_t owner, node, tag;
};

struct str_slot {
    uint32_t hash;
    str_id id; /* 0 = free */
};

struct strtab {
    struct arena bytes;
    VEC(struct str) all;   /* [0] is the absent string */
    struct str_slot *slot; /* open addressing */
    uint32_t n_slot;
};

void strtab_init(struct strtab *t, struct mem *m); /* allocates nothing yet */
void strtab_destroy(struct strtab *t);

/* Room for about so many different strings. */
void strtab_reserve(struct strtab *t, uint32_t n);
str_id str_intern(struct strtab *t, const char *s, size_t len);
str_id str_find(const struct strtab *t, const char *s, size_t len); /* 0 if absent */

static inline const struct str *str_at(const struct strtab *t, str_id id)
{
    assert_hot(id < t->all.len);
    return &t->all.at[id];
}

static inline const char *str_text(const struct strtab *t, str_id id)
{
    assert_hot(id == 0 || id < t->all.len);
    return id ? t->all.at[id].at : "";
}

uint32_t hash_bytes(const char *s, size_t len);

static inline uint32_t hash_u64(uint64_t x)
{
    x *= 0x9E3779B97F4A7C15u;
    return (uint32_t)(x >> 32);
}

#endif
