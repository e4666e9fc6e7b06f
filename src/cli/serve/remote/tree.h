/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of downloaded files that becomes a model repository. */
#ifndef KELP_CLI_SERVE_REMOTE_TREE_H_
#define KELP_CLI_SERVE_REMOTE_TREE_H_

#include "base/str.h"

#include <kelp/status.h>

/* The repository in a tree that is arranged. */
#define KELP_TREE_REPOSITORY "repository"

/* Returns true for the name or path of a model file: NAME.onnx or NAME.plan. */
bool kelp_tree_is_model_file(const char *path);
/* Returns NAME for a directory "…/NAME/VERSION", the layout of a model repository, and `otherwise`
 * for others. */
kelp_str kelp_tree_model_name(kelp_str directory, kelp_str otherwise);
/* Adds a hard link to `file` at the relative path `name` of the tree's files, and the directories
 * of the path. */
kelp_status *kelp_tree_link(const char *tree, const char *name, const char *file) KELP_MUST_USE;
/* Makes a repository of the files: they are one already; or those of a model, with config.pbtxt or
 * versions; or of a version, with a model file. `model` is the name of the model if it has none.
 * INVALID_ARGUMENT if there are several model files without a directory. */
kelp_status *kelp_tree_arrange(const char *tree, const char *model) KELP_MUST_USE;
/* Removes all trees of a directory but one. Ignores failures. */
void kelp_tree_keep(const char *directory, const char *name);
/* Removes the files of a directory to which no tree has a link, but not `state`. Ignores
 * failures. */
void kelp_tree_remove_unlinked(const char *directory);

#endif
