#include "base/options_take.h"

#include <string.h>

tuck_status options_take(void *own, size_t own_size, const void *given)
{
    size_t size;

    if (given == NULL)
        return TUCK_OK;
    memcpy(&size, given, sizeof(size));
    if (size <= sizeof(size))
        return TUCK_EINVAL;
    memcpy(own, given, size < own_size ? size : own_size);
    memcpy(own, &own_size, sizeof(own_size));
    return TUCK_OK;
}
