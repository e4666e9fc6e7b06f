# SPDX-License-Identifier: Apache-2.0
# bash completion for kelp; printed by 'kelp completion bash'
_kelp() {
    local cur="${COMP_WORDS[COMP_CWORD]}"
    local prev="${COMP_WORDS[COMP_CWORD-1]}"
    local options=""
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ] || { [ "$COMP_CWORD" -eq 2 ] && [ "$prev" = help ]; }; then
        COMPREPLY=($(compgen -W "help --version --help serve run build inspect bench top kernels ops worker pull health new doctor completion tritonserver" -- "$cur"))
        return
    fi
    case "${COMP_WORDS[1]}" in
    serve)
        case "$prev" in
        --model-repository) COMPREPLY=($(compgen -d -- "$cur")); return ;;
        --model-store) COMPREPLY=($(compgen -d -- "$cur")); return ;;
        --model-cache) COMPREPLY=($(compgen -d -- "$cur")); return ;;
        --model-control-mode) COMPREPLY=($(compgen -W "none explicit poll" -- "$cur")); return ;;
        --backend-directory) COMPREPLY=($(compgen -d -- "$cur")); return ;;
        --onnx-engine) COMPREPLY=($(compgen -W "auto builtin" -- "$cur")); return ;;
        --gpu-fallback) COMPREPLY=($(compgen -W "error cpu" -- "$cur")); return ;;
        --rate-limit) COMPREPLY=($(compgen -W "off execution_count" -- "$cur")); return ;;
        --precision) COMPREPLY=($(compgen -W "f32 bf16" -- "$cur")); return ;;
        --plugin) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --with-backend) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --cache-directory) COMPREPLY=($(compgen -d -- "$cur")); return ;;
        --repoagent-directory) COMPREPLY=($(compgen -d -- "$cur")); return ;;
        --allow-client-shm) COMPREPLY=($(compgen -W "auto true false" -- "$cur")); return ;;
        --auth-token-file) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --grpc-infer-response-compression-level) COMPREPLY=($(compgen -W "none low medium high" -- "$cur")); return ;;
        --grpc-server-cert) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --grpc-server-key) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --grpc-root-cert) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --tls-cert) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --tls-key) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --tls-ca) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --tls-client-auth) COMPREPLY=($(compgen -W "none optional required" -- "$cur")); return ;;
        --log-format) COMPREPLY=($(compgen -W "default ISO8601 json" -- "$cur")); return ;;
        --log-file) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --access-log) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --trace-file) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --trace-level) COMPREPLY=($(compgen -W "OFF TIMESTAMPS TENSORS" -- "$cur")); return ;;
        esac
        options="--help --model-repository --model-store --model-cache --registry-plain-http --model-control-mode --load-model --repository-poll-secs --strict-model-config --disable-auto-complete-config --model-config-name --model-load-thread-count --model-load-retry-count --model-namespacing --allow-uploaded-code --backend-directory --onnx-engine --backend-config --auto-batch --host-policy --gpu-fallback --rate-limit --rate-limit-resource --precision --providers --plugin --with-backend --cache-config --response-cache-byte-size --cache-directory --repoagent-directory --id --exit-on-error --exit-timeout-secs --drain-secs --strict-readiness --max-connections --max-requests --max-client-share --allow-client-shm --allow-http --http-address --http-port --http-thread-count --reuse-http-port --http-max-input-size --http-socket-mode --status-page --http-restricted-api --grpc-restricted-protocol --auth-token-file --auth-exempt-health --http-header-forward-pattern --grpc-header-forward-pattern --http-cors-origin --allow-grpc --grpc-address --grpc-port --reuse-grpc-port --grpc-infer-response-compression-level --grpc-use-ssl --grpc-use-ssl-mutual --grpc-server-cert --grpc-server-key --grpc-root-cert --grpc-keepalive-time --grpc-keepalive-timeout --grpc-keepalive-permit-without-calls --grpc-http2-max-pings-without-data --grpc-http2-min-recv-ping-interval-without-data --grpc-http2-max-ping-strikes --grpc-max-connection-age --grpc-max-connection-age-grace --tls-cert --tls-key --tls-ca --tls-client-auth --allow-metrics --allow-cpu-metrics --metrics-address --metrics-port --metrics-config --log-verbose --log-info --log-warning --log-error --log-format --log-file --access-log --trace-config --trace-file --trace-level --trace-rate --trace-count --trace-log-frequency" ;;
    run)
        case "$prev" in
        --image-fit) COMPREPLY=($(compgen -W "stretch crop" -- "$cur")); return ;;
        --image-layout) COMPREPLY=($(compgen -W "nchw nhwc" -- "$cur")); return ;;
        --image-color) COMPREPLY=($(compgen -W "rgb bgr gray" -- "$cur")); return ;;
        --output-dir) COMPREPLY=($(compgen -d -- "$cur")); return ;;
        --trace) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --precision) COMPREPLY=($(compgen -W "f32 bf16" -- "$cur")); return ;;
        --plugin) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        esac
        options="--help --input --random --shape --image-size --image-fit --image-layout --image-color --image-scale --image-mean --image-std --output --output-dir --json --compare --rtol --atol --threads --repeat --profile --profile-nodes --trace --no-fusion --precision --plugin --providers" ;;
    build)
        case "$prev" in
        --output) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --timing-cache) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --plugin) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --precision) COMPREPLY=($(compgen -W "f32 bf16" -- "$cur")); return ;;
        esac
        options="--help --output --provider --min --opt --max --refit --refit-weights --strip-weights --weight-streaming --version-compatible --compute-capability --workspace --level --timing-cache --plugin --precision --no-fusion" ;;
    inspect)
        case "$prev" in
        --plugin) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        esac
        options="--help --shape --plugin --providers --json" ;;
    bench)
        case "$prev" in
        --precision) COMPREPLY=($(compgen -W "f32 bf16" -- "$cur")); return ;;
        --plugin) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --image-fit) COMPREPLY=($(compgen -W "stretch crop" -- "$cur")); return ;;
        --image-layout) COMPREPLY=($(compgen -W "nchw nhwc" -- "$cur")); return ;;
        --image-color) COMPREPLY=($(compgen -W "rgb bgr gray" -- "$cur")); return ;;
        --ca-file) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --svg) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --trace) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        esac
        options="--help --threads --concurrency --seconds --warmup --in-flight --models --input --shape --precision --plugin --providers --image-size --image-fit --image-layout --image-color --image-scale --image-mean --image-std --header --ca-file --json --csv --plot --svg --profile --trace" ;;
    top)
        case "$prev" in
        --ca-file) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        esac
        options="--help --interval --once --header --ca-file" ;;
    kernels)
        case "$prev" in
        esac
        options="--help --library --json" ;;
    ops)
        case "$prev" in
        esac
        options="--help --domain --json" ;;
    worker)
        case "$prev" in
        --token-file) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        esac
        options="--help --socket --listen --token-file --providers --threads --budget --connections" ;;
    pull)
        case "$prev" in
        --output) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        esac
        options="--help --output --digest --plain-http --quiet" ;;
    health)
        case "$prev" in
        esac
        options="--help --live --model --timeout-ms" ;;
    new)
        case "$prev" in
        --dir) COMPREPLY=($(compgen -d -- "$cur")); return ;;
        esac
        if [ "$COMP_CWORD" -eq 2 ]; then
            COMPREPLY=($(compgen -W "--help backend kernels plugin provider" -- "$cur"))
            return
        fi
        options="--help --dir" ;;
    doctor)
        case "$prev" in
        esac
        options="--help --json" ;;
    completion)
        case "$prev" in
        esac
        if [ "$COMP_CWORD" -eq 2 ]; then
            COMPREPLY=($(compgen -W "--help bash zsh fish" -- "$cur"))
            return
        fi
        options="--help" ;;
    tritonserver)
        case "$prev" in
        --model-repository) COMPREPLY=($(compgen -d -- "$cur")); return ;;
        --model-store) COMPREPLY=($(compgen -d -- "$cur")); return ;;
        --model-cache) COMPREPLY=($(compgen -d -- "$cur")); return ;;
        --model-control-mode) COMPREPLY=($(compgen -W "none explicit poll" -- "$cur")); return ;;
        --backend-directory) COMPREPLY=($(compgen -d -- "$cur")); return ;;
        --onnx-engine) COMPREPLY=($(compgen -W "auto builtin" -- "$cur")); return ;;
        --gpu-fallback) COMPREPLY=($(compgen -W "error cpu" -- "$cur")); return ;;
        --rate-limit) COMPREPLY=($(compgen -W "off execution_count" -- "$cur")); return ;;
        --precision) COMPREPLY=($(compgen -W "f32 bf16" -- "$cur")); return ;;
        --plugin) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --with-backend) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --cache-directory) COMPREPLY=($(compgen -d -- "$cur")); return ;;
        --repoagent-directory) COMPREPLY=($(compgen -d -- "$cur")); return ;;
        --allow-client-shm) COMPREPLY=($(compgen -W "auto true false" -- "$cur")); return ;;
        --auth-token-file) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --grpc-infer-response-compression-level) COMPREPLY=($(compgen -W "none low medium high" -- "$cur")); return ;;
        --grpc-server-cert) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --grpc-server-key) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --grpc-root-cert) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --tls-cert) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --tls-key) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --tls-ca) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --tls-client-auth) COMPREPLY=($(compgen -W "none optional required" -- "$cur")); return ;;
        --log-format) COMPREPLY=($(compgen -W "default ISO8601 json" -- "$cur")); return ;;
        --log-file) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --access-log) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --trace-file) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --trace-level) COMPREPLY=($(compgen -W "OFF TIMESTAMPS TENSORS" -- "$cur")); return ;;
        esac
        options="--help --model-repository --model-store --model-cache --registry-plain-http --model-control-mode --load-model --repository-poll-secs --strict-model-config --disable-auto-complete-config --model-config-name --model-load-thread-count --model-load-retry-count --model-namespacing --allow-uploaded-code --backend-directory --onnx-engine --backend-config --auto-batch --host-policy --gpu-fallback --rate-limit --rate-limit-resource --precision --providers --plugin --with-backend --cache-config --response-cache-byte-size --cache-directory --repoagent-directory --id --exit-on-error --exit-timeout-secs --drain-secs --strict-readiness --max-connections --max-requests --max-client-share --allow-client-shm --allow-http --http-address --http-port --http-thread-count --reuse-http-port --http-max-input-size --http-socket-mode --status-page --http-restricted-api --grpc-restricted-protocol --auth-token-file --auth-exempt-health --http-header-forward-pattern --grpc-header-forward-pattern --http-cors-origin --allow-grpc --grpc-address --grpc-port --reuse-grpc-port --grpc-infer-response-compression-level --grpc-use-ssl --grpc-use-ssl-mutual --grpc-server-cert --grpc-server-key --grpc-root-cert --grpc-keepalive-time --grpc-keepalive-timeout --grpc-keepalive-permit-without-calls --grpc-http2-max-pings-without-data --grpc-http2-min-recv-ping-interval-without-data --grpc-http2-max-ping-strikes --grpc-max-connection-age --grpc-max-connection-age-grace --tls-cert --tls-key --tls-ca --tls-client-auth --allow-metrics --allow-cpu-metrics --metrics-address --metrics-port --metrics-config --log-verbose --log-info --log-warning --log-error --log-format --log-file --access-log --trace-config --trace-file --trace-level --trace-rate --trace-count --trace-log-frequency --grpc-infer-thread-count --grpc-infer-allocation-pool-size --grpc-max-response-pool-size --allow-sagemaker --sagemaker-port --sagemaker-safe-port-range --sagemaker-thread-count --allow-vertex-ai --vertex-ai-port --vertex-ai-thread-count --vertex-ai-default-model --allow-gpu-metrics --metrics-interval-ms --pinned-memory-pool-byte-size --cuda-memory-pool-byte-size --cuda-virtual-address-size --min-supported-compute-capability --buffer-manager-thread-count --model-load-gpu-limit --enable-peer-access" ;;
    esac
    case "$cur" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$cur")) ;;
    *) COMPREPLY=($(compgen -f -- "$cur")) ;;
    esac
}
complete -o filenames -F _kelp kelp
