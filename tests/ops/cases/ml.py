# SPDX-License-Identifier: Apache-2.0
"""Cases of ai.onnx.ml: random ensembles of all node modes, support vector machines of all kernels, encoders. Expected values are those of
ONNX Runtime, or of NumPy where ONNX Runtime departs from the specification."""
import numpy as np

from .common import f32, helper, i64, rng

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


class Forest:
    """The attributes of random trees; each leaf has a weight for one target, or for several."""

    def __init__(self, trees, depth, features, targets, modes=("BRANCH_LEQ",), per_leaf=1, low=-1.0, only=None):
        self.a = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
                                  "missing_value_tracks_true")}
        self.w = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}
        self.features, self.targets, self.modes, self.per_leaf, self.low, self.only = features, targets, modes, per_leaf, low, only
        for t in range(trees):
            self.next = 0
            self.grow(t, depth)

    def node(self, t, mode, yes, no):
        values = (t, self.next, int(rng.integers(self.features)), float(np.round(rng.uniform(-2, 2), 1)), mode, yes, no,
                  int(rng.integers(2)))
        for k, v in zip(self.a, values):
            self.a[k].append(v)
        self.next += 1

    def grow(self, t, depth):
        me, at = self.next, len(self.a["nodeids"])
        if depth == 0 or (depth < 3 and rng.random() < 0.2):
            self.node(t, "LEAF", 0, 0)
            ids = [self.only] if self.only is not None else rng.permutation(self.targets)[:self.per_leaf]
            for i in ids:
                for k, v in zip(self.w, (t, me, int(i), float(np.float32(rng.uniform(self.low, 1))))):
                    self.w[k].append(v)
            return me
        self.node(t, str(rng.choice(self.modes)), 0, 0)
        self.a["truenodeids"][at] = self.grow(t, depth - 1)
        self.a["falsenodeids"][at] = self.grow(t, depth - 1)
        return me

    def attrs(self, prefix):
        return {f"nodes_{k}": v for k, v in self.a.items()} | {f"{prefix}_{k}": v for k, v in self.w.items()}


def rows(n, c):
    x = np.round(f32(n, c), 1)
    x[rng.random((n, c)) < 0.05] = np.nan
    return x


def tree_ensemble_regressor(own):
    x = rows(37, 6)
    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        for targets, modes in ((1, MODES), (3, MODES[:1])):
            forest = Forest(5, 5, 6, targets, modes, per_leaf=targets)
            own.add("TreeEnsembleRegressor", [x], domain="ai.onnx.ml", opset=3, n_targets=targets, aggregate_function=aggregate,
                    base_values=[float(v) for v in f32(targets)], **forest.attrs("target"))
    for transform in ("SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        own.add("TreeEnsembleRegressor", [x], domain="ai.onnx.ml", opset=1, n_targets=3, post_transform=transform,
                **Forest(4, 3, 6, 3, per_leaf=3).attrs("target"))
    forest = Forest(40, 6, 6, 1, ("BRANCH_LT",))
    own.add("TreeEnsembleRegressor", [x.astype(np.float64)], domain="ai.onnx.ml", opset=1, n_targets=1, **forest.attrs("target"))


def tree_ensemble_classifier(own):
    x = rows(41, 5)
    strings = ["one", "two", "three"]
    for transform in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        forest = Forest(6, 4, 5, 3, MODES, per_leaf=3)
        own.add("TreeEnsembleClassifier", [x], domain="ai.onnx.ml", opset=3, outputs=2, post_transform=transform,
                classlabels_strings=strings, **forest.attrs("class"))
        own.add("TreeEnsembleClassifier", [x], domain="ai.onnx.ml", opset=1, outputs=2, post_transform=transform,
                classlabels_int64s=[7, 3, 5], base_values=[0.5, -0.25, 0.125], **forest.attrs("class"))
        for low in (-1.0, 0.0):
            for only in (0, 1):
                forest = Forest(1 if low == 0 else 5, 4, 5, 2, MODES[:2], low=low, only=only)
                own.add("TreeEnsembleClassifier", [x], domain="ai.onnx.ml", opset=1, outputs=2, post_transform=transform,
                        classlabels_int64s=[0, 1], **forest.attrs("class"))
        # both classes have weights: the greater sum wins (ONNX Runtime reads only the second)
        forest = Forest(5, 4, 5, 2, MODES, per_leaf=2)
        own.add("TreeEnsembleClassifier", [np.nan_to_num(x)], domain="ai.onnx.ml", opset=1, outputs=2, post_transform=transform,
                classlabels_strings=["no", "yes"], reference="onnx", **forest.attrs("class"))


def linear_regressor_and_classifier(own):
    x = f32(11, 5)
    for transform in ("NONE", "SOFTMAX", "LOGISTIC"):
        own.add("LinearRegressor", [x], domain="ai.onnx.ml", opset=1, targets=3, coefficients=f32(15).tolist(),
                intercepts=f32(3).tolist(), post_transform=transform)
        own.add("LinearClassifier", [x], domain="ai.onnx.ml", opset=1, outputs=2, coefficients=f32(20).tolist(),
                intercepts=f32(4).tolist(), classlabels_ints=[4, 5, 6, 7], post_transform=transform)
        own.add("LinearClassifier", [x], domain="ai.onnx.ml", opset=1, outputs=2, coefficients=f32(10).tolist(),
                intercepts=f32(2).tolist(), classlabels_strings=["a", "b"], post_transform=transform)
    own.add("LinearRegressor", [f32(5)[None]], domain="ai.onnx.ml", opset=1, targets=1, coefficients=f32(5).tolist())


def svm_regressor_and_classifier(own):
    x = f32(13, 4)
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        common = {"kernel_type": kernel, "kernel_params": [0.3, 0.5, 2.0], "domain": "ai.onnx.ml", "opset": 1}
        own.add("SVMRegressor", [x], coefficients=f32(6).tolist(), support_vectors=f32(24).tolist(), n_supports=6, rho=[0.7], **common)
        own.add("SVMRegressor", [x], coefficients=f32(6).tolist(), support_vectors=f32(24).tolist(), n_supports=6, rho=[0.1],
                one_class=1, **common)
        for classes, per in ((2, [3, 4]), (3, [2, 3, 2]), (4, [2, 1, 2, 3])):
            n, pairs = sum(per), classes * (classes - 1) // 2
            attrs = dict(coefficients=f32(n * (classes - 1)).tolist(), support_vectors=f32(n * 4).tolist(), vectors_per_class=per,
                         rho=f32(pairs).tolist(), outputs=2, classlabels_ints=list(range(3, 3 + classes)), **common)
            own.add("SVMClassifier", [x], **attrs)
            own.add("SVMClassifier", [x], prob_a=f32(pairs).tolist(), prob_b=f32(pairs).tolist(), **attrs)


def svm_and_linear_classifier_of_two_classes(own):
    """A score for the second class only, with each post_transform."""
    x = f32(13, 4)
    for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        common = {"domain": "ai.onnx.ml", "opset": 1, "outputs": 2, "post_transform": transform}
        for classes, per in ((2, [3, 4]), (3, [2, 3, 2])):
            own.add("SVMClassifier", [x], coefficients=f32(7 * (classes - 1)).tolist(), support_vectors=f32(28).tolist(),
                    vectors_per_class=per, rho=f32(classes * (classes - 1) // 2).tolist(), kernel_type="RBF",
                    kernel_params=[0.3, 0.5, 2.0], classlabels_strings=["a", "b", "c"][:classes], **common)
        own.add("SVMClassifier", [x], coefficients=f32(12).tolist(), rho=[0.25], kernel_type="LINEAR", kernel_params=[1.0, 0.0, 1.0],
                classlabels_ints=[5, 6, 7], **common)
        own.add("LinearClassifier", [x], coefficients=f32(4).tolist(), intercepts=[0.2], classlabels_ints=[3, 9], **common)


def label_encoder_category_mapper_and_one_hot_encoder(own):
    ml = {"domain": "ai.onnx.ml", "opset": 2}
    words = np.array([["x", "b", "a"], ["c", "", "b"]], object)
    own.add("LabelEncoder", [words], keys_strings=["a", "b", "c"], values_int64s=[5, 6, 7], default_int64=42, **ml)
    own.add("LabelEncoder", [words], keys_strings=["a", "b", "c"], values_floats=[0.5, 1.5, 2.5], default_float=-7.0, **ml)
    own.add("LabelEncoder", [i64(3, 1, 2, 9)], keys_int64s=[1, 2, 3], values_strings=["i", "ii", "iii"], **ml)
    own.add("LabelEncoder", [np.array([1.5, np.nan, 0.0], np.float32)], keys_floats=[np.nan, 1.5], values_strings=["n", "o"],
            default_string="none", reference=[np.array(["o", "n", "none"], object)], **ml)
    own.add("LabelEncoder", [words], domain="ai.onnx.ml", opset=1, classes_strings=["b", "a"],
            reference=[np.array([[-1, 0, 1], [-1, -1, 0]])])
    own.add("CategoryMapper", [words], domain="ai.onnx.ml", opset=1, cats_strings=["a", "b", "c"], cats_int64s=[9, 8, 7], default_int64=3)
    own.add("CategoryMapper", [i64(9, 1, 7)], domain="ai.onnx.ml", opset=1, cats_strings=["a", "b", "c"], cats_int64s=[9, 8, 7],
            default_string="?")
    own.add("OneHotEncoder", [i64(1, 5, 3)], domain="ai.onnx.ml", opset=1, cats_int64s=[3, 4, 5], zeros=1)
    own.add("OneHotEncoder", [np.array([["b", "z"]], object)], domain="ai.onnx.ml", opset=1, cats_strings=["a", "b"])
    own.add("OneHotEncoder", [np.array([3, 4, 7], np.float32)], domain="ai.onnx.ml", opset=1, cats_int64s=[3, 4, 5], zeros=1)


def feature_operators(own):
    ml = {"domain": "ai.onnx.ml", "opset": 1}
    x = f32(4, 5)
    own.add("ArrayFeatureExtractor", [x, i64(3, 0, 3)], **ml)
    own.add("ArrayFeatureExtractor", [np.array([["a", "b"], ["c", "d"]], object), i64(1)], **ml)
    own.add("ArrayFeatureExtractor", [f32(2, 3, 4), i64(1, 2)], **ml)
    own.add("FeatureVectorizer", [x, f32(4, 2)], inputdimensions=[5, 2], **ml)
    own.add("FeatureVectorizer", [f32(4, 3), f32(4, 2)], inputdimensions=[2, 4], **ml)
    for dtype in (np.float32, np.float64, np.int64, np.int32):
        y = rng.integers(-3, 4, (4, 3)).astype(dtype)
        own.add("Scaler", [y], offset=[0.5, 1.0, -2.0], scale=[2.0, 0.25, 3.0], **ml)
        own.add("Scaler", [y], offset=[0.5], scale=[2.0], **ml)
        for norm in ("MAX", "L1", "L2"):
            own.add("Normalizer", [y], norm=norm, **ml)
    own.add("Binarizer", [x], threshold=0.25, **ml)
    own.add("Imputer", [np.array([[1, np.nan], [np.nan, 2]], np.float32)], imputed_value_floats=[7.0, 8.0],
            replaced_value_float=float("nan"), **ml)
    own.add("Imputer", [np.array([[1, 5], [5, 2]], np.int64)], imputed_value_int64s=[9], replaced_value_int64=5, **ml)


def tree_ensemble(own):
    """TreeEnsemble with set membership and two leaves; the expected values are computed by hand."""
    x = np.array([[1.2, 3.4, -0.12, 1.66, 4.14, 1.77], [0.5, 3.0, 2.0, 0.0, 1.0, 1.0]], np.float64)
    own.add("TreeEnsemble", [x], domain="ai.onnx.ml", opset=5, n_targets=2, aggregate_function=1, post_transform=0, tree_roots=[0],
            nodes_featureids=[0, 1], nodes_modes=helper.make_tensor("m", 2, (2,), [0, 6]),
            nodes_splits=helper.make_tensor("s", 11, (2,), [1.0, 0.0]), nodes_truenodeids=[0, 1], nodes_trueleafs=[1, 1],
            nodes_falsenodeids=[1, 2], nodes_falseleafs=[0, 1], leaf_targetids=[0, 1, 0],
            leaf_weights=helper.make_tensor("w", 11, (3,), [5.23, 12.12, -12.23]),
            membership_values=helper.make_tensor("v", 11, (3,), [3.4, 7.0, np.nan]), reference=[np.array([[0, 12.12], [5.23, 0]])])


def tree_ensemble_comparisons(own):
    """Blocks of eight rows and the remainder, few rows with many trees, each comparison alone, splits at the limits of the types."""
    for mode in MODES:
        for trees, count in ((13, 1), (3, 19)):
            forest = Forest(trees, 5, 6, 1, (mode,))
            own.add("TreeEnsembleRegressor", [rows(count, 6)], domain="ai.onnx.ml", opset=3, n_targets=1, **forest.attrs("target"))
            if mode == "BRANCH_LEQ":
                for x in (np.nan_to_num(rows(count, 6)), rows(count, 6).astype(np.float64)):
                    own.add("TreeEnsembleRegressor", [x], domain="ai.onnx.ml", opset=3, n_targets=1, **forest.attrs("target"))
        for dtype in (np.float64, np.int32, np.int64):
            own.add("TreeEnsembleClassifier", [rng.integers(-2, 3, (19, 5)).astype(dtype)], domain="ai.onnx.ml", opset=3, outputs=2,
                    classlabels_int64s=[0, 1, 2], **Forest(6, 4, 5, 3, (mode,), per_leaf=3).attrs("class"))
        ends = np.array([0.0, -0.0, np.inf, -np.inf, 5e-324, -5e-324, 2.2e-308, -2.2e-308, 1.7e308, -1.7e308, 1.0])
        x = np.concatenate([ends, np.nextafter(ends, np.inf), np.nextafter(ends, -np.inf), [np.nan]])
        forest = Forest(40, 4, 3, 1, (mode,)).attrs("target")
        splits = rng.choice(ends, len(forest.pop("nodes_values")))
        weights = np.array(forest.pop("target_weights"))
        own.add("TreeEnsembleRegressor", [rng.choice(x, (60, 3))], domain="ai.onnx.ml", opset=3, n_targets=1,
                nodes_values_as_tensor=helper.make_tensor("s", 11, splits.shape, splits),
                target_weights_as_tensor=helper.make_tensor("w", 11, weights.shape, weights), **forest)


    leaf = {k: [0] for k in ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids",
                             "target_treeids", "target_nodeids", "target_ids")}
    for dtype in (np.float32, np.float64):  # a tree of one leaf, rows without columns
        own.add("TreeEnsembleRegressor", [np.zeros((9, 0), dtype)], domain="ai.onnx.ml", opset=3, n_targets=1, nodes_modes=["LEAF"],
                nodes_values=[0.0], target_weights=[1.5], reference=[np.full((9, 1), 1.5, np.float32)], **leaf)


class Ensemble:
    """The attributes of TreeEnsemble with random trees of all modes, and their evaluation as the specification defines it."""

    def __init__(self, trees, depth, features, targets, dtype):
        self.branches, self.leaves, self.sets, self.targets, self.dtype = [], [], [], targets, dtype
        self.features = features
        self.roots = [self.branch(depth) for _ in range(trees)]

    def branch(self, depth):
        me = len(self.branches)
        mode = int(rng.integers(7))
        members = np.round(rng.uniform(-2, 2, 3), 1).astype(self.dtype) if mode == 6 else None
        b = {"feature": int(rng.integers(self.features)), "mode": mode, "members": members, "missing": int(rng.integers(2)),
             "split": np.round(rng.uniform(-2, 2), 1).astype(self.dtype)}
        self.branches.append(b)
        b["yes"], b["no"] = self.child(depth), self.child(depth)
        return me

    def child(self, depth):
        if depth > 1 and rng.random() > 0.2:
            return 0, self.branch(depth - 1)
        self.leaves.append((int(rng.integers(self.targets)), rng.uniform(-1, 1)))
        return 1, len(self.leaves) - 1

    def attrs(self):
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        b = self.branches
        members = [v for n in b if n["mode"] == 6 for v in [*n["members"], np.nan]]
        floats = {"nodes_splits": [n["split"] for n in b], "leaf_weights": [w for _, w in self.leaves], "membership_values": members}
        return {"tree_roots": self.roots, "nodes_featureids": [n["feature"] for n in b], "leaf_targetids": [t for t, _ in self.leaves],
                "nodes_modes": helper.make_tensor("m", 2, (len(b),), [n["mode"] for n in b]),
                "nodes_missing_value_tracks_true": [n["missing"] for n in b],
                **{f"nodes_{which}nodeids": [n[how][1] for n in b] for which, how in (("true", "yes"), ("false", "no"))},
                **{f"nodes_{which}leafs": [n[how][0] for n in b] for which, how in (("true", "yes"), ("false", "no"))},
                **{k: helper.make_tensor(k, kind, (len(v),), v) for k, v in floats.items()}}

    def evaluate(self, x):
        out = np.zeros((len(x), self.targets))
        for row, root in ((row, root) for row in range(len(x)) for root in self.roots):
            leaf, at = 0, root
            while not leaf:
                n = self.branches[at]
                v, s = x[row, n["feature"]], n["split"]
                yes = [v <= s, v < s, v >= s, v > s, v == s, v != s, n["mode"] == 6 and v in n["members"]][n["mode"]]
                leaf, at = n["yes"] if yes or (n["missing"] and np.isnan(v)) else n["no"]
            target, weight = self.leaves[at]
            out[row, target] += self.dtype(weight)
        return out.astype(self.dtype)


def tree_ensemble_random(own):
    for dtype in (np.float32, np.float64):
        for trees, count, targets in ((11, 21, 1), (5, 8, 3), (17, 3, 1)):
            ensemble = Ensemble(trees, 5, 4, targets, dtype)
            x = rows(count, 4).astype(dtype)
            own.add("TreeEnsemble", [x], domain="ai.onnx.ml", opset=5, n_targets=targets, aggregate_function=1, post_transform=0,
                    reference=[ensemble.evaluate(x)], **ensemble.attrs())


def rejected(own):
    x, ml = f32(3, 4), {"domain": "ai.onnx.ml", "opset": 3}
    tree = Forest(1, 3, 4, 1).attrs("target")

    def changed(name, at, value):
        return tree | {name: [*tree[name][:at], value, *tree[name][at + 1:]]}

    last = tree["nodes_modes"].index("LEAF") - 1  # a branch
    for why, attrs in [
            ("has no node 999", changed("nodes_truenodeids", last, 999)),
            ("has two parents", changed("nodes_falsenodeids", last, 0)),
            ("unknown mode 'BRANCH_UP'", changed("nodes_modes", 0, "BRANCH_UP")),
            ("-1 is not a column", changed("nodes_featureids", 0, -1)),
            ("expected at least 18, found 4", changed("nodes_featureids", 0, 17)),
            ("has node 0 twice", changed("nodes_nodeids", 1, 0)),
            ("7 is outside [0, 1)", changed("target_ids", 0, 7)),
            ("post_transform: expected NONE", tree | {"post_transform": "SOFT"}),
            ("aggregate_function: expected", tree | {"aggregate_function": "MEDIAN"}),
            ("expected", tree | {"nodes_values": tree["nodes_values"][:-1]})]:
        own.refuse("TreeEnsembleRegressor", [x], why, n_targets=1, **(ml | attrs))
    own.refuse("LinearRegressor", [x], "coefficients: expected 8", targets=2, coefficients=[1.0] * 7, **ml)
    own.refuse("LinearClassifier", [x], "expected one of attributes", outputs=2, coefficients=[1.0] * 8, **ml)
    own.refuse("SVMRegressor", [x], "kernel_type: expected", kernel_type="CUBE", coefficients=[1.0], rho=[0.0], **ml)
    own.refuse("SVMClassifier", [x], "the attributes are inconsistent", outputs=2, classlabels_ints=[1, 2], coefficients=[1.0] * 3, rho=[0.0],
               support_vectors=[1.0] * 8, vectors_per_class=[1, 1], **ml)
    own.refuse("Normalizer", [x], "norm: expected MAX", norm="L3", **ml)
    own.refuse("Scaler", [x], "offset: expected 1 or 4", offset=[1.0, 2.0], scale=[1.0], **ml)
    own.refuse("ArrayFeatureExtractor", [x, i64(4)], "index 4 is outside [0, 4)", **ml)
    own.refuse("OneHotEncoder", [i64(3)], "which has 2 categories", cats_int64s=[1, 2], zeros=0, **ml)
    own.refuse("LabelEncoder", [i64(3)], "found 2 and 1", keys_int64s=[1, 2], values_int64s=[5], **ml)


def tree_ensemble_classifier_of_two_classes(own):
    """Two classes, both with weights, of which a row reaches one: the greater score wins."""
    x = np.array([[0.0], [1.0]], np.float32)
    own.add("TreeEnsembleClassifier", [x], opset=1, domain="ai.onnx.ml", outputs=2, nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2],
            nodes_featureids=[0, 0, 0], nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_values=[0.5, 0.0, 0.0], nodes_truenodeids=[1, 0, 0],
            nodes_falsenodeids=[2, 0, 0], class_treeids=[0, 0], class_nodeids=[1, 2], class_ids=[0, 1], class_weights=[2.5, 1.5],
            classlabels_int64s=[7, 9], reference=[i64(7, 9), np.array([[2.5, 0], [0, 1.5]], np.float32)])


CASES = [
    tree_ensemble_regressor, tree_ensemble_classifier, linear_regressor_and_classifier, svm_regressor_and_classifier,
    svm_and_linear_classifier_of_two_classes, label_encoder_category_mapper_and_one_hot_encoder, feature_operators,
    tree_ensemble, tree_ensemble_comparisons, tree_ensemble_random, rejected, tree_ensemble_classifier_of_two_classes]
