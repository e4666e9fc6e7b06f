#compdef kelp
# SPDX-License-Identifier: Apache-2.0
# printed by 'kelp completion zsh'
_kelp() {
    if (( CURRENT == 2 )); then
        local -a commands=(
            'serve:serve a model repository over HTTP'
            'run:run a model once on given inputs'
            'build:build a plan of a model ahead of time'
            'inspect:show what a model is made of and whether it can run'
            'bench:measure load time, latency and memory of a model'
            'kernels:list libraries of kernels and what they take'
            'ops:list operators, their versions and how they are carried out'
            'worker:run parts of models for other processes'
            'new:make the project of a backend in C'
            'doctor:say which providers can be used here, and what is missing for the others'
            'completion:print completion for a shell'
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
            '*--model-repository=[folder of models, <model>/<version>/…; may be given several times]:DIR:_files -/' \
            '*--model-store=[older name of --model-repository]:DIR:_files -/' \
            '--model-control-mode=[none\: load all models once (default); explicit\: those of --load-model, then as clients ask; poll\: follow changes of the repository]:MODE:(none explicit poll)' \
            '*--load-model=[model to load at the start under explicit control, * for all; may be given several times]:NAME: ' \
            '--repository-poll-secs=[seconds between two looks at the repository under poll control (15)]:N: ' \
            '--strict-model-config[ask for a complete config.pbtxt instead of completing it from the model (false)]' \
            '--disable-auto-complete-config[the same as --strict-model-config]' \
            '--model-config-name=[use configs/NAME.pbtxt of a model where there is one]:NAME: ' \
            '--model-load-thread-count=[models loaded at once (4)]:N: ' \
            '--model-load-retry-count=[further attempts when a model does not load (0)]:N: ' \
            '--model-namespacing[let two repositories hold models of one name (false)]' \
            '--backend-directory=[folder of NAME/libtriton_NAME.so (../backends beside this program'\''s folder, else /opt/tritonserver/backends)]:DIR:_files -/' \
            '*--backend-config=[setting handed to a backend, or to all; may be given several times]:\[NAME,\]KEY=VALUE: ' \
            '--precision=[what float32 products of ONNX models multiply in, unless a model'\''s parameter '\''precision'\'' says otherwise (f32)]:f32|bf16:(f32 bf16)' \
            '--providers=[who runs parts of ONNX models, in order of preference\: onnxruntime,cpu or remote\:PATH,cpu; unless a model'\''s parameter '\''providers'\'' says otherwise]:NAMES: ' \
            '--plugin=[libraries of operators or providers to load first (kelp/plugin.h), '\''\:'\'' between them]:PATHS:_files' \
            '*--with-backend=[libtriton_NAME.so to serve a model NAME on, with the config.pbtxt of its folder or one of the two above; may be given several times]:LIBRARY:_files' \
            '*--cache-config=[keep answers of models that enable response_cache in cache NAME, with this setting; local,size=BYTES is the one built in; may be given several times]:NAME,KEY=VALUE: ' \
            '--cache-directory=[folder of NAME/libtritoncache_NAME.so (/opt/tritonserver/caches)]:DIR:_files -/' \
            '--repoagent-directory=[folder of NAME/libtritonrepoagent_NAME.so (/opt/tritonserver/repoagents)]:DIR:_files -/' \
            '--id=[name that the server reports]:NAME: ' \
            '--exit-on-error[end when a model does not load at the start (true); false serves the others]' \
            '--exit-timeout-secs=[seconds that requests in flight have to finish at the end (30)]:N: ' \
            '--strict-readiness[ready only when all models are (true)]' \
            '--allow-http[serve HTTP (true)]' \
            '--http-address=[address to listen on, or unix\:/path (0.0.0.0)]:ADDRESS: ' \
            '--http-port=[port to listen on, 0 for a free one (8000)]:PORT: ' \
            '--http-thread-count=[event loops (CPUs, at most 8)]:N: ' \
            '--reuse-http-port[let several servers share the port (false)]' \
            '--http-max-input-size=[largest body without binary tensors (67108864)]:BYTES: ' \
            '--allow-grpc[serve gRPC (false; this build has none)]' \
            '--allow-metrics[collect metrics (true)]' \
            '*--metrics-config=[summary_latencies, histogram_latencies, counter_latencies (true or false), summary_quantiles (0.5\:0.05,0.9\:0.01); may be given several times]:KEY=VALUE: ' \
            '--log-verbose=[verbose messages up to this level (0)]:LEVEL: ' \
            '--log-info[messages of information (true)]' \
            '--log-warning[warnings (true)]' \
            '--log-error[errors (true)]' \
            '--log-format=[how a line of the log is written]:FORMAT:(default ISO8601 json)' \
            '--log-file=[where the log goes (stderr)]:FILE:_files' \
            '*:file:_files' ;;
    run)
        _arguments '--help[this text]' \
            '*--input=[an input\: a .npy file, or values separated by commas; may be given several times]:NAME=@FILE|V,V,…: ' \
            '--random[make up the inputs that are not given\: floats in \[0,1), integers 0 or 1, the same each time]' \
            '*--shape=[shape of an input whose extents the model leaves open (1 each)]:NAME=1x8x8: ' \
            '*--output=[print only this output, or write it to a .npy file; may be given several times]:NAME\[=@FILE\]: ' \
            '--output-dir=[write every output to DIR/NAME.npy]:DIR:_files -/' \
            '--json[print outputs as JSON, all elements]' \
            '--threads=[threads an operator may use (0\: all CPUs)]:N: ' \
            '--repeat=[run so many times and say on stderr how long that took (1)]:N: ' \
            '--profile[say on stderr which operators took the time of the last run]' \
            '--no-fusion[run the graph as it is written]' \
            '--precision=[what float32 products multiply in; bf16 takes about half the time where the processor has AVX512_BF16, and rounds (f32)]:f32|bf16:(f32 bf16)' \
            '--plugin=[load a library of operators or providers first (kelp/plugin.h)]:FILE.so:_files' \
            '--providers=[who runs the model, in order of preference\: each takes the parts that it covers]:NAME,NAME,…: ' \
            '*:file:_files' ;;
    build)
        _arguments '--help[this text]' \
            '--output=[where the plan goes (the model'\''s name with .plan)]:FILE.plan:_files' \
            '--provider=[who will run it\: cpu, tensorrt, null (cpu)]:NAME: ' \
            '*--min=[smallest shape of an input; repeat for more inputs, and all three for more profiles]:NAME\:1x3x224x224: ' \
            '*--opt=[usual shape (the largest)]:NAME\:8x3x224x224: ' \
            '*--max=[largest shape]:NAME\:32x3x224x224: ' \
            '--refit[all weights can be exchanged in the engine]' \
            '*--refit-weights=[only these weights can be exchanged; may be given several times]:NAME: ' \
            '--strip-weights[weights that can be exchanged, all unless --refit-weights names some, are left out\: a refit brings them before the first run]' \
            '--weight-streaming[weights may stay in host memory (tensorrt)]' \
            '--version-compatible[the plan runs on later versions of the provider'\''s library (tensorrt)]' \
            '*--compute-capability=[a GPU that it is for, as 10 * major + minor; may be given several times (tensorrt)]:86: ' \
            '--workspace=[limit of the memory for activations (0\: none)]:MIB: ' \
            '--level=[how hard to optimise, 0 to 5 (3); on the cpu a plan of 0 to 2 is smaller, and optimised each time it is loaded]:N: ' \
            '--timing-cache=[what earlier builds measured\: read when it is there, written afterwards (tensorrt)]:FILE:_files' \
            '--plugin=[load a library of operators or providers first (kelp/plugin.h)]:FILE.so:_files' \
            '--precision=[what float32 products multiply in; bf16 takes about half the time where the processor has AVX512_BF16, and rounds (f32)]:f32|bf16:(f32 bf16)' \
            '--no-fusion[the graph as it is written]' \
            '*:file:_files' ;;
    inspect)
        _arguments '--help[this text]' \
            '*--shape=[shape of an input for the memory plan (open extents are 1)]:NAME=1x8x8: ' \
            '--plugin=[load a library of operators or providers first (kelp/plugin.h)]:FILE.so:_files' \
            '--providers=[who would run the model, in order of preference; shows which parts each takes]:NAME,NAME,…: ' \
            '--json[print JSON]' \
            '*:file:_files' ;;
    bench)
        _arguments '--help[this text]' \
            '--threads=[numbers of threads to measure, one after the other (1,2)]:N,N,…: ' \
            '--seconds=[how long to measure each (3); at least ten runs are made]:S: ' \
            '*--input=[an input; those that are not given are made up as by '\''kelp run --random'\'']:NAME=@FILE|V,V,…: ' \
            '*--shape=[shape of an input whose extents the model leaves open (1 each)]:NAME=1x8x8: ' \
            '--precision=[what float32 products multiply in; bf16 takes about half the time where the processor has AVX512_BF16, and rounds (f32)]:f32|bf16:(f32 bf16)' \
            '--plugin=[load a library of operators or providers first (kelp/plugin.h)]:FILE.so:_files' \
            '--providers=[who runs the model, in order of preference\: each takes the parts that it covers]:NAME,NAME,…: ' \
            '--profile[after that print the time of each node, and the algorithm that was chosen for it]' \
            '--json[print JSON]' \
            '*:file:_files' ;;
    kernels)
        _arguments '--help[this text]' \
            '*--library=[only this library, by its name or its file; may be given several times]:NAME|FILE: ' \
            '--json[print JSON]' \
            '*:file:_files' ;;
    ops)
        _arguments '--help[this text]' \
            '--domain=[only this domain\: ai.onnx, ai.onnx.ml, com.microsoft, …]:NAME: ' \
            '--json[print JSON]' \
            '*:file:_files' ;;
    worker)
        _arguments '--help[this text]' \
            '--socket=[the socket to make and listen on]:PATH: ' \
            '--providers=[who runs what is sent, in order of preference]:NAME,NAME,…: ' \
            '--threads=[threads an operator may use (0\: all CPUs)]:N: ' \
            '--budget=[MiB of inputs that all runs under way may hold (256)]:MIB: ' \
            '--connections=[subgraphs that are served at once (64)]:N: ' \
            '*:file:_files' ;;
    new)
        _arguments '--help[this text]' \
            '--dir=[folder of the project (NAME, in the working folder); made when it is not there]:DIR:_files -/' \
            '*:file:_files' ;;
    doctor)
        _arguments '--help[this text]' \
            '*:file:_files' ;;
    completion)
        _arguments '--help[this text]' \
            '*:file:_files' ;;
    esac
}
if [ "$funcstack[1]" = _kelp ]; then _kelp "$@"; else compdef _kelp kelp; fi
