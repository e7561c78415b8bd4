/* What edits allow and how new nodes look: texts from callers, names, annotations, the spelling of
 * calls, parameters, positions. Nothing here changes a node. */
#include "graph/edit.h"

#include "base/utf8.h"
#include "op/ops.h"

/* ---- texts from callers ---- */

/* Contains nothing that would break its printed line. */
bool edit_plain_text(const char *s)
{
    size_t len = strlen(s);

    for (size_t i = 0; i < len; i++)
        if ((unsigned char)s[i] < ' ' || s[i] == 0x7F)
            return false;
    return len > 0 && utf8_check(s, len) == len;
}

/* a.b.c: identifiers with dots between. */
bool edit_is_dotted(const char *s)
{
    size_t from = 0;

    if (!edit_plain_text(s) || strncmp(s, "self.", 5) == 0)
        return false;
    for (size_t i = 0;; i++) {
        if (s[i] != '.' && s[i] != '\0')
            continue;
        if (i == from || (s[from] >= '0' && s[from] <= '9'))
            return false;
        for (size_t k = from; k < i; k++)
            if (!byte_in_identifier[(unsigned char)s[k]])
                return false;
        if (s[i] == '\0')
            return true;
        from = i + 1;
    }
}

/* What follows "self.": any text between dots, as getattr(self, "0") prints it. */
bool edit_is_path(const char *s)
{
    size_t len = strlen(s);

    return edit_plain_text(s) && strchr(s, '"') == NULL && *s != '.' && s[len - 1] != '.' &&
           strstr(s, "..") == NULL;
}

/* A parameter: x, *args, **kwargs. Its name, or NULL. */
const char *edit_param_name(const char *s)
{
    size_t stars = strspn(s, "*");

    return stars <= 2 && is_identifier(s + stars) && edit_plain_text(s) && strcmp(s, "self") != 0
               ? s + stars
               : NULL;
}

/* ---- names ---- */

static bool is_magic(const char *s, size_t len)
{
    return len > 4 && memcmp(s, "__", 2) == 0 && memcmp(s + len - 2, "__", 2) == 0;
}

static const char *last_part(const char *s)
{
    const char *dot = strrchr(s, '.');

    return dot ? dot + 1 : s;
}

/* What PyTorch would call a node with this target: the function's __name__ ("add.Tensor" for an
 * overload), or the path or method itself, in snake case. */
void edit_candidate(struct buf *b, tuck_kind kind, const char *target)
{
    const char *s = target;
    size_t len = strlen(s);

    if (kind == TUCK_CALL_FUNCTION) {
        const struct op_row *row = op_at(op_find(s, len));
        if (strncmp(s, "torch.ops.", 10) == 0 && strchr(s + 10, '.') != NULL)
            s = strchr(s + 10, '.') + 1;
        else if (strchr(s, '.') == NULL && *row->name != '\0')
            s = last_part(row->name); /* math_sqrt means math.sqrt */
        else
            s = last_part(s);
        len = strlen(s);
    } else if (is_magic(s, len)) {
        s += 2;
        len -= 4;
    }
    for (size_t i = 0; i < len; i++) {
        bool upper = s[i] >= 'A' && s[i] <= 'Z';
        if (upper && i > 0 && s[i - 1] >= 'a' && s[i - 1] <= 'z')
            buf_chr(b, '_');
        buf_chr(b, upper ? (char)(s[i] + ('a' - 'A')) : s[i]);
    }
}

const char *edit_raw_name(const tuck_graph *g, const struct fx_param *q)
{
    const char *s = graph_str(g, q->text);

    return s + strspn(s, "*");
}

/* Does a parameter other than that of node `self` have this name? */
bool edit_is_param(tuck_graph *g, str_id name, uint32_t self)
{
    if ((name_flags(g, name) & NAME_PARAM) == 0)
        return false;
    for (uint32_t i = 0; i < g->param.len; i++)
        if ((self == 0 || g->param.at[i].node != self) &&
            strcmp(edit_raw_name(g, &g->param.at[i]), graph_str(g, name)) == 0)
            return true;
    return false; /* it was one earlier */
}

/* Does the text use, as a global, a word that is the name of a node or a parameter? It would then
 * mean that. */
bool edit_words_taken(tuck_graph *g, const char *s)
{
    while (*s != '\0') {
        size_t n = 0;

        if (!byte_in_identifier[(unsigned char)*s] || (*s >= '0' && *s <= '9')) {
            s++;
            continue;
        }
        while (byte_in_identifier[(unsigned char)s[n]])
            n++;
        str_id id = str_find(&g->store->str, s, n);
        if (id != 0 && (name_lookup(g, id) != 0 || edit_is_param(g, id, 0)))
            return true;
        for (s += n; *s == '.';)
            s += 1 + strcspn(s + 1, ".()[]{},:; +-*/%|&^<>=~!");
    }
    return false;
}

/* Checks that the globals and symbols of new arguments are free, and marks them as used. */
bool edit_enter_words(tuck_graph *g, const tuck_args *a)
{
    for (uint32_t i = 0; a != NULL && i < a->list.v.len; i++) {
        const tuck_value *v = &a->list.v.at[i];

        if (v->kind != TUCK_V_NAME && v->kind != TUCK_V_SYM)
            continue;
        if (edit_words_taken(g, graph_str(g, v->a)))
            return false;
        names_add_words(g, graph_str(g, v->a));
    }
    return true;
}

/* ---- annotations ---- */

/* A Python type, as in `x : torch.Tensor`. */
static bool is_type(const char *s)
{
    int depth = 0;

    for (; *s != '\0'; s++) {
        if (*s == '[' || *s == '(')
            depth++;
        else if ((*s == ']' || *s == ')') && --depth < 0)
            return false;
        else if (strchr("\"'#;:={}", *s) != NULL || (*s == ',' && depth == 0))
            return false;
    }
    return depth == 0;
}

/* Has the text annotations whose style a new one should follow? */
static bool is_annotated(const tuck_graph *g)
{
    const struct fx_style *st = &g->style;

    if (st->annotated || st->strides || st->devices)
        return true;
    for (uint32_t i = 0; i < g->param.len; i++)
        if (g->param.at[i].node != 0 && node_at(g, g->param.at[i].node)->ann != 0)
            return true;
    return false;
}

/* f32[8, 4][4, 1]cuda:0 without the parts that the surrounding text omits. */
static void put_adapted(struct buf *b, const tuck_graph *g, const char *s)
{
    const char *size = strchr(s, '['), *stride, *device, *end;

    stride = size + strcspn(size, "]") + 1;
    device = *stride == '[' ? stride + strcspn(stride, "]") + 1 : stride;
    end = device + strcspn(device, ",)");
    buf_add(b, s, (size_t)(stride - s));
    if (g->style.strides)
        buf_add(b, stride, (size_t)(device - stride));
    if (g->style.devices)
        buf_add(b, device, (size_t)(end - device));
    buf_str(b, end);
}

/* In a text without annotations, the first one decides the style of later ones. */
void edit_note_annotation(tuck_graph *g, uint32_t ann)
{
    const struct fx_meta *m = ann ? ann_tensor(g->store, ann) : NULL;

    if (m == NULL || is_annotated(g))
        return;
    g->style.annotated = true;
    g->style.strides = m->has_strides;
    g->style.devices = m->device != 0;
}

/* The same tensor's annotation, if the store has it and the text would not shorten it; else 0. */
static uint32_t find_annotation(struct buf *b, const tuck_graph *g, const char *inner)
{
    const struct fx_store *st = g->store;

    if (g->style.bare || !g->style.strides || !g->style.devices)
        return 0;
    b->len = 0;
    buf_str(b, ": \"");
    buf_str(b, inner);
    buf_str(b, "\"");
    uint32_t ann = ann_find(st, b->at, b->len);
    return ann != 0 && ann_tensor(st, ann) != NULL ? ann : 0;
}

uint32_t edit_annotation(struct buf *b, tuck_graph *g, const char *inner, bool *ok)
{
    struct fx_store *st = g->store;
    struct fx_meta meta;

    *ok = true;
    if (inner == NULL || *inner == '\0')
        return 0;
    uint32_t known = find_annotation(b, g, inner);
    if (known != 0)
        return known;
    *ok = edit_plain_text(inner) && strchr(inner, '"') == NULL;
    if (!*ok)
        return 0;
    b->len = 0;
    if (meta_parse(st, inner, strlen(inner), &meta)) {
        buf_str(b, g->style.bare ? ": " : ": \"");
        if (is_annotated(g))
            put_adapted(b, g, inner);
        else
            buf_str(b, inner);
        buf_str(b, g->style.bare ? "" : "\"");
        return ann_intern(st, b->at, b->len);
    }
    buf_printf(b, ": \"%s\"", inner);
    bool met = str_find(&st->str, b->at, b->len) != 0;
    if (met || (strncmp(inner, "Sym(", 4) == 0 && inner[strlen(inner) - 1] == ')'))
        return ann_intern(st, b->at, b->len);
    *ok = is_type(inner);
    b->len = 0;
    buf_printf(b, " : %s", inner);
    return *ok ? ann_intern(st, b->at, b->len) : 0;
}

/* ---- how a call is spelled ---- */

/* Can it be an operand of a + b and still be read? */
static bool is_simple(const tuck_graph *g, const tuck_value *v, bool first)
{
    switch (v->kind) {
    case TUCK_V_SYM: return is_identifier(graph_str(g, v->a));
    case TUCK_V_NAME: return strpbrk(graph_str(g, v->a), "|([ ") == NULL;
    case TUCK_V_RAW: return false;
    case TUCK_V_DEVICE:
    case TUCK_V_CALL:
    case TUCK_V_SIZE:
    case TUCK_V_SLICE: return !first; /* name(..) at the beginning would be a call */
    default: return true;
    }
}

uint8_t edit_spelling(const tuck_graph *g, uint32_t op, const tuck_value *v, uint32_t n_args,
                      uint32_t n_kwargs)
{
    const tuck_value *second = n_args > 1 ? value_next(v) : NULL;
    bool node = n_args > 0 && v->kind == TUCK_V_NODE;
    bool fits;

    if (n_kwargs > 0)
        return FX_CALL;
    switch (op_at(op)->form) {
    case OP_FORM_BINARY:
        fits = n_args == 2 && is_simple(g, v, true) && is_simple(g, second, false);
        break;
    case OP_FORM_UNARY: fits = n_args == 1 && node; break;
    case OP_FORM_AUGMENTED: fits = n_args == 2 && node && is_simple(g, second, false); break;
    case OP_FORM_GETITEM: fits = n_args == 2 && node; break;
    case OP_FORM_SETITEM:
        fits = n_args == 3 && node && is_simple(g, value_next(second), false);
        break;
    default:
        if (op != 0 && n_args == 2 && node && second->kind == TUCK_V_STR &&
            op == op_find("getattr", 7) && is_identifier(graph_str(g, second->a)))
            return FX_ATTRIBUTE;
        return FX_CALL;
    }
    return fits ? FX_OPERATOR : FX_CALL;
}

/* ---- parameters ---- */

/* Are the placeholders the parameters, one each? Otherwise a prologue flattens the parameters into
 * them. */
bool edit_has_params(const tuck_graph *g)
{
    return g->style.prologue == FX_PLAIN;
}

/* If the parameters are flattened in a way that the text does not show, inputs cannot be
 * changed. */
bool edit_inputs_fixed(const tuck_graph *g)
{
    return g->style.prologue == FX_PYTREE || g->style.prologue == FX_BYTECODE;
}

uint32_t edit_param_of(const tuck_graph *g, uint32_t node)
{
    for (uint32_t i = g->param.len; i > 0; i--) /* the last one is looked up most often */
        if (g->param.at[i - 1].node == node)
            return i - 1;
    return NO_PARAM;
}

/* Python requires this order. */
static int param_rank(const tuck_graph *g, const struct fx_param *q)
{
    size_t stars = strspn(graph_str(g, q->text), "*");

    return stars > 0 ? (int)stars + 1 : q->dflt != 0;
}

/* May q go between the parameters i - 1 and i? */
bool edit_param_fits(const tuck_graph *g, const struct fx_param *q, uint32_t i)
{
    int rank = param_rank(g, q);
    int before = i > 0 ? param_rank(g, &g->param.at[i - 1]) : 0;
    int after = i < g->param.len ? param_rank(g, &g->param.at[i]) : 4;

    return before <= rank && rank <= after && !(rank >= 2 && (before == rank || after == rank)) &&
           !(rank == 3 && i < g->param.len);
}

void edit_insert_param(tuck_graph *g, uint32_t i, struct fx_param q)
{
    struct fx_param *at = g->param.at + i;

    memmove(at + 1, at, (g->param.len - i) * sizeof(*at));
    *at = q;
    g->param.len++;
}

struct fx_param edit_remove_param(tuck_graph *g, uint32_t i)
{
    struct fx_param q = g->param.at[i], *at = g->param.at + i;

    memmove(at, at + 1, (g->param.len - i - 1) * sizeof(*at));
    g->param.len--;
    return q;
}

/* ---- positions ---- */

static uint32_t last_placeholder(const tuck_graph *g)
{
    uint32_t n = 0;

    if (edit_has_params(g))
        return g->param.len > 0 ? g->param.at[g->param.len - 1].node : 0;
    while (g->node.at[g->node.at[n].next].kind == TUCK_PLACEHOLDER)
        n = g->node.at[n].next;
    return n;
}

/* After the names that an opaque statement assigns, which move with it. */
uint32_t edit_skip_results(const tuck_graph *g, uint32_t n)
{
    while (n != 0 && g->node.at[n].kind == TUCK_RESULT)
        n = g->node.at[n].next;
    return n;
}

bool edit_place(const tuck_graph *g, tuck_where w, uint8_t kind, uint32_t self, uint32_t *before)
{
    const struct fx_node *at = g->node.at;
    uint32_t b, prev;

    if (!tuck_is_none(w.node)) {
        if (!node_alive(g, w.node.id))
            return false;
        b = w.after ? edit_skip_results(g, at[w.node.id].next) : w.node.id;
        if (at[b].kind == TUCK_RESULT)
            return false;
    } else if (kind == TUCK_PLACEHOLDER) {
        b = w.after ? at[last_placeholder(g)].next : at[0].next;
    } else if (kind == TUCK_OUTPUT) {
        b = 0;
    } else {
        b = w.after ? g->output : at[last_placeholder(g)].next;
    }
    if (b == self && self != 0)
        b = edit_skip_results(g, at[self].next);
    prev = at[b].prev;
    if (self != 0 && b == edit_skip_results(g, at[self].next))
        prev = at[self].prev;
    *before = b;
    if (kind == TUCK_PLACEHOLDER)
        return prev == 0 || at[prev].kind == TUCK_PLACEHOLDER;
    if (kind == TUCK_OUTPUT)
        return b == 0;
    return b == 0 ? g->output == 0 : at[b].kind != TUCK_PLACEHOLDER;
}
