/* Passes in the public interface. */
#include "api/api.h"
#include "pass/pass_report.h"
#include "api/pass_api.h"
#include "study/pass_table.h"

size_t tuck_pass_count(void)
{
    return all_passes.n;
}

const char *tuck_pass_name(size_t i)
{
    return i < all_passes.n ? all_passes.row[i]->name : NULL;
}

const char *tuck_pass_help(size_t i)
{
    return i < all_passes.n ? all_passes.row[i]->help : NULL;
}

size_t tuck_pass_option_count(size_t i)
{
    return i < all_passes.n ? all_passes.row[i]->n_options : 0;
}

bool tuck_pass_option(size_t i, size_t k, tuck_option *out)
{
    if (k >= tuck_pass_option_count(i) || out == NULL)
        return false;
    const struct pass_option *o = &all_passes.row[i]->options[k];
    *out = (tuck_option){
        .name = o->name, .type = pass_option_type(o), .dflt = o->dflt, .help = o->help};
    return true;
}

tuck_status tuck_pipeline_parse(const char *text, size_t len, const char *name,
                                const tuck_allocator *alloc, tuck_diags *diags, tuck_pipeline **out)
{
    struct mem m;

    if (text == NULL || out == NULL)
        return TUCK_EINVAL;
    mem_init(&m, alloc);
    tuck_pipeline *p = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*p));
    if (p == NULL)
        return TUCK_ENOMEM;
    pipeline_init(&p->p, &all_passes, alloc);
    tuck_status st = pipeline_parse(&p->p, text, len, name ? name : "", diags);
    if (st != TUCK_OK)
        tuck_pipeline_free(p);
    else
        *out = p;
    return st;
}

void tuck_pipeline_free(tuck_pipeline *p)
{
    if (p == NULL)
        return;
    struct mem m = p->p.mem;
    pipeline_destroy(&p->p);
    mem_free(&m, p, sizeof(*p));
}

size_t tuck_pipeline_count(const tuck_pipeline *p)
{
    return p ? p->p.step.len : 0;
}

/* ---- reports ---- */

bool tuck_report_gain(const tuck_report *t, tuck_gain *out)
{
    if (t == NULL || out == NULL || !t->judged)
        return false;
    *out = t->gain;
    return true;
}

uint32_t tuck_report_tries(const tuck_report *t, bool *stopped)
{
    if (stopped != NULL)
        *stopped = t != NULL && t->stopped;
    return t != NULL ? t->tries : 0;
}

bool tuck_report_rival(const tuck_report *t, tuck_rival *out)
{
    if (t == NULL || out == NULL || out->size <= sizeof(out->size) || !t->rival.ran)
        return false;
    const tuck_rival all = {.size = out->size,
                            .refused = t->rival.sound ? NULL : t->rival.why,
                            .times = t->rival.times,
                            .fits = t->rival.fits};
    memcpy(out, &all, out->size < sizeof(all) ? out->size : sizeof(all));
    return true;
}

static void print(struct buf *b, const tuck_print_options *how, const void *arg)
{
    struct report_form form = {.times = (how->detail & TUCK_DETAIL_TIMES) != 0,
                               .work = (how->detail & TUCK_DETAIL_STATS) != 0,
                               .part = (how->detail & TUCK_DETAIL_PART) != 0,
                               .brief = how->form == TUCK_PRINT_BRIEF};

    if (how->form == TUCK_PRINT_JSON)
        report_json(arg, &form, b);
    else
        report_table(arg, &form, b);
}

tuck_status tuck_report_print(const tuck_report *t, const tuck_print_options *how,
                              tuck_write_fn write, void *ctx)
{
    return t ? api_print(&t->mem.alloc, how, write, ctx, print, t) : TUCK_EINVAL;
}
