#compdef kelp
# SPDX-License-Identifier: Apache-2.0
# printed by 'kelp completion zsh'
_kelp() {
    if (( CURRENT == 2 )); then
        local -a commands=(
            'serve:serve models over HTTP and gRPC'
            'run:run a model'
            'build:build a plan file from a model'
            'inspect:show the structure of a model and whether it is supported'
            'bench:measure latency, throughput, load time and memory of a model'
            'top:show models of a running server, with rates, latencies and queues'
            'kernels:list kernel libraries and the signatures of their kernels'
            'ops:list operators with their versions and kinds'
            'worker:run subgraphs of models for other processes'
            'pull:download models from HTTP, S3 and OCI stores'
            'health:ask a server whether it is ready'
            'new:create the project of a backend or plug-in library in C'
            'doctor:list the providers and optional libraries, and why some do not work here'
            'completion:print a completion script for a shell'
            'tritonserver:serve models with the command line of Triton'\''s server'
            'help:explain a command')
        _describe command commands
        return
    fi
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
    serve)
        _arguments '--help[this text]' \
            '*--model-repository=[model repository with <model>/<version>/…\: a directory, or an address of kelp pull, whose models are downloaded; may be repeated]:DIR:_files -/' \
            '*--model-store=[alias of --model-repository]:DIR:_files -/' \
            '--model-cache=[directory for downloaded models, which are kept for the next start (a temporary one)]:DIR:_files -/' \
            '--registry-plain-http[use HTTP without TLS for repositories in OCI registries (false)]' \
            '--model-control-mode=[none\: load all models at startup (default); explicit\: load the models of --load-model, then on request; poll\: reload models when the repository changes]:MODE:(none explicit poll)' \
            '*--load-model=[model to load at startup in explicit mode, * for all; may be repeated]:NAME: ' \
            '--repository-poll-secs=[poll interval of the repository in poll mode, in seconds (15)]:N: ' \
            '--strict-model-config[do not complete config.pbtxt from the model (false)]' \
            '--disable-auto-complete-config[alias of --strict-model-config]' \
            '--model-config-name=[use configs/NAME.pbtxt of a model if it exists]:NAME: ' \
            '--model-load-thread-count=[number of models to load in parallel (4)]:N: ' \
            '--model-load-retry-count=[number of retries if a model does not load (0)]:N: ' \
            '--model-namespacing[allow models with the same name in different repositories (false)]' \
            '--allow-uploaded-code[accept loads over the network whose parameters bring shared libraries, files of backends that are not built in, or providers at an address (false)]' \
            '--backend-directory=[directory with NAME/libtriton_NAME.so (../backends of the program'\''s directory, or /opt/tritonserver/backends)]:DIR:_files -/' \
            '--onnx-engine=[engine of models with backend onnxruntime or tensorrt\: auto uses the library of that backend if it is installed (auto)]:auto|builtin:(auto builtin)' \
            '*--backend-config=[setting of a backend, or of all backends; may be repeated]:\[NAME,\]KEY=VALUE: ' \
            '--auto-batch[batch requests dynamically to every model with a batch dimension and without a scheduler in its configuration, and to ONNX models without a configuration whose first dimensions are dynamic]' \
            '*--host-policy=[CPUs of the instances with host_policy NAME (cpu, model\: without host_policy)\: cpu-cores=0-3,8 or numa-node=0; may be repeated]:NAME,KEY=VALUE: ' \
            '--gpu-fallback=[instance groups of KIND_GPU, without a GPU\: do not load the model (error), or use the CPU with a warning (cpu) (error)]:MODE:(error cpu)' \
            '--rate-limit=[execution_count\: executions wait for the resources of rate_limiter (off)]:MODE:(off execution_count)' \
            '*--rate-limit-resource=[amount of a resource of the rate limiter, on all devices or one (the maximum that an instance needs); may be repeated]:NAME\:COUNT\[\:DEVICE\]: ' \
            '--precision=[precision of float32 GEMM and convolutions in ONNX models; the model parameter '\''precision'\'' overrides it (f32)]:f32|bf16:(f32 bf16)' \
            '--providers=[providers of subgraphs of ONNX models in order of priority\: onnxruntime,cpu or remote\:ADDRESS,cpu; the model parameter '\''providers'\'' overrides it]:NAMES: ' \
            '--plugin=[plug-in libraries with operators, kernels or providers (kelp/plugin.h)\: FILE.so\[,NAME=VALUE\]…, separated by '\''\:'\'']:FILES:_files' \
            '*--with-backend=[serve a model NAME with this backend, libtriton_NAME.so, and the config.pbtxt in its directory or one of the two above; may be repeated]:LIBRARY:_files' \
            '*--cache-config=[response cache NAME and one of its settings, for models that enable response_cache; local,size=BYTES is built in; may be repeated]:NAME,KEY=VALUE: ' \
            '--response-cache-byte-size=[alias of --cache-config local,size=BYTES]:BYTES: ' \
            '--cache-directory=[directory with NAME/libtritoncache_NAME.so (/opt/tritonserver/caches)]:DIR:_files -/' \
            '--repoagent-directory=[directory with NAME/libtritonrepoagent_NAME.so (/opt/tritonserver/repoagents)]:DIR:_files -/' \
            '--id=[name of the server in its metadata]:NAME: ' \
            '--exit-on-error[exit if a model does not load at startup (true); false serves the other models]' \
            '--exit-timeout-secs=[time limit for requests in flight at shutdown, in seconds (30)]:N: ' \
            '--drain-secs=[after SIGTERM, keep serving for N seconds and return 503 for readiness, so that load balancers notice (until no request has begun for 0.25 s, at most 5)]:N: ' \
            '--strict-readiness[the server is ready only if all models are ready (true)]' \
            '--max-connections=[connections of clients; further ones are closed (16384)]:N: ' \
            '--max-requests=[requests in flight, in equal parts per event loop; further ones get 503 (65536)]:N: ' \
            '--max-client-share=[share of --max-connections and --max-requests that one client address may use; 100 behind a proxy (75)]:PERCENT: ' \
            '--allow-client-shm=[let clients register shared memory (auto\: if only local clients can connect)]:BOOL:(auto true false)' \
            '--allow-http[serve HTTP (true)]' \
            '--http-address=[address to listen on, or unix\:/path (127.0.0.1)]:ADDRESS: ' \
            '--http-port=[port to listen on, 0 for a free one (8000)]:PORT: ' \
            '--http-thread-count=[event loops (CPUs, at most 8)]:N: ' \
            '--reuse-http-port[allow several servers on the ports of HTTP and metrics (false)]' \
            '--http-max-input-size=[maximum size of a body without binary tensors (67108864)]:BYTES: ' \
            '--http-socket-mode=[permissions of a Unix socket, in octal\: 0660 lets the group connect (those of the umask)]:MODE: ' \
            '--status-page[serve a page with models, load and a request form at / (true; tritonserver\: false)]' \
            '*--http-restricted-api=[accept HTTP requests of these categories, separated by commas, only with this header\: health, metadata, inference, shared-memory, model-config, model-repository, statistics, trace, logging; may be repeated]:CATEGORY\:HEADER=VALUE: ' \
            '*--grpc-restricted-protocol=[the same for gRPC, with the metadata triton-grpc-protocol-KEY; may be repeated]:CATEGORY\:KEY=VALUE: ' \
            '--auth-token-file=[accept requests only with '\''Authorization\: Bearer TOKEN'\'' and a token of this file, one for each line; a changed file is read again]:FILE:_files' \
            '--auth-exempt-health[accept health requests without a token (false)]' \
            '--http-header-forward-pattern=[pass HTTP headers whose name matches this extended regular expression to models, as request parameters]:REGEX: ' \
            '--grpc-header-forward-pattern=[the same for the metadata of gRPC]:REGEX: ' \
            '*--http-cors-origin=[let web pages of this origin, such as https\://example.org, use the server; * for all; may be repeated]:ORIGIN: ' \
            '--allow-grpc[serve gRPC, on the HTTP port and on --grpc-port (true)]' \
            '--grpc-address=[address of --grpc-port, or unix\:/path (that of --http-address)]:ADDRESS: ' \
            '--grpc-port=[another port for gRPC, 0 for a free one (none; without HTTP 8001)]:PORT: ' \
            '--reuse-grpc-port[allow several servers on --grpc-port (false)]' \
            '--grpc-infer-response-compression-level=[compress responses for clients that accept it, at the same level for low to high (none)]:LEVEL:(none low medium high)' \
            '--grpc-use-ssl[TLS on --grpc-port, with --grpc-server-cert and --grpc-server-key (false)]' \
            '--grpc-use-ssl-mutual[TLS on --grpc-port, and certificates of clients, with --grpc-root-cert (false)]' \
            '--grpc-server-cert=[PEM file of the server'\''s certificate and its intermediates]:FILE:_files' \
            '--grpc-server-key=[PEM file of the certificate'\''s private key, without a passphrase]:FILE:_files' \
            '--grpc-root-cert=[PEM file of the authorities that sign certificates of clients]:FILE:_files' \
            '--grpc-keepalive-time=[time without a byte from the client before the server sends PING (7200000)]:MS: ' \
            '--grpc-keepalive-timeout=[time for a response to PING, after which the connection is closed (20000)]:MS: ' \
            '--grpc-keepalive-permit-without-calls[send PING also without calls (false)]' \
            '--grpc-http2-max-pings-without-data=[PINGs of the server between two messages that it sends, 0 for any number (2)]:N: ' \
            '--grpc-http2-min-recv-ping-interval-without-data=[minimum time between PINGs of a client that receives no message (300000)]:MS: ' \
            '--grpc-http2-max-ping-strikes=[PINGs below the minimum time before the connection is closed, 0 for any number (2)]:N: ' \
            '--grpc-max-connection-age=[time after which a connection accepts no further calls, 0 for none (0)]:MS: ' \
            '--grpc-max-connection-age-grace=[time for the calls of such a connection to end, 0 for any time (0)]:MS: ' \
            '--tls-cert=[PEM file of the certificate and its intermediates; every address requires TLS, except Unix sockets]:FILE:_files' \
            '--tls-key=[PEM file of the certificate'\''s private key, without a passphrase]:FILE:_files' \
            '--tls-ca=[PEM file of the authorities that sign certificates of clients]:FILE:_files' \
            '--tls-client-auth=[certificates of clients (required with --tls-ca, otherwise none)]:MODE:(none optional required)' \
            '--allow-metrics[collect metrics (true)]' \
            '--allow-cpu-metrics[metrics of the machine'\''s CPUs and memory (true)]' \
            '--metrics-address=[address of --metrics-port (that of HTTP)]:ADDRESS: ' \
            '--metrics-port=[port that serves only /metrics, 0 for a free one, -1 for none; the HTTP port also serves it (-1)]:PORT: ' \
            '*--metrics-config=[summary_latencies, histogram_latencies (true), counter_latencies (true), summary_quantiles (0.5\:0.05,0.9\:0.01), native_histograms, exemplars; may be repeated]:KEY=VALUE: ' \
            '--log-verbose=[log verbose messages up to this level (0)]:LEVEL: ' \
            '--log-info[log information (true)]' \
            '--log-warning[log warnings (true)]' \
            '--log-error[log errors (true)]' \
            '--log-format=[format of lines of the log\: default (Triton'\''s), ISO8601 (with the date), or json (default)]:FORMAT:(default ISO8601 json)' \
            '--log-file=[log file (stderr, and stdout for information)]:FILE:_files' \
            '--access-log=[write a line of JSON for each request over HTTP and gRPC, - for stdout; a file that was moved is created again (none)]:FILE:_files' \
            '*--trace-config=[mode=triton|opentelemetry, level=OFF|TIMESTAMPS|TENSORS, rate=N, count=N; triton,file=FILE; triton,log-frequency=N; opentelemetry,url=URL; opentelemetry,resource=KEY=VALUE; opentelemetry,bsp_max_queue_size=N; opentelemetry,bsp_schedule_delay=MS; opentelemetry,bsp_max_export_batch_size=N; repeatable]:\[MODE,\]SETTING=VALUE: ' \
            '--trace-file=[the same as --trace-config triton,file=FILE]:FILE:_files' \
            '*--trace-level=[what to trace (OFF); repeatable]:LEVEL:(OFF TIMESTAMPS TENSORS)' \
            '--trace-rate=[trace one of N requests (1000)]:N: ' \
            '--trace-count=[trace at most N requests, -1 for any number (-1)]:N: ' \
            '--trace-log-frequency=[write N traces to each of the files FILE.0, FILE.1 and so on (0\: all to FILE)]:N: ' \
            '*:file:_files' ;;
    run)
        _arguments '--help[this text]' \
            '*--input=[an input\: a .npy, .npz or image file, or values separated by commas; or all inputs from a .npz file; may be repeated]:NAME=@FILE|NAME=V,V,…|@FILE.npz: ' \
            '--random[use random values for other inputs\: floats in \[0,1), integers 0 or 1, the same in every run]' \
            '*--shape=[shape of an input with dynamic dimensions (1 each)]:NAME=1x8x8: ' \
            '--image-size=[height and width of images (those of the input, or of the file)]:HxW: ' \
            '--image-fit=[resize to the size, or resize the shorter side and crop the center (stretch)]:stretch|crop:(stretch crop)' \
            '--image-layout=[order of the dimensions (that of the input'\''s shape)]:nchw|nhwc:(nchw nhwc)' \
            '--image-color=[order of the channels (rgb, or gray for one channel)]:rgb|bgr|gray:(rgb bgr gray)' \
            '--image-scale=[factor of pixels, such as 1/255 (1/255 for floating-point inputs, else 1)]:F: ' \
            '--image-mean=[mean of each channel\: an element is (pixel * scale - mean) / std (0)]:V,V,V: ' \
            '--image-std=[standard deviation of each channel (1)]:V,V,V: ' \
            '*--output=[print only this output, or write it to a .npy file; may be repeated]:NAME\[=@FILE\]: ' \
            '--output-dir=[write every output to DIR/NAME.npy]:DIR:_files -/' \
            '--json[print outputs as JSON with all elements]' \
            '--compare[also run the model on ONNX Runtime, and print the differences instead of the outputs; exit code 1 if an output differs]' \
            '--rtol=[relative tolerance of floating-point outputs (0.001)]:F: ' \
            '--atol=[absolute tolerance of floating-point outputs (0.00001)]:F: ' \
            '--threads=[threads per operator (0\: all CPUs)]:N: ' \
            '--repeat=[run N times and print the duration to stderr (1)]:N: ' \
            '--profile[print the time per operator of the last run to stderr]' \
            '--profile-nodes[print the time of each node of the last run to stderr]' \
            '--trace=[write the time of each node of the last run as a trace for Perfetto]:FILE:_files' \
            '--no-fusion[disable fusion]' \
            '--precision=[precision of float32 GEMM and convolutions; bf16 is less precise, and takes about half the time on CPUs with AVX512_BF16 (f32)]:f32|bf16:(f32 bf16)' \
            '--plugin=[plug-in libraries with operators, kernels or providers (kelp/plugin.h)\: FILE.so\[,NAME=VALUE\]…, separated by '\''\:'\'']:FILES:_files' \
            '--providers=[providers in order of priority; each runs the subgraphs that it supports]:NAME,NAME,…: ' \
            '*:file:_files' ;;
    build)
        _arguments '--help[this text]' \
            '--output=[the plan file to write (the name of the model with .plan)]:FILE.plan:_files' \
            '--provider=[provider that runs the engine\: cpu, tensorrt, null (cpu)]:NAME: ' \
            '*--min=[minimum shape of an input; repeat for other inputs and profiles]:NAME\:1x3x224x224: ' \
            '*--opt=[shape to optimize for (the maximum)]:NAME\:8x3x224x224: ' \
            '*--max=[maximum shape]:NAME\:32x3x224x224: ' \
            '--refit[allow replacing all weights of the engine]' \
            '*--refit-weights=[allow replacing only this weight; may be repeated]:NAME: ' \
            '--strip-weights[omit the refittable weights (all, or those of --refit-weights); a refit must supply them before the first run]' \
            '--weight-streaming[allow weights in host memory (tensorrt)]' \
            '--version-compatible[make the plan file usable with later versions of the provider'\''s library (tensorrt)]' \
            '*--compute-capability=[compute capabilities of target GPUs, 10 * major + minor; may be repeated (tensorrt)]:86,89: ' \
            '--workspace=[memory limit for activations (0\: no limit)]:MIB: ' \
            '--level=[optimization level (3); for cpu, levels 0 to 2 make a smaller file that is optimized when it is loaded]:N: ' \
            '--timing-cache=[timing cache\: read if it exists, written after the build (tensorrt)]:FILE:_files' \
            '--plugin=[plug-in libraries with operators, kernels or providers (kelp/plugin.h)\: FILE.so\[,NAME=VALUE\]…, separated by '\''\:'\'']:FILES:_files' \
            '--precision=[precision of float32 GEMM and convolutions; bf16 is less precise, and takes about half the time on CPUs with AVX512_BF16 (f32)]:f32|bf16:(f32 bf16)' \
            '--no-fusion[disable fusion]' \
            '*:file:_files' ;;
    inspect)
        _arguments '--help[this text]' \
            '*--shape=[shape of an input for the memory plan (dynamic dimensions are 1)]:NAME=1x8x8: ' \
            '--plugin=[plug-in libraries with operators, kernels or providers (kelp/plugin.h)\: FILE.so\[,NAME=VALUE\]…, separated by '\''\:'\'']:FILES:_files' \
            '--providers=[providers in order of priority; shows the subgraphs of each]:NAME,NAME,…: ' \
            '--json[print JSON]' \
            '*:file:_files' ;;
    bench)
        _arguments '--help[this text]' \
            '--threads=[numbers of threads per operator to measure (1,2)]:N,N,…: ' \
            '--concurrency=[numbers of inferences that run at the same time\: contexts of one engine, or connections to a server (1)]:N,N,…: ' \
            '--seconds=[duration of each measurement in seconds (3); at least ten runs]:S: ' \
            '--warmup=[inferences of each context or connection before the measurement (1)]:N: ' \
            '--in-flight=[measure throughput with N inferences in flight (kelp_compute_submit), and count the inputs that are copied]:N: ' \
            '--models=[with --in-flight\: provider that loads the model (cpu), such as onnxruntime, kernels or that of a plug-in library]:NAME: ' \
            '*--input=[an input; other inputs are random as with '\''kelp run --random'\'']:NAME=@FILE|NAME=V,V,…|@FILE.npz: ' \
            '*--shape=[shape of an input with dynamic dimensions (1 each)]:NAME=1x8x8: ' \
            '--precision=[precision of float32 GEMM and convolutions; bf16 is less precise, and takes about half the time on CPUs with AVX512_BF16 (f32)]:f32|bf16:(f32 bf16)' \
            '--plugin=[plug-in libraries with operators, kernels or providers (kelp/plugin.h)\: FILE.so\[,NAME=VALUE\]…, separated by '\''\:'\'']:FILES:_files' \
            '--providers=[providers in order of priority; each runs the subgraphs that it supports]:NAME,NAME,…: ' \
            '--image-size=[height and width of images (those of the input, or of the file)]:HxW: ' \
            '--image-fit=[resize to the size, or resize the shorter side and crop the center (stretch)]:stretch|crop:(stretch crop)' \
            '--image-layout=[order of the dimensions (that of the input'\''s shape)]:nchw|nhwc:(nchw nhwc)' \
            '--image-color=[order of the channels (rgb, or gray for one channel)]:rgb|bgr|gray:(rgb bgr gray)' \
            '--image-scale=[factor of pixels, such as 1/255 (1/255 for floating-point inputs, else 1)]:F: ' \
            '--image-mean=[mean of each channel\: an element is (pixel * scale - mean) / std (0)]:V,V,V: ' \
            '--image-std=[standard deviation of each channel (1)]:V,V,V: ' \
            '*--header=[add a header to each request, such as a token; may be repeated]:'\''NAME\: VALUE'\'': ' \
            '--ca-file=[certificates to verify the server with, for https]:FILE:_files' \
            '--json[print JSON]' \
            '--csv[print CSV]' \
            '--plot[also print the latencies as bars]' \
            '--svg=[write a plot of latencies and throughput]:FILE:_files' \
            '--profile[also print the time of each node and the algorithm chosen for it]' \
            '--trace=[write the time of each node of one run as a trace for Perfetto]:FILE:_files' \
            '*:file:_files' ;;
    top)
        _arguments '--help[this text]' \
            '--interval=[seconds between two samples (1)]:S: ' \
            '--once[print the view once, after one interval, also on a terminal]' \
            '*--header=[add a header to each request, such as a token; may be repeated]:'\''NAME\: VALUE'\'': ' \
            '--ca-file=[certificates to verify the server with, for https]:FILE:_files' \
            '*:file:_files' ;;
    kernels)
        _arguments '--help[this text]' \
            '*--library=[only this library, by name or file; may be repeated]:NAME|FILE: ' \
            '--json[print JSON]' \
            '*:file:_files' ;;
    ops)
        _arguments '--help[this text]' \
            '--domain=[only this domain\: ai.onnx, ai.onnx.ml, com.microsoft, …]:NAME: ' \
            '--json[print JSON]' \
            '*:file:_files' ;;
    worker)
        _arguments '--help[this text]' \
            '--socket=[Unix socket to create and listen on]:PATH: ' \
            '--listen=[TCP address to listen on, without encryption; \:PORT is 127.0.0.1, port 0 selects a free port]:HOST\:PORT: ' \
            '--token-file=[file with a token that clients must send; clients name theirs in KELP_REMOTE_TOKEN_FILE]:FILE:_files' \
            '--providers=[providers that run the subgraphs, in order of priority]:NAME,NAME,…: ' \
            '--threads=[threads per operator (0\: all CPUs)]:N: ' \
            '--budget=[memory limit for the inputs of all runs in flight (256)]:MIB: ' \
            '--connections=[maximum number of connections, one per subgraph (64)]:N: ' \
            '*:file:_files' ;;
    pull)
        _arguments '--help[this text]' \
            '--output=[file, or directory of several files; directories are created (the name in the address, in the current directory)]:PATH:_files' \
            '--digest=[digest that the file, or the manifest of an OCI artifact, must have; a file that has it already is not downloaded]:sha256\:HEX: ' \
            '--plain-http[use HTTP without TLS for an OCI registry]' \
            '--quiet[show no progress]' \
            '*:file:_files' ;;
    health)
        _arguments '--help[this text]' \
            '--live[ask whether the server responds, even if it is not ready]' \
            '--model=[ask whether this model is ready]:NAME: ' \
            '--timeout-ms=[time limit in milliseconds (2000)]:N: ' \
            '*:file:_files' ;;
    new)
        _arguments '--help[this text]' \
            '--dir=[directory of the project (NAME); it and its parents are created if necessary]:DIR:_files -/' \
            '1: :(backend kernels plugin provider)' \
            '*:file:_files' ;;
    doctor)
        _arguments '--help[this text]' \
            '--json[print JSON]' \
            '*:file:_files' ;;
    completion)
        _arguments '--help[this text]' \
            '1: :(bash zsh fish)' \
            '*:file:_files' ;;
    tritonserver)
        _arguments '--help[this text]' \
            '*--model-repository=[model repository with <model>/<version>/…\: a directory, or an address of kelp pull, whose models are downloaded; may be repeated]:DIR:_files -/' \
            '*--model-store=[alias of --model-repository]:DIR:_files -/' \
            '--model-cache=[directory for downloaded models, which are kept for the next start (a temporary one)]:DIR:_files -/' \
            '--registry-plain-http[use HTTP without TLS for repositories in OCI registries (false)]' \
            '--model-control-mode=[none\: load all models at startup (default); explicit\: load the models of --load-model, then on request; poll\: reload models when the repository changes]:MODE:(none explicit poll)' \
            '*--load-model=[model to load at startup in explicit mode, * for all; may be repeated]:NAME: ' \
            '--repository-poll-secs=[poll interval of the repository in poll mode, in seconds (15)]:N: ' \
            '--strict-model-config[do not complete config.pbtxt from the model (false)]' \
            '--disable-auto-complete-config[alias of --strict-model-config]' \
            '--model-config-name=[use configs/NAME.pbtxt of a model if it exists]:NAME: ' \
            '--model-load-thread-count=[number of models to load in parallel (4)]:N: ' \
            '--model-load-retry-count=[number of retries if a model does not load (0)]:N: ' \
            '--model-namespacing[allow models with the same name in different repositories (false)]' \
            '--allow-uploaded-code[accept loads over the network whose parameters bring shared libraries, files of backends that are not built in, or providers at an address (false)]' \
            '--backend-directory=[directory with NAME/libtriton_NAME.so (../backends of the program'\''s directory, or /opt/tritonserver/backends)]:DIR:_files -/' \
            '--onnx-engine=[engine of models with backend onnxruntime or tensorrt\: auto uses the library of that backend if it is installed (auto)]:auto|builtin:(auto builtin)' \
            '*--backend-config=[setting of a backend, or of all backends; may be repeated]:\[NAME,\]KEY=VALUE: ' \
            '--auto-batch[batch requests dynamically to every model with a batch dimension and without a scheduler in its configuration, and to ONNX models without a configuration whose first dimensions are dynamic]' \
            '*--host-policy=[CPUs of the instances with host_policy NAME (cpu, model\: without host_policy)\: cpu-cores=0-3,8 or numa-node=0; may be repeated]:NAME,KEY=VALUE: ' \
            '--gpu-fallback=[instance groups of KIND_GPU, without a GPU\: do not load the model (error), or use the CPU with a warning (cpu) (error)]:MODE:(error cpu)' \
            '--rate-limit=[execution_count\: executions wait for the resources of rate_limiter (off)]:MODE:(off execution_count)' \
            '*--rate-limit-resource=[amount of a resource of the rate limiter, on all devices or one (the maximum that an instance needs); may be repeated]:NAME\:COUNT\[\:DEVICE\]: ' \
            '--precision=[precision of float32 GEMM and convolutions in ONNX models; the model parameter '\''precision'\'' overrides it (f32)]:f32|bf16:(f32 bf16)' \
            '--providers=[providers of subgraphs of ONNX models in order of priority\: onnxruntime,cpu or remote\:ADDRESS,cpu; the model parameter '\''providers'\'' overrides it]:NAMES: ' \
            '--plugin=[plug-in libraries with operators, kernels or providers (kelp/plugin.h)\: FILE.so\[,NAME=VALUE\]…, separated by '\''\:'\'']:FILES:_files' \
            '*--with-backend=[serve a model NAME with this backend, libtriton_NAME.so, and the config.pbtxt in its directory or one of the two above; may be repeated]:LIBRARY:_files' \
            '*--cache-config=[response cache NAME and one of its settings, for models that enable response_cache; local,size=BYTES is built in; may be repeated]:NAME,KEY=VALUE: ' \
            '--response-cache-byte-size=[alias of --cache-config local,size=BYTES]:BYTES: ' \
            '--cache-directory=[directory with NAME/libtritoncache_NAME.so (/opt/tritonserver/caches)]:DIR:_files -/' \
            '--repoagent-directory=[directory with NAME/libtritonrepoagent_NAME.so (/opt/tritonserver/repoagents)]:DIR:_files -/' \
            '--id=[name of the server in its metadata]:NAME: ' \
            '--exit-on-error[exit if a model does not load at startup (true); false serves the other models]' \
            '--exit-timeout-secs=[time limit for requests in flight at shutdown, in seconds (30)]:N: ' \
            '--drain-secs=[after SIGTERM, keep serving for N seconds and return 503 for readiness, so that load balancers notice (until no request has begun for 0.25 s, at most 5)]:N: ' \
            '--strict-readiness[the server is ready only if all models are ready (true)]' \
            '--max-connections=[connections of clients; further ones are closed (16384)]:N: ' \
            '--max-requests=[requests in flight, in equal parts per event loop; further ones get 503 (65536)]:N: ' \
            '--max-client-share=[share of --max-connections and --max-requests that one client address may use; 100 behind a proxy (75)]:PERCENT: ' \
            '--allow-client-shm=[let clients register shared memory (auto\: if only local clients can connect)]:BOOL:(auto true false)' \
            '--allow-http[serve HTTP (true)]' \
            '--http-address=[address to listen on, or unix\:/path (127.0.0.1)]:ADDRESS: ' \
            '--http-port=[port to listen on, 0 for a free one (8000)]:PORT: ' \
            '--http-thread-count=[event loops (CPUs, at most 8)]:N: ' \
            '--reuse-http-port[allow several servers on the ports of HTTP and metrics (false)]' \
            '--http-max-input-size=[maximum size of a body without binary tensors (67108864)]:BYTES: ' \
            '--http-socket-mode=[permissions of a Unix socket, in octal\: 0660 lets the group connect (those of the umask)]:MODE: ' \
            '--status-page[serve a page with models, load and a request form at / (true; tritonserver\: false)]' \
            '*--http-restricted-api=[accept HTTP requests of these categories, separated by commas, only with this header\: health, metadata, inference, shared-memory, model-config, model-repository, statistics, trace, logging; may be repeated]:CATEGORY\:HEADER=VALUE: ' \
            '*--grpc-restricted-protocol=[the same for gRPC, with the metadata triton-grpc-protocol-KEY; may be repeated]:CATEGORY\:KEY=VALUE: ' \
            '--auth-token-file=[accept requests only with '\''Authorization\: Bearer TOKEN'\'' and a token of this file, one for each line; a changed file is read again]:FILE:_files' \
            '--auth-exempt-health[accept health requests without a token (false)]' \
            '--http-header-forward-pattern=[pass HTTP headers whose name matches this extended regular expression to models, as request parameters]:REGEX: ' \
            '--grpc-header-forward-pattern=[the same for the metadata of gRPC]:REGEX: ' \
            '*--http-cors-origin=[let web pages of this origin, such as https\://example.org, use the server; * for all; may be repeated]:ORIGIN: ' \
            '--allow-grpc[serve gRPC, on the HTTP port and on --grpc-port (true)]' \
            '--grpc-address=[address of --grpc-port, or unix\:/path (that of --http-address)]:ADDRESS: ' \
            '--grpc-port=[another port for gRPC, 0 for a free one (none; without HTTP 8001)]:PORT: ' \
            '--reuse-grpc-port[allow several servers on --grpc-port (false)]' \
            '--grpc-infer-response-compression-level=[compress responses for clients that accept it, at the same level for low to high (none)]:LEVEL:(none low medium high)' \
            '--grpc-use-ssl[TLS on --grpc-port, with --grpc-server-cert and --grpc-server-key (false)]' \
            '--grpc-use-ssl-mutual[TLS on --grpc-port, and certificates of clients, with --grpc-root-cert (false)]' \
            '--grpc-server-cert=[PEM file of the server'\''s certificate and its intermediates]:FILE:_files' \
            '--grpc-server-key=[PEM file of the certificate'\''s private key, without a passphrase]:FILE:_files' \
            '--grpc-root-cert=[PEM file of the authorities that sign certificates of clients]:FILE:_files' \
            '--grpc-keepalive-time=[time without a byte from the client before the server sends PING (7200000)]:MS: ' \
            '--grpc-keepalive-timeout=[time for a response to PING, after which the connection is closed (20000)]:MS: ' \
            '--grpc-keepalive-permit-without-calls[send PING also without calls (false)]' \
            '--grpc-http2-max-pings-without-data=[PINGs of the server between two messages that it sends, 0 for any number (2)]:N: ' \
            '--grpc-http2-min-recv-ping-interval-without-data=[minimum time between PINGs of a client that receives no message (300000)]:MS: ' \
            '--grpc-http2-max-ping-strikes=[PINGs below the minimum time before the connection is closed, 0 for any number (2)]:N: ' \
            '--grpc-max-connection-age=[time after which a connection accepts no further calls, 0 for none (0)]:MS: ' \
            '--grpc-max-connection-age-grace=[time for the calls of such a connection to end, 0 for any time (0)]:MS: ' \
            '--tls-cert=[PEM file of the certificate and its intermediates; every address requires TLS, except Unix sockets]:FILE:_files' \
            '--tls-key=[PEM file of the certificate'\''s private key, without a passphrase]:FILE:_files' \
            '--tls-ca=[PEM file of the authorities that sign certificates of clients]:FILE:_files' \
            '--tls-client-auth=[certificates of clients (required with --tls-ca, otherwise none)]:MODE:(none optional required)' \
            '--allow-metrics[collect metrics (true)]' \
            '--allow-cpu-metrics[metrics of the machine'\''s CPUs and memory (true)]' \
            '--metrics-address=[address of --metrics-port (that of HTTP)]:ADDRESS: ' \
            '--metrics-port=[port that serves only /metrics, 0 for a free one, -1 for none; the HTTP port also serves it (-1)]:PORT: ' \
            '*--metrics-config=[summary_latencies, histogram_latencies (true), counter_latencies (true), summary_quantiles (0.5\:0.05,0.9\:0.01), native_histograms, exemplars; may be repeated]:KEY=VALUE: ' \
            '--log-verbose=[log verbose messages up to this level (0)]:LEVEL: ' \
            '--log-info[log information (true)]' \
            '--log-warning[log warnings (true)]' \
            '--log-error[log errors (true)]' \
            '--log-format=[format of lines of the log\: default (Triton'\''s), ISO8601 (with the date), or json (default)]:FORMAT:(default ISO8601 json)' \
            '--log-file=[log file (stderr, and stdout for information)]:FILE:_files' \
            '--access-log=[write a line of JSON for each request over HTTP and gRPC, - for stdout; a file that was moved is created again (none)]:FILE:_files' \
            '*--trace-config=[mode=triton|opentelemetry, level=OFF|TIMESTAMPS|TENSORS, rate=N, count=N; triton,file=FILE; triton,log-frequency=N; opentelemetry,url=URL; opentelemetry,resource=KEY=VALUE; opentelemetry,bsp_max_queue_size=N; opentelemetry,bsp_schedule_delay=MS; opentelemetry,bsp_max_export_batch_size=N; repeatable]:\[MODE,\]SETTING=VALUE: ' \
            '--trace-file=[the same as --trace-config triton,file=FILE]:FILE:_files' \
            '*--trace-level=[what to trace (OFF); repeatable]:LEVEL:(OFF TIMESTAMPS TENSORS)' \
            '--trace-rate=[trace one of N requests (1000)]:N: ' \
            '--trace-count=[trace at most N requests, -1 for any number (-1)]:N: ' \
            '--trace-log-frequency=[write N traces to each of the files FILE.0, FILE.1 and so on (0\: all to FILE)]:N: ' \
            '--grpc-infer-thread-count=[the threads of --http-thread-count serve every protocol]:N: ' \
            '--grpc-infer-allocation-pool-size=[each thread keeps the memory of up to 64 calls]:N: ' \
            '--grpc-max-response-pool-size=[streams limit the bytes of their responses]:N: ' \
            '--allow-sagemaker[SageMaker endpoints are not supported]' \
            '--sagemaker-port=[SageMaker endpoints are not supported]:PORT: ' \
            '--sagemaker-safe-port-range=[SageMaker endpoints are not supported]:FIRST-LAST: ' \
            '--sagemaker-thread-count=[SageMaker endpoints are not supported]:N: ' \
            '--allow-vertex-ai[Vertex AI endpoints are not supported]' \
            '--vertex-ai-port=[Vertex AI endpoints are not supported]:PORT: ' \
            '--vertex-ai-thread-count=[Vertex AI endpoints are not supported]:N: ' \
            '--vertex-ai-default-model=[Vertex AI endpoints are not supported]:NAME: ' \
            '--allow-gpu-metrics[there are no metrics of GPUs]' \
            '--metrics-interval-ms=[metrics are read when they are requested]:MS: ' \
            '--pinned-memory-pool-byte-size=[there is no pool of pinned memory]:BYTES: ' \
            '--cuda-memory-pool-byte-size=[there is no pool of GPU memory]:DEVICE\:BYTES: ' \
            '--cuda-virtual-address-size=[there is no pool of GPU memory]:DEVICE\:BYTES: ' \
            '--min-supported-compute-capability=[GPUs are not selected by their capability]:VERSION: ' \
            '--buffer-manager-thread-count=[threads of the front-ends copy tensors]:N: ' \
            '--model-load-gpu-limit=[the memory of GPUs is not limited]:DEVICE\:FRACTION: ' \
            '--enable-peer-access[GPUs do not access the memory of each other]' \
            '*:file:_files' ;;
    esac
}
if [ "$funcstack[1]" = _kelp ]; then _kelp "$@"; else compdef _kelp kelp; fi
