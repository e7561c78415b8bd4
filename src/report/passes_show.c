#include "report/passes_show.h"

#include <stdio.h>

#include "base/layout.h"
#include "base/json.h"

void pass_table_row(const struct pass *p, struct buf *out)
{
    ink_line(out, INK_HEAD, "%s", p->name);
    wrap_line(out, INK_PLAIN, 4, "%s", p->help);
    for (uint32_t i = 0; i < p->n_options; i++) {
        const struct pass_option *o = &p->options[i];
        char head[128];

        snprintf(head, sizeof(head), "%s=%s", o->name, o->dflt);
        buf_printf(out, "    %s\n", head);
        wrap_line(out, INK_DIM, 8, "%s%s%s", o->help, o->choices ? "; one of " : "",
                  o->choices ? o->choices : "");
    }
}

void passes_table(const struct pass_table *t, struct buf *out)
{
    for (uint32_t i = 0; i < t->n; i++)
        pass_table_row(t->row[i], out);
    if (t->n_key > 0)
        ink_line(out, INK_HEAD,
                 "\nKeys of PyTorch's configuration, accepted in a pipeline and by --set\n"
                 "as KEY=VALUE:");
    for (uint32_t i = 0; i < t->n_key; i++) {
        if (t->key[i].option != NULL && t->key[i].passes == NULL)
            continue; /* already listed as an option */
        buf_printf(out, "    %s\n", t->key[i].name);
        wrap_line(out, INK_DIM, 8, "%s", t->key[i].help);
    }
}

static void json_pass(struct json_out *j, const struct pass *p)
{
    json_open(j, NULL, '{');
    json_str(j, "name", p->name);
    json_str(j, "help", p->help);
    json_str(j, "level", pass_is_on_order(p) ? "schedule" : "graph");
    json_open(j, "options", '[');
    for (uint32_t k = 0; k < p->n_options; k++) {
        const struct pass_option *o = &p->options[k];

        json_open(j, NULL, '{');
        json_str(j, "name", o->name);
        json_str(j, "type", pass_option_type(o));
        json_str(j, "default", o->dflt);
        json_str(j, "help", o->help);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

void passes_json(const struct pass_table *t, struct buf *out)
{
    struct json_out j;

    json_begin(&j, out);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    json_open(&j, "passes", '[');
    for (uint32_t i = 0; i < t->n; i++)
        json_pass(&j, t->row[i]);
    json_close(&j, ']');
    json_open(&j, "keys", '[');
    for (uint32_t i = 0; i < t->n_key; i++) {
        json_open(&j, NULL, '{');
        json_str(&j, "name", t->key[i].name);
        json_str(&j, "help", t->key[i].help);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

void passes_reasons(struct buf *out)
{
    for (int i = 0; i < LEFT_END; i++) {
        ink_printf(out, INK_HEAD, "%-14s", left_reason_name((enum left_reason)i));
        buf_printf(out, " %s\n", left_reason_meaning((enum left_reason)i));
    }
}
