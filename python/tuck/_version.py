"""The version of the package: that of include/tuck.h, which tests/python.sh compares."""

VERSION = "0.2.0"
