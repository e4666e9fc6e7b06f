# SPDX-License-Identifier: Apache-2.0
"""Compares loops and conditionals with the same code in Python."""
import numpy as np

from layers_support import FLOATS, LayerCase


class RegionLayers(LayerCase):
    def test_a_loop_with_a_trip_count(self):
        for dtype in FLOATS:
            for index in ("int32", "int64"):
                rows, first = self.normal(4, 3, 5, dtype=dtype), np.zeros((3, 5), dtype)
                for axis in (0, 1, 2):
                    for reverse in (False, True):
                        parts = [np.take(rows, i, axis) for i in range(rows.shape[axis])][::-1 if reverse else 1]
                        total, totals = np.zeros(parts[0].shape), []
                        for part in parts:
                            total = total + part
                            totals.append(total)
                        first = np.zeros(parts[0].shape, dtype)

                        def make(n, t, count):
                            loop = n.add_loop()
                            loop.set_trip_count(count)
                            sums = loop.add_recurrence(first)
                            grown = n.add_elementwise(sums, loop.add_iterator(t, axis, reverse), "sum")
                            sums.set_next(grown)
                            return [loop.add_output(sums), loop.add_output(grown, "concatenate", 0), loop.add_output(grown, "reverse", 0),
                                    loop.add_output(grown, "concatenate", 2), loop.add_output(grown, "reverse", 1)]

                        expected = [total, np.stack(totals), np.stack(totals[::-1]), np.stack(totals, 2), np.stack(totals[::-1], 1)]
                        self.check(make, [rows, np.array(len(parts), index)], [array.astype(dtype) for array in expected],
                                   f"{dtype} {index} {axis} {reverse}", dynamic_axis=None)

    def test_a_loop_without_iterations(self):
        def make(n, t, count):
            loop = n.add_loop()
            loop.set_trip_count(count)
            value = loop.add_recurrence(t)
            value.set_next(n.add_unary(value, "neg"))
            return [loop.add_output(value), loop.add_output(value, "concatenate")]

        x = self.normal(2, 3)
        self.check(make, [x, np.array(0, "int32")], [x, np.zeros((0, 2, 3), "float32")], dynamic_axis=None)
        self.check(make, [x, np.array(3, "int32")], [-x, np.stack([x, -x, x])], dynamic_axis=None)

    def test_an_assertion_in_a_loop(self):
        import kelp

        def make(n, t, limit):
            loop = n.add_loop()
            loop.set_trip_count(np.array(3, "int32"))
            value = loop.add_recurrence(t)
            doubled = n.add_elementwise(value, np.array(2, "float32"), "prod")
            n.add_assertion(n.add_elementwise(doubled, limit, "less"), "it grew too much")
            value.set_next(doubled)
            return loop.add_output(value)

        one = np.array(1, "float32")
        self.check(make, [one, np.array(9, "float32")], np.array(8, "float32"), dynamic_axis=None)
        with self.assertRaises(kelp.KelpError) as caught:
            self.outputs_of(make, [one, np.array(8, "float32")])
        self.assertIn("it grew too much", str(caught.exception))

    def test_a_loop_with_a_condition(self):
        def make(n, t):
            loop = n.add_loop()
            value = loop.add_recurrence(t)
            doubled = n.add_elementwise(value, np.array(2, "float32"), "prod")
            value.set_next(doubled)
            loop.set_condition(n.add_elementwise(value, np.array(100, "float32"), "less"))
            return loop.add_output(value)

        found, = self.outputs_of(make, [np.array(3, "float32")])
        value = np.float32(3)
        while value < 100:
            value *= 2
        self.assertEqual(float(found), float(value))

    def test_nested_loops(self):
        def make(n, t):
            outer = n.add_loop()
            outer.set_trip_count(np.array(3, "int32"))
            row = outer.add_iterator(t)
            inner = n.add_loop()
            inner.set_trip_count(np.array(4, "int32"))
            total = inner.add_recurrence(np.array(0, "float32"))
            total.set_next(n.add_elementwise(total, inner.add_iterator(row), "sum"))
            return outer.add_output(inner.add_output(total), "concatenate")

        x = self.normal(3, 4)
        self.check(make, [x], x.sum(1), dynamic_axis=None)

    def test_conditional(self):
        for dtype in (*FLOATS, "int32"):
            x = (self.normal(2, 3) * 9).astype(dtype)
            for flag in (True, False):
                def make(n, t, c):
                    branches = n.add_conditional(c)
                    seen = branches.add_input(t)
                    return branches.add_output(n.add_unary(seen, "neg"), n.add_elementwise(seen, seen, "sum"))

                self.check(make, [x, np.array(flag)], -x if flag else x + x, f"{dtype} {flag}", dynamic_axis=None)

    def test_a_conditional_in_a_loop(self):
        def make(n, t):
            loop = n.add_loop()
            loop.set_trip_count(np.array(5, "int32"))
            item, total = loop.add_iterator(t), loop.add_recurrence(np.array(0, "float32"))
            branches = n.add_conditional(n.add_elementwise(item, np.array(0, "float32"), "less"))
            value = branches.add_input(item)
            total.set_next(n.add_elementwise(total, branches.add_output(n.add_unary(value, "neg"), n.add_identity(value)), "sum"))
            return loop.add_output(total)

        x = self.normal(5)
        self.check(make, [x], np.asarray(abs(x).sum(), "float32"), dynamic_axis=None)
