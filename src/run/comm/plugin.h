/* What a plug-in with a transport exports. */
#ifndef TUCK_RUN_COMM_PLUGIN_H
#define TUCK_RUN_COMM_PLUGIN_H

#include "run/comm/transport.h"
#include "tuck.h"

#define TUCK_TRANSPORT_SYMBOL "tuck_transport"

/* NULL if the plug-in was built for another version. */
typedef const struct transport *tuck_transport_fn(const char *version, size_t call_bytes);

#endif
