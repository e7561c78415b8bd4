/* Pages and traces of simulated steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/picture.h"

enum { OPT_HTML = 0x700, OPT_TRACE };

static const struct argp_option options[] = {
    {"html", OPT_HTML, "FILE", 0, "A page to look at: the timeline, memory, every collective", 3},
    {"trace", OPT_TRACE, "FILE", 0, "The timeline for Perfetto or chrome://tracing", 3},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct picture *p = state->input;

    switch (key) {
    case OPT_HTML: p->html = arg; return 0;
    case OPT_TRACE: p->trace = arg; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

const struct argp picture_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

bool picture_wanted(const struct picture *p)
{
    return p->html != NULL || p->trace != NULL;
}

/* ---- graphs ---- */

struct drawn { /* one graph of the file */
    tuck_simulation *s[2];
    const char *const *label;
    size_t n;
    char *title;
    struct drawn *next;
};

/* "graph 1: AFTER POST GRAD, rank 0"; "" if there is only one. */
static char *title_of(const struct input *in, size_t i)
{
    const char *title = tuck_doc_title(in->doc, i);
    int rank = tuck_doc_rank(in->doc, i);
    char *out = NULL, of[32] = "";

    if (tuck_doc_count(in->doc) == 1)
        return strdup("");
    if (rank >= 0)
        snprintf(of, sizeof(of), ", rank %d", rank);
    if (asprintf(&out, "graph %zu: %s%s", i,
                 *title ? title : tuck_graph_name(tuck_doc_graph(in->doc, i)), of) < 0)
        return NULL;
    return out;
}

int picture_add(struct picture *p, const struct input *in, size_t i, tuck_simulation **s,
                const char *const *label, size_t n)
{
    struct drawn *d = calloc(1, sizeof(*d));

    if (d == NULL) {
        for (size_t k = 0; k < n; k++)
            tuck_simulation_free(s[k]);
        return exit_code_of(TUCK_ENOMEM);
    }
    if (p->last != NULL)
        p->last->next = d;
    else
        p->first = d;
    p->last = d;
    d->label = label;
    d->n = n;
    d->title = title_of(in, i);
    for (size_t k = 0; k < n; k++)
        d->s[k] = s[k];
    return d->title != NULL ? EXIT_FINE : exit_code_of(TUCK_ENOMEM);
}

/* ---- files ---- */

static int write_page(const char *path, const tuck_page *page,
                      tuck_status (*print)(const tuck_page *p, tuck_write_fn write, void *ctx))
{
    struct output o;
    int code = output_open(&o, path);

    return code == EXIT_FINE ? output_close(&o, exit_code_of(print(page, output_put, &o))) : code;
}

/* Also frees the page. */
static int write_both(const struct picture *p, tuck_page *page, tuck_status st)
{
    int code = exit_code_of(st);

    if (code == EXIT_FINE && p->html != NULL)
        code = write_page(p->html, page, tuck_page_html);
    if (code == EXIT_FINE && p->trace != NULL)
        code = write_page(p->trace, page, tuck_page_trace);
    tuck_page_free(page);
    return code;
}

static int write_pages(const struct picture *p, const char *title)
{
    tuck_page *page = NULL;
    tuck_status st = tuck_page_new(title, NULL, &page);

    for (const struct drawn *d = p->first; d != NULL && st == TUCK_OK; d = d->next)
        st = tuck_page_add(page, d->title, d->s, d->label, d->n);
    return write_both(p, page, st);
}

int picture_ranks(struct picture *p, const char *title, const tuck_rank_simulation *s)
{
    tuck_page *page = NULL;

    if (p->done) {
        fprintf(stderr, "tuck: --html and --trace draw the ranks of one graph; --graph picks it\n");
        return EXIT_USAGE;
    }
    p->done = true;
    tuck_status st = tuck_page_new(title, NULL, &page);
    if (st == TUCK_OK)
        st = tuck_page_add_ranks(page, "", s);
    return write_both(p, page, st);
}

int picture_end(struct picture *p, const char *title, int code)
{
    if (code == EXIT_FINE && p->first != NULL)
        code = write_pages(p, title);
    while (p->first != NULL) {
        struct drawn *d = p->first;
        p->first = d->next;
        for (size_t k = 0; k < d->n; k++)
            tuck_simulation_free(d->s[k]);
        free(d->title);
        free(d);
    }
    p->last = NULL;
    return code;
}
