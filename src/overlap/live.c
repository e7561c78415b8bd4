#include "overlap/live.h"

#include "graph/storage.h"
#include "lower/copies.h"

static bool size_of(void *ctx, sym_id v, int64_t *out)
{
    return assume_value(ctx, v, out);
}

/* What a storage is where it first shows up; on the host it is nothing, as is what is not known. */
static int64_t bytes_of(struct facts *f, uint32_t n, uint32_t item)
{
    const tuck_graph *g = f->r->g;
    type_id id = node_type(g, n);
    const struct type *t = type_at(&g->store->type, id);
    int64_t bytes;

    if (t->kind == TYPE_LIST)
        id = item < t->n ? t->item[item] : 0;
    t = type_at(&g->store->type, id);
    if (id == 0 || t->kind != TYPE_TENSOR || strncmp(graph_str(g, t->device), "cpu", 3) == 0)
        return 0;
    return storage_bytes(g, id, size_of, &f->r->assume, &bytes) ? bytes : 0;
}

static void fake_storages(struct facts *f, struct storages *s)
{
    const tuck_graph *g = f->r->g;
    struct copies c = {.g = g, .assume = &f->r->assume, .sigs = &f->r->sigs};

    copies_find(&c, f->a);
    for_each_node (g, n)
        if (op_at(acting_op(g, n))->flags & OP_F_FAKE_APART)
            c.copies[n] = true;
    storages_build_apart(g, f->a, c.copies, s);
}

/* Items of a list that nobody takes are one storage more, which the list alone holds. */
static uint32_t n_items(const struct facts *f, uint32_t n, uint32_t known)
{
    const struct type *t = type_at(&f->r->g->store->type, node_type(f->r->g, n));

    return node_type(f->r->g, n) != 0 && t->kind == TYPE_LIST && t->n > known ? known + 1 : known;
}

static int64_t rest_bytes(struct facts *f, uint32_t n, uint32_t known)
{
    const struct type *t = type_at(&f->r->g->store->type, node_type(f->r->g, n));
    int64_t sum = 0;

    for (uint32_t k = known; k < t->n; k++)
        sum += bytes_of(f, n, k);
    return sum;
}

static bool is_primal(const struct facts *f, uint32_t i)
{
    const tuck_graph *g = f->r->g;

    return strncmp(graph_str(g, node_at(g, f->id.at[i])->name), "primals", 7) == 0;
}

/* Storages by number, the values that hold them, and who makes them. */
static void number(struct live *l, const struct storages *s)
{
    struct facts *f = l->f;
    uint32_t *known = arena_zeroed(f->a, ((size_t)s->n + 1) * sizeof(*known)), total = 0;

    l->held.start = arena_array(f->a, uint32_t, (size_t)f->n + 1);
    l->fresh.start = arena_array(f->a, uint32_t, (size_t)f->n + 1);
    for (uint32_t i = 0; i < f->n; i++)
        total += n_items(f, f->id.at[i], s->count[f->id.at[i]]);
    l->held.to = arena_array(f->a, uint32_t, total);
    l->fresh.to = arena_array(f->a, uint32_t, total);
    l->at = arena_zeroed(f->a, ((size_t)total + 1) * sizeof(*l->at));
    uint32_t held = 0, fresh = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        uint32_t n = f->id.at[i], count = s->count[n], all = n_items(f, n, count);
        bool used = f->out.start[i] < f->out.start[i + 1], made = false;

        l->held.start[i] = held;
        l->fresh.start[i] = fresh;
        for (uint32_t k = 0; k < all; k++) {
            uint32_t root = k < count ? storage_of(s, n, k) : 0;
            uint32_t at = root != 0 ? known[root] : 0;

            if (at == 0) {
                if (k == count && !made)
                    continue; /* a list that something else made */
                at = ++l->n_storage;
                if (root != 0)
                    known[root] = at;
                made = true;
                l->at[at].bytes = k < count ? bytes_of(f, n, k) : rest_bytes(f, n, count);
                l->at[at].kept = is_primal(f, i);
                l->fresh.to[fresh++] = at;
            }
            l->held.to[held++] = at;
            l->at[at].left += used;
        }
    }
    l->held.start[f->n] = held;
    l->fresh.start[f->n] = fresh;
}

static bool is_there(const struct live *l, uint32_t i)
{
    uint8_t kind = node_at(l->f->r->g, l->f->id.at[i])->kind;

    return kind == TUCK_PLACEHOLDER || kind == TUCK_GET_ATTR;
}

static void allocate(struct live *l, uint32_t i)
{
    for_fan(&l->fresh, i, k)
    {
        struct live_storage *s = &l->at[l->fresh.to[k]];
        l->now += s->live ? 0 : s->bytes;
        s->live = true;
    }
}

void live_begin(struct live *l, struct facts *f)
{
    struct storages s;

    *l = (struct live){.f = f};
    fake_storages(f, &s);
    number(l, &s);
    l->users = arena_array(f->a, uint32_t, f->n);
    for (uint32_t i = 0; i < f->n; i++) {
        l->users[i] = f->out.start[i + 1] - f->out.start[i];
        if (is_there(l, i))
            allocate(l, i);
    }
    size_t bytes = ((size_t)l->n_storage + 1) * sizeof(*l->start);
    l->start = memcpy(arena_alloc(f->a, bytes), l->at, bytes);
    l->start_users = memcpy(arena_array(f->a, uint32_t, f->n), l->users, f->n * sizeof(*l->users));
    l->start_now = l->most = l->now;
}

void live_again(struct live *l)
{
    memcpy(l->at, l->start, ((size_t)l->n_storage + 1) * sizeof(*l->at));
    memcpy(l->users, l->start_users, l->f->n * sizeof(*l->users));
    l->now = l->most = l->start_now;
}

void live_schedule(struct live *l, uint32_t i)
{
    const struct facts *f = l->f;

    if (is_there(l, i) || f->id.at[i] == f->r->g->output)
        return;
    allocate(l, i);
    l->most = l->now > l->most ? l->now : l->most;
    for_fan(&f->in, i, k)
    {
        uint32_t v = f->in.to[k];
        if (--l->users[v] > 0)
            continue;
        for_fan(&l->held, v, h)
        {
            struct live_storage *s = &l->at[l->held.to[h]];
            if (--s->left > 0 || s->kept || !s->live)
                continue;
            l->now -= s->bytes;
            s->live = false;
        }
    }
}

/* ---- ranges ---- */

void range_begin(struct range_max *m, struct arena *a, const int64_t *value, uint32_t n)
{
    uint32_t size = 1;

    while (size < n)
        size *= 2;
    *m = (struct range_max){.n = size};
    m->most = arena_zeroed(a, 2 * (size_t)size * sizeof(*m->most));
    m->add = arena_zeroed(a, 2 * (size_t)size * sizeof(*m->add));
    for (uint32_t i = 0; value != NULL && i < n; i++)
        m->most[size + i] = value[i];
    for (uint32_t i = size - 1; i > 0; i--)
        m->most[i] = m->most[2 * i] > m->most[2 * i + 1] ? m->most[2 * i] : m->most[2 * i + 1];
}

static void add_at(struct range_max *m, uint32_t i, int64_t v)
{
    m->most[i] += v;
    m->add[i] += v;
}

static void settle(struct range_max *m, uint32_t i)
{
    while ((i /= 2) > 0) {
        int64_t x = m->most[2 * i], y = m->most[2 * i + 1];
        m->most[i] = (x > y ? x : y) + m->add[i];
    }
}

void range_add(struct range_max *m, uint32_t from, uint32_t end, int64_t v)
{
    if (from >= end)
        return;
    uint32_t l = from + m->n, r = end - 1 + m->n;
    for (uint32_t x = l, y = r + 1; x < y; x /= 2, y /= 2) {
        if (x & 1)
            add_at(m, x++, v);
        if (y & 1)
            add_at(m, --y, v);
    }
    settle(m, l);
    settle(m, r);
}

int64_t range_most(const struct range_max *m, uint32_t from, uint32_t end)
{
    uint32_t l = from + m->n, r = end - 1 + m->n;
    int64_t left = m->most[l], right = m->most[r];

    assert_hot(from < end);
    while (l / 2 != r / 2) {
        if (!(l & 1) && m->most[l + 1] > left)
            left = m->most[l + 1];
        if ((r & 1) && m->most[r - 1] > right)
            right = m->most[r - 1];
        l /= 2;
        r /= 2;
        left += m->add[l];
        right += m->add[r];
    }
    if (right > left)
        left = right;
    while ((l /= 2) > 0)
        left += m->add[l];
    return left;
}
