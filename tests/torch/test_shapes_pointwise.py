"""Element-wise operators, copies, factories, scans and sorts: what is inferred is what torch gives."""

from shapes import ShapeTest, by_schema


class PointwiseTest(ShapeTest):
    RULES = {"unary": by_schema, "unary_float": by_schema, "broadcast": by_schema}
