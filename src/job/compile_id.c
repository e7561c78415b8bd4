#include "job/compile_id.h"

#include <stdio.h>
#include <string.h>

/* A number at *s; steps over it. */
static bool number(const char **s, const char *end, int32_t *out)
{
    int64_t v = 0;
    const char *p = *s;

    for (; p < end && *p >= '0' && *p <= '9' && v < INT32_MAX; p++)
        v = v * 10 + (*p - '0');
    if (p == *s || v > INT32_MAX)
        return false;
    *s = p;
    *out = (int32_t)v;
    return true;
}

static bool step_over(const char **s, const char *end, char c)
{
    if (*s < end && **s == c) {
        (*s)++;
        return true;
    }
    return false;
}

bool compile_id_parse(const char *s, size_t len, struct compile_id *out)
{
    const char *end = s + len;
    struct compile_id id = NO_COMPILE_ID;

    if (step_over(&s, end, '!')) {
        if (!number(&s, end, &id.autograd))
            return false;
        if (s < end && !step_over(&s, end, '/'))
            return false;
    }
    if (s < end || id.autograd < 0) {
        if (!number(&s, end, &id.frame) || !step_over(&s, end, '/') ||
            !number(&s, end, &id.compile))
            return false;
        if (step_over(&s, end, '_') && !number(&s, end, &id.attempt))
            return false;
    }
    *out = id;
    return s == end;
}

const char *compile_id_text(struct compile_id id, bool attempt, char out[COMPILE_ID_TEXT])
{
    char tail[32] = "", head[16] = "";
    int n = 0;

    if (id.part > 0)
        n = snprintf(tail, sizeof(tail), ".%d", id.part);
    if (attempt && id.attempt > 0)
        snprintf(tail + n, sizeof(tail) - (size_t)n, "_%d", id.attempt);
    if (id.autograd >= 0)
        snprintf(head, sizeof(head), "!%d%s", id.autograd, id.frame >= 0 ? "/" : "");
    if (id.frame < 0)
        snprintf(out, COMPILE_ID_TEXT, "%s", *head ? head : "-");
    else if (id.compile < 0)
        snprintf(out, COMPILE_ID_TEXT, "%s%d%s", head, id.frame, tail);
    else
        snprintf(out, COMPILE_ID_TEXT, "%s%d/%d%s", head, id.frame, id.compile, tail);
    return out;
}
