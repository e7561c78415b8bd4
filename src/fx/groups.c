#include "fx/groups.h"
void groups_collect(tuck_doc *doc, tuck_diags *diags, const char *file) { (void)doc; (void)diags; (void)file; }
