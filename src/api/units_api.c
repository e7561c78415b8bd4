/* Sizes as text. */
#include "base/units.h"

#include "tuck.h"

int64_t tuck_parse_bytes(const char *text)
{
    return text != NULL ? bytes_of_text(text) : -1;
}

const char *tuck_format_bytes(int64_t bytes, char out[TUCK_BYTES_TEXT])
{
    if (bytes >= 0)
        return text_of_bytes(bytes, out);
    out[0] = '?';
    out[1] = '\0';
    return out;
}
