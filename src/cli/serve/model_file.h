/* SPDX-License-Identifier: Apache-2.0 */
/* Single model files of the command line, as models of the temporary repository. */
#ifndef KELP_CLI_SERVE_MODEL_FILE_H_
#define KELP_CLI_SERVE_MODEL_FILE_H_

#include "cli/args.h"

/* Adds a model NAME for each file 'NAME.onnx' or 'NAME.plan': a link to its directory as version 1,
 * so that files beside it, such as external weights, are found, and a configuration that names the
 * backend and the file. INVALID_ARGUMENT, NOT_FOUND and ALREADY_EXISTS name the file. */
kelp_status *kelp_model_file_add(const kelp_arg_list *files, const char *repository) KELP_MUST_USE;

#endif
