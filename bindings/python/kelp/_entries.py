# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's configuration entries: which Kelp honours, which values change nothing, and warnings for the others."""
import warnings

# Entries that the session reads.
DIRECTORY = "session.model_external_initializers_file_folder_path"
OPTIMIZED_FILE = "session.optimized_model_external_initializers_file_name"
OPTIMIZED_BYTES = "session.optimized_model_external_initializers_min_size_in_bytes"
LOAD_FORMAT = "session.load_model_format"
RECORD_ASSIGNMENT = "session.record_ep_graph_assignment_info"
HONOURED = {DIRECTORY, OPTIMIZED_FILE, OPTIMIZED_BYTES, LOAD_FORMAT, RECORD_ASSIGNMENT}

# Other entries of ONNX Runtime, with the values that ask for nothing that Kelp does not do. None: any value. These entries choose how ONNX
# Runtime works inside, not what it computes.
SESSION = {
    "session.save_model_format": {"ONNX", ""},
    "session.set_denormal_as_zero": {"0"},
    "session.disable_prepacking": {"0"},
    "session.use_env_allocators": None,
    "session.use_device_allocator_for_initializers": None,
    "session.use_ort_model_bytes_directly": None,
    "session.use_ort_model_bytes_for_initializers": None,
    "session.use_memory_mapped_ort_model": None,
    "session.intra_op.allow_spinning": None,
    "session.inter_op.allow_spinning": None,
    "session.intra_op_thread_affinities": {""},
    "session.force_spinning_stop": None,
    "session.dynamic_block_base": None,
    "session.strict_shape_type_inference": {"0"},
    "session.allow_released_opsets_only": {"0"},
    "session.debug_layout_transformation": {"0"},
    "session.disable_cpu_ep_fallback": {"0"},
    "session.disable_quant_qdq": None,
    "session.disable_double_qdq_remover": None,
    "session.enable_quant_qdq_cleanup": None,
    "session.enable_dq_matmulnbits_fusion": None,
    "session.qdqisint8allowed": None,
    "session.x64quantprecision": None,
    "session.qdq_matmulnbits_accuracy_level": None,
    "session.disable_model_compile": {"0"},
    "session.save_external_prepacked_constant_initializers": {"0"},
    "session.collect_node_memory_stats_to_file": {""},
    "session.node_partition_config_file": {""},
    "session.resource_cpu_partitioning_settings": {""},
    "session.layer_assignment_settings": {""},
    "session.disable_aot_function_inlining": None,
    "session.model_uri": None,
    "optimization.enable_gelu_approximation": {"0"},
    "optimization.enable_cast_chain_elimination": None,
    "optimization.disable_specified_optimizers": {""},
    "optimization.minimal_build_optimizations": {""},
    "optimization.memory_optimizer_config": {""},
    "optimization.enable_memory_probe_recompute_config": {""},
    "ep.context_enable": {"0"},
    "ep.share_ep_contexts": {"0"},
    "ep.stop_share_ep_contexts": {"0"},
    "mlas.enable_gemm_fastmath_arm64_bfloat16": {"0"},
    "mlas.disable_kleidiai": None,
}
RUN = {
    "memory.enable_memory_arena_shrinkage": None,
    "disable_synchronize_execution_providers": None,
    "gpu_graph_id": None,
}


def warn_session(key, value):
    """Warns if an entry of a session has no effect. The caller is two frames above the user."""
    if key in HONOURED:
        return
    _warn(SESSION, "session", key, value)


def warn_run(key, value):
    """Warns if an entry of a run has no effect."""
    _warn(RUN, "run", key, value)


def _warn(table, kind, key, value):
    if key not in table:
        warnings.warn(f"unknown {kind} configuration entry '{key}': it has no effect", stacklevel=4)
    elif table[key] is not None and value not in table[key]:
        warnings.warn(f"{kind} configuration entry '{key}' = '{value}' has no effect in Kelp", stacklevel=4)
