# SPDX-License-Identifier: Apache-2.0
"""Operators of ai.onnx.ml: trees, support vectors, linear models, scalers and encoders."""
import numpy as np

from .common import K, X, generator, single

ML = "ai.onnx.ml"
# rows, columns
TABLES = [(1, 20), (32, 20), (1000, 30), (7, 5)]


def forest(trees, depth, columns, targets, kind):
    """Attributes of complete trees with random thresholds; the last ones are shorter."""
    rng = np.random.default_rng(trees * 31 + depth)
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    nodes, weights = {name: [] for name in names}, {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(trees):
        count = 2 ** (depth + 1) - 1
        for node in range(count):
            leaf = 2 * node + 2 >= count
            values = (tree, node, int(rng.integers(columns)), float(rng.normal()), "LEAF" if leaf else "BRANCH_LEQ", 0 if leaf else 2 * node + 1,
                      0 if leaf else 2 * node + 2)
            for name, value in zip(names, values):
                nodes[name].append(value)
            for target in range(targets) if leaf else ():
                for name, value in zip(weights, (tree, node, target, float(rng.normal()) / trees)):
                    weights[name].append(value)
    prefix = "class" if kind == "classes" else "target"
    return {**{f"nodes_{name}": value for name, value in nodes.items()}, **{f"{prefix}_{name}": value for name, value in weights.items()}}


@generator("trees")
def trees():
    for number, depth in ((1, 6), (100, 5), (100, 8), (500, 4)):
        for rows, columns in TABLES:
            note = f"{number} trees of depth {depth}"
            yield single("TreeEnsembleRegressor", "f32", [X(rows, columns)], domain=ML, opset=21, note=note, n_targets=1,
                         **forest(number, depth, columns, 1, "targets"))
            if number == 100:
                yield single("TreeEnsembleClassifier", "f32", [X(rows, columns)], domain=ML, outputs=2, out=["i64", "f32"], note=note,
                             classlabels_int64s=[0, 1, 2], **forest(number, depth, columns, 3, "classes"))
                yield single("TreeEnsembleRegressor", "f64", [X(rows, columns)], domain=ML, out=["f32"], note=note, n_targets=1,
                             **forest(number, depth, columns, 1, "targets"))
    for rows, columns in TABLES:
        yield tree_ensemble(rows, columns, 100, 6)


def tree_ensemble(rows, columns, trees, depth):
    """The operator of ai.onnx.ml 5, whose leaves are a list of their own."""
    from onnx import TensorProto as T, helper
    rng, inner = np.random.default_rng(3), 2 ** depth - 1
    roots, features, splits, true_ids, false_ids, true_leafs, false_leafs, leaf_count = [], [], [], [], [], [], [], 0
    for tree in range(trees):
        roots.append(tree * inner)
        for node in range(inner):
            features.append(int(rng.integers(columns)))
            splits.append(float(rng.normal()))
            last = 2 * node + 1 >= inner
            for ids, leafs, child in ((true_ids, true_leafs, 2 * node + 1), (false_ids, false_leafs, 2 * node + 2)):
                ids.append(leaf_count if last else tree * inner + child)
                leafs.append(int(last))
                leaf_count += last
    return single("TreeEnsemble", "f32", [X(rows, columns)], domain=ML, note=f"{trees} trees of depth {depth}", n_targets=1, aggregate_function=1,
                  post_transform=0, tree_roots=roots, nodes_featureids=features, nodes_truenodeids=true_ids, nodes_falsenodeids=false_ids,
                  nodes_trueleafs=true_leafs, nodes_falseleafs=false_leafs, leaf_targetids=[0] * leaf_count,
                  nodes_modes=helper.make_tensor("m", T.UINT8, [len(splits)], [0] * len(splits)),
                  nodes_splits=helper.make_tensor("s", T.FLOAT, [len(splits)], splits),
                  leaf_weights=helper.make_tensor("w", T.FLOAT, [leaf_count], rng.normal(size=leaf_count).tolist()))


@generator("support vectors")
def support_vectors():
    for rows, columns in TABLES:
        for vectors in (20, 500):
            rng = np.random.default_rng(vectors)
            points = rng.normal(size=vectors * columns).tolist()
            for kernel in ("RBF", "LINEAR", "POLY"):
                yield single("SVMRegressor", "f32", [X(rows, columns)], domain=ML, kernel_type=kernel, kernel_params=[0.1, 0.5, 2.0], rho=[0.3],
                             coefficients=rng.normal(size=vectors).tolist(), support_vectors=points, n_supports=vectors, note=f"{vectors} vectors")
            half = vectors // 2
            yield single("SVMClassifier", "f32", [X(rows, columns)], domain=ML, outputs=2, out=["i64", "f32"], kernel_type="RBF",
                         kernel_params=[0.1, 0.0, 3.0], rho=[0.3], coefficients=rng.normal(size=vectors).tolist(), support_vectors=points,
                         vectors_per_class=[half, vectors - half], classlabels_ints=[0, 1], note=f"{vectors} vectors")


@generator("tables")
def tables():
    for rows, columns in TABLES:
        numbers = np.linspace(0.5, 1.5, columns).tolist()
        for dtype in ("f32", "f64", "i64"):
            yield single("Scaler", dtype, [X(rows, columns)], domain=ML, out=["f32"], offset=numbers, scale=numbers)
            yield single("Normalizer", dtype, [X(rows, columns, high=9)], domain=ML, out=["f32"], norm="L2")
        yield single("Binarizer", "f32", [X(rows, columns)], domain=ML, threshold=0.5)
        yield single("Imputer", "f32", [X(rows, columns)], domain=ML, imputed_value_floats=numbers, replaced_value_float=0.0)
        yield single("LinearRegressor", "f32", [X(rows, columns)], domain=ML, coefficients=numbers * 3, intercepts=[0.1, 0.2, 0.3], targets=3)
        yield single("LinearClassifier", "f32", [X(rows, columns)], domain=ML, outputs=2, out=["i64", "f32"], coefficients=numbers * 3,
                     intercepts=[0.1, 0.2, 0.3], classlabels_ints=[0, 1, 2], multi_class=1, post_transform="SOFTMAX")
        yield single("FeatureVectorizer", "f32", [X(rows, columns), X(rows, 3)], domain=ML, inputdimensions=[columns, 3])
        yield single("ArrayFeatureExtractor", "f32", [X(rows, columns), K(np.array([[0, 2, 4]]))], domain=ML)
        yield single("OneHotEncoder", "i64", [X(rows, low=0, high=9)], domain=ML, out=["f32"], cats_int64s=list(range(10)))
        yield single("LabelEncoder", "i64", [X(rows, columns, low=0, high=99)], domain=ML, out=["f32"], keys_int64s=list(range(100)),
                     values_floats=[float(i) for i in range(100)])
        words = [f"word {i}" for i in range(100)]
        text = K(lambda rng, rows=rows, words=words: np.array(rng.choice(words, (rows, 1)), object), label=f"{rows}x1")
        text.constant = False
        yield single("LabelEncoder", "string", [text], domain=ML, out=["i64"], keys_strings=words, values_int64s=list(range(100)))
        yield single("CategoryMapper", "string", [text], domain=ML, out=["i64"], cats_strings=words, cats_int64s=list(range(100)))
        yield single("OneHotEncoder", "string", [text], domain=ML, out=["f32"], cats_strings=words)
