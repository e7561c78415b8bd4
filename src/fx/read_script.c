#include "fx/read.h"
bool read_script_line(struct reader *r) { (void)r; return false; }
