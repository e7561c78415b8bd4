#include "text/log_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

#define ARTIFACT "] [__"
#define ARTIFACT_LEN (sizeof(ARTIFACT) - 1)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *digits(const char *s, const char *end, size_t want)
{
    size_t n = 0;

    while (s < end && is_digit(*s) && (want == 0 || n < want)) {
        s++;
        n++;
    }
    return n > 0 && (want == 0 || n == want) ? s : NULL;
}

/* Pattern characters: '9' is one digit, '#' one or more digits, others stand for themselves. */
static const char *match(const char *s, const char *end, const char *pattern)
{
    for (; *pattern && s != NULL; pattern++) {
        if (*pattern == '9')
            s = digits(s, end, 1);
        else if (*pattern == '#')
            s = digits(s, end, 0);
        else
            s = s < end && *s == *pattern ? s + 1 : NULL;
    }
    return s;
}

/* "[0/0] ", "[__post_grad_graphs] ", "[!0/3/0_1]": what torch writes between prefix and record. */
static const char *tag(const char *s, const char *end)
{
    const char *p = s + 1;

    if (s >= end || *s != '[' || p >= end || (!is_digit(*p) && *p != '!' && *p != '_'))
        return NULL;
    while (p < end && *p != ']' && *p != ' ' && *p != '[')
        p++;
    if (p >= end || *p != ']')
        return NULL;
    p++;
    return p < end && *p == ' ' ? p + 1 : p;
}

/* The text after a glog header "V0521 09:32:52.155000 2240152 torch/x.py:202]
 * [0/0] [__graph_code] ". */
static const char *glog(const char *s, const char *end, struct log_prefix *out)
{
    if (s >= end || strchr("VDIWEC", *s) == NULL)
        return NULL;
    const char *p = match(s + 1, end, "9999 99:99:99.999999 ");
    if (p == NULL)
        return NULL;
    const char *pid = p;
    p = match(p, end, "# ");
    if (p == NULL)
        return NULL;
    while (p < end && *p != ' ' && *p != ']')
        p++;
    if (p >= end || *p != ']' || !is_digit(p[-1]))
        return NULL;
    p++;
    if (p < end && *p == ' ')
        p++;
    for (int i = 0; i < 2; i++) {
        const char *q = tag(p, end);
        if (q == NULL)
            break;
        out->tag[i] = p + 1;
        out->tag_len[i] = (size_t)((const char *)memchr(p, ']', (size_t)(q - p)) - p) - 1;
        p = q;
    }
    out->when = s + 1;
    out->pid = pid;
    return p;
}

/* The text after "[2023-04-10 12:28:11,630] [0/0] torch._dynamo.x: [INFO] ". */
static const char *dated(const char *s, const char *end)
{
    const char *p = match(s, end, "[9999-99-99 99:99:99,999] ");

    if (p == NULL)
        return NULL;
    const char *q = tag(p, end);
    if (q != NULL)
        p = q;
    for (q = p; q < end && *q != ' ' && *q != ':'; q++)
        continue;
    if (q + 1 >= end || q[0] != ':' || q[1] != ' ')
        return NULL;
    for (p = q += 2; p < end && *p != ']'; p++)
        continue;
    if (q < end && *q == '[' && p < end)
        return p + 1 < end && p[1] == ' ' ? p + 2 : p + 1;
    return q;
}

/* Blanks and terminal escapes, "\033[32m". */
static const char *skip_color(const char *s, const char *end)
{
    while (s < end && (*s == ' ' || *s == '\033')) {
        const char *p = s + 1;
        if (*s == '\033' && p < end && *p == '[')
            for (p++; p < end && (is_digit(*p) || *p == ';');)
                p++;
        if (*s == '\033' && (p >= end || *p++ != 'm'))
            return s;
        s = p;
    }
    return s;
}

/* The prefix of a line that begins with it. */
static struct log_prefix prefix_at(const char *s, const char *end)
{
    struct log_prefix x = {.body = s, .key = s, .rank = -1};
    const char *p, *q;

    for (;;) {
        p = x.body;
        if ((q = match(p, end, "[rank#]:")) != NULL)
            x.rank = atoi(p + 5);
        else if ((q = match(p, end, "[default#]:")) == NULL)
            break;
        else if (x.rank < 0)
            x.rank = atoi(p + 8);
        x.body = q;
        x.key_len = (size_t)(q - s);
    }
    if ((q = glog(skip_color(x.body, end), end, &x)) != NULL) {
        x.pid_len = strcspn(x.pid, " ");
        x.body = q;
        x.record = true;
    } else if ((q = dated(x.body, end)) != NULL) {
        x.pid_len = 0;
        x.body = q;
    } else {
        x.pid_len = 0;
    }
    return x;
}

/* The rank that a launcher writes before each line: "3: " (srun -l), "[1,3]<stderr>:" (mpirun). */
static int launcher_rank(const char *s, const char *end)
{
    const char *p = s;

    while (p < end && *p == ' ')
        p++;
    if (match(p, end, "#: ") != NULL)
        return atoi(p);
    if ((p = match(s, end, "[#,")) != NULL && match(p, end, "#]<std") != NULL)
        return atoi(p);
    return -1;
}

/* Launchers, containers and terminals write more in front: times, names of nodes, colors. Only
 * headers with an artifact, "[0/0] [__aot_graphs]", are looked for. */
struct log_prefix log_prefix_of(const char *s, const char *end)
{
    enum { FAR = 400 };
    struct log_prefix x = prefix_at(s, end);
    size_t len = (size_t)(end - s);

    const char *tags = x.record ? NULL : memmem(s, len < FAR ? len : FAR, ARTIFACT, ARTIFACT_LEN);
    for (const char *p = s + 1; tags != NULL && p < tags; p++) {
        if (*p != '[' && strchr("VDIWEC", *p) == NULL)
            continue;
        struct log_prefix y = prefix_at(p, end);
        if (y.record && y.rank < 0)
            y.rank = launcher_rank(s, p);
        if (y.record)
            return y;
    }
    return x;
}

/* Is there nothing to clean? Looks only at the first bytes of each line. */
static bool is_plain(const char *text, size_t len)
{
    const char *end = text + len;

    if (memchr(text, '\033', len) != NULL || memchr(text, '\r', len) != NULL ||
        memmem(text, len, ARTIFACT, ARTIFACT_LEN) != NULL ||
        (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0))
        return false;
    for (const char *s = text; s < end;) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        const char *eol = nl ? nl : end;

        if ((*s == '[' || strchr("VDIWEC", *s) != NULL) && log_prefix_of(s, eol).body != s)
            return false;
        s = eol + 1;
    }
    return true;
}

struct stream {
    struct fx_text text;
    struct buf buf;
    bool payload; /* after a tlparse header: lines with a TAB are its payload */
};

struct splitter {
    struct mem *mem;
    const char *text;
    size_t len;
    struct strtab keys; /* tag is the stream's number + 1 */
    VEC(struct stream) streams;
    struct buf key;
    struct fx_texts *out;
};

static struct stream *stream_of(struct splitter *x, const struct log_prefix *p)
{
    x->key.len = 0;
    buf_add(&x->key, p->key, p->key_len);
    if (p->pid_len > 0)
        buf_add(&x->key, p->pid, p->pid_len);
    str_id id = str_intern(&x->keys, x->key.at ? x->key.at : "", x->key.len);
    struct str *s = &x->keys.all.at[id];

    if (s->tag == 0) {
        vec_reserve(x->mem, &x->streams, 1);
        struct stream *n = &x->streams.at[x->streams.len++];
        *n = (struct stream){.text = {.rank = p->rank, .crlf = true}};
        buf_init(&n->buf, x->mem);
        s->tag = x->streams.len;
    }
    return &x->streams.at[s->tag - 1];
}

/* Does the line end in CR LF, with nothing to clean before? At the end of the text neither need
 * follow. */
static bool ends_in_crlf(const char *s, const char *eol, bool last)
{
    bool cr = eol > s && eol[-1] == '\r';
    size_t n = (size_t)(eol - s) - cr;

    return cr != last && memchr(s, '\r', n) == NULL && memchr(s, '\033', n) == NULL;
}

void text_add_line(struct mem *m, struct fx_text *t, struct buf *b, const char *s, const char *eol,
                   uint32_t line, uint32_t column)
{
    vec_push(m, &t->line, line);
    vec_push(m, &t->column, column);
    while (s < eol) {
        const char *stop = s;
        while (stop < eol && *stop != '\033' && *stop != '\r')
            stop++;
        buf_add(b, s, (size_t)(stop - s));
        if (stop + 1 < eol && *stop == '\033' && stop[1] == '[') {
            stop += 2;
            while (stop < eol && (is_digit(*stop) || *stop == ';' || *stop == '?'))
                stop++;
            if (stop < eol && (unsigned char)*stop >= 0x80) {
                s = stop; /* no letter ends this sequence: do not split a character */
                continue;
            }
        }
        s = stop < eol ? stop + 1 : eol;
    }
    buf_chr(b, '\n');
}

/* In a payload, an empty line may have lost its TAB, if lines with one follow. *known: how far was
 * looked ahead before; *yes: the result. */
static bool lost_tab(const char *s, const char *end, const char **known, bool *yes)
{
    if (s < *known)
        return *yes;
    while (s < end && (*s == '\n' || *s == ' ' || *s == '\r'))
        s++;
    *known = s;
    *yes = s < end && *s == '\t';
    return *yes;
}

static bool empty_line(const char *s, const char *eol)
{
    while (s < eol && (*s == ' ' || *s == '\r'))
        s++;
    return s == eol;
}

static void do_split(void *p)
{
    struct splitter *x = p;
    const char *s = x->text, *end = x->text + x->len;
    struct stream *last = NULL;
    const char *known = s;
    bool lost = false;
    uint32_t line = 0;

    bool bom = x->len >= 3 && memcmp(s, "\xEF\xBB\xBF", 3) == 0;

    if (bom)
        s += 3;
    while (s < end) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        const char *eol = nl ? nl : end;
        struct log_prefix pre = log_prefix_of(s, eol);
        struct stream *t;

        if (last != NULL && last->payload && *s == '\t') {
            t = last;
            pre.body = s + 1;
        } else if (last != NULL && last->payload && empty_line(s, eol) &&
                   lost_tab(s, end, &known, &lost)) {
            t = last;
        } else {
            t = stream_of(x, &pre);
            t->payload = pre.record && pre.body < eol && *pre.body == '{';
            t->text.log |= pre.body != s;
        }
        text_add_line(x->mem, &t->text, &t->buf, pre.body, eol, ++line, (uint32_t)(pre.body - s));
        t->text.crlf &= ends_in_crlf(s, eol, nl == NULL);
        if (nl == NULL)
            t->buf.len--; /* the text did not end in a newline */
        last = t;
        s = eol + 1;
    }
    vec_reserve(x->mem, &x->out->all, x->streams.len);
    for (uint32_t i = 0; i < x->streams.len; i++)
        buf_text(&x->streams.at[i].buf);
    for (uint32_t i = 0; i < x->streams.len; i++) {
        struct stream *t = &x->streams.at[i];

        t->text.at = t->text.own = t->buf.at;
        t->text.len = t->buf.len;
        t->text.own_size = t->buf.cap;
        t->text.bom = bom;
        x->out->all.at[x->out->all.len++] = t->text;
    }
    x->streams.len = 0; /* now owned by out */
}

void texts_split(struct mem *m, const char *text, size_t len, struct fx_texts *out)
{
    if (is_plain(text, len)) {
        vec_push(m, &out->all, ((struct fx_text){.at = text, .len = len, .rank = -1}));
        return;
    }
    struct splitter x = {.mem = m, .text = text, .len = len, .out = out};

    strtab_init(&x.keys, m);
    buf_init(&x.key, m);
    bool ok = mem_guard(m, do_split, &x);
    for (uint32_t i = 0; i < x.streams.len; i++) {
        buf_destroy(&x.streams.at[i].buf);
        vec_free(m, &x.streams.at[i].text.line);
        vec_free(m, &x.streams.at[i].text.column);
    }
    vec_free(m, &x.streams);
    buf_destroy(&x.key);
    strtab_destroy(&x.keys);
    if (!ok)
        mem_exhausted(m);
}

void text_free(struct mem *m, struct fx_text *t)
{
    mem_free(m, t->own, t->own_size);
    vec_free(m, &t->line);
    vec_free(m, &t->column);
    t->own = NULL;
}

void texts_free(struct mem *m, struct fx_texts *t)
{
    for (uint32_t i = 0; i < t->all.len; i++)
        text_free(m, &t->all.at[i]);
    vec_free(m, &t->all);
}

size_t text_match_prefix(const char *s, const char *end, const char *prefix, size_t len)
{
    const char *p = s, *q = prefix, *q_end = prefix + len;

    while (q < q_end) {
        if (p >= end)
            return 0;
        if (is_digit(*q) && is_digit(*p)) {
            while (q < q_end && is_digit(*q))
                q++;
            while (p < end && is_digit(*p))
                p++;
        } else if (*p++ != *q++) {
            return 0;
        }
    }
    return (size_t)(p - s);
}

static bool blank(const char *s, const char *end)
{
    while (s < end && (*s == ' ' || *s == '\t'))
        s++;
    return s == end;
}

struct unprefix {
    struct mem *mem;
    const struct fx_text *src;
    size_t from;
    uint32_t line;
    const char *prefix;
    size_t prefix_len;
    struct stream t;
};

static void do_unprefix(void *p)
{
    struct unprefix *x = p;
    const struct fx_text *src = x->src;
    const char *end = src->at + src->len;
    size_t trimmed = x->prefix_len; /* an empty line may lack the blanks at the prefix's end */

    while (trimmed > 0 && x->prefix[trimmed - 1] == ' ')
        trimmed--;
    while (x->from < src->len) {
        const char *s = src->at + x->from;
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        const char *eol = nl ? nl : end;
        size_t cut = text_match_prefix(s, eol, x->prefix, x->prefix_len);

        if (cut == 0 && trimmed > 0 && text_match_prefix(s, eol, x->prefix, trimmed) > 0 &&
            blank(s + text_match_prefix(s, eol, x->prefix, trimmed), eol))
            cut = (size_t)(eol - s);
        if (cut == 0 && !blank(s, eol))
            break;
        if (cut == 0)
            cut = (size_t)(eol - s);
        uint32_t line = x->line < src->line.len ? src->line.at[x->line] : src->line0 + x->line + 1;
        uint32_t column = x->line < src->column.len ? src->column.at[x->line] : 0;
        text_add_line(x->mem, &x->t.text, &x->t.buf, s + cut, eol, line, column + (uint32_t)cut);
        if (nl == NULL)
            x->t.buf.len--;
        x->from = (size_t)(eol - src->at) + (nl != NULL);
        x->line++;
    }
    buf_text(&x->t.buf);
}

size_t text_unprefix(struct mem *m, const struct fx_text *src, size_t from, uint32_t line,
                     const char *prefix, size_t prefix_len, struct fx_text *out, uint32_t *end_line)
{
    struct unprefix x = {.mem = m,
                         .src = src,
                         .from = from,
                         .line = line,
                         .prefix = prefix,
                         .prefix_len = prefix_len};

    buf_init(&x.t.buf, m);
    if (!mem_guard(m, do_unprefix, &x)) {
        buf_destroy(&x.t.buf);
        text_free(m, &x.t.text);
        mem_exhausted(m);
    }
    *out = x.t.text;
    out->at = out->own = x.t.buf.at;
    out->len = x.t.buf.len;
    out->own_size = x.t.buf.cap;
    out->rank = src->rank;
    out->log = true;
    *end_line = x.line;
    return x.from;
}
