/* Pipelines of the public interface. */
#ifndef TUCK_API_PASS_API_H
#define TUCK_API_PASS_API_H

#include "pass/pass.h"

struct tuck_pipeline {
    struct pipeline p;
};

#endif
