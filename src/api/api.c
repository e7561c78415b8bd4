/* Options with their defaults, the version, and how results are printed. */
#include "api/api.h"

#include <stdio.h>

#include "base/json.h"
#include "study/optimize.h"

const char *tuck_version(void)
{
    return TUCK_VERSION;
}

unsigned tuck_version_number(void)
{
    return TUCK_VERSION_NUMBER;
}

/* ---- options ---- */

void tuck_print_options_init(tuck_print_options *o)
{
    *o = (tuck_print_options){.size = sizeof(*o)};
}

void tuck_print_item_init(tuck_print_item *item)
{
    *item = (tuck_print_item){.size = sizeof(*item), .title = "", .rank = -1};
}

void tuck_read_options_init(tuck_read_options *o)
{
    *o = (tuck_read_options){.size = sizeof(*o)};
}

void tuck_run_options_init(tuck_run_options *o)
{
    *o = (tuck_run_options){.size = sizeof(*o), .effort = OPTIMIZE_EFFORT};
}

void tuck_schedule_options_init(tuck_schedule_options *o)
{
    *o = (tuck_schedule_options){.size = sizeof(*o)};
}

void tuck_cost_options_init(tuck_cost_options *o)
{
    *o = (tuck_cost_options){.size = sizeof(*o)};
}

/* ---- printing ---- */

bool tuck_write_file(void *ctx, const char *text, size_t len)
{
    return ctx != NULL && fwrite(text, 1, len, ctx) == len;
}

struct print_args {
    tuck_print_options how;
    tuck_print_item item;
    api_print_fn fn;
    const void *arg;
};

static void print(struct buf *b, const void *arg)
{
    const struct print_args *x = arg;
    const tuck_print_item *item = x->how.item;
    struct json_head head;

    b->width = x->how.width;
    b->measured = x->how.form == TUCK_PRINT_JSON ? x->how.measured : NULL;
    b->origins = (x->how.detail & TUCK_DETAIL_ORIGINS) != 0;
    if (item != NULL) {
        head = (struct json_head){.graph = (int64_t)item->graph,
                                  .title = item->title,
                                  .line = item->line,
                                  .rank = item->rank,
                                  .world = item->world};
        if (item->index == 0)
            json_list_open(b, item->file, item->key);
        json_list_item(b, item->index == 0);
        b->head = &head;
    }
    x->fn(b, &x->how, x->arg);
    b->head = NULL;
}

static tuck_status take_item(struct print_args *x)
{
    tuck_print_item_init(&x->item);
    tuck_status st = options_take(&x->item, sizeof(x->item), x->how.item);
    if (st != TUCK_OK || x->item.file == NULL || x->item.key == NULL || x->item.title == NULL)
        return TUCK_EINVAL;
    x->how.item = &x->item;
    return TUCK_OK;
}

tuck_status api_print(const tuck_allocator *alloc, const tuck_print_options *how,
                      tuck_write_fn write, void *ctx, api_print_fn fn, const void *arg)
{
    struct print_args x = {.fn = fn, .arg = arg};

    tuck_print_options_init(&x.how);
    tuck_status st = options_take(&x.how, sizeof(x.how), how);
    if (st != TUCK_OK || write == NULL || (unsigned)x.how.form > TUCK_PRINT_BRIEF)
        return TUCK_EINVAL;
    if (x.how.form != TUCK_PRINT_JSON)
        x.how.item = NULL;
    if (x.how.item != NULL && (st = take_item(&x)) != TUCK_OK)
        return st;
    return buf_print(alloc, x.how.color == TUCK_COLORED, write, ctx, print, &x);
}

static void print_end(struct buf *b, const void *arg)
{
    (void)arg;
    json_list_close(b);
}

tuck_status tuck_print_items_end(tuck_write_fn write, void *ctx)
{
    return write ? buf_print(NULL, false, write, ctx, print_end, NULL) : TUCK_EINVAL;
}
