"""What runs in the process of a profiled script: the only part of cosim that imports torch.

====================  ======================================================================
``answer``            what a session recorded of one iteration, as plain values for the file beside its
                      order
``answers``           tokens of an answer are not known: when it ends and which drafts are accepted are
                      arguments
``attention``         scaled dot product attention by the kernel that a GPU would take
``compiled``          ``torch.compile``: Dynamo and AOTAutograd trace as on a GPU, Inductor schedules, its
                      launches are recorded
``cuda``              ``torch.cuda`` for a machine without one: streams and events go to the shim,
                      everything else gets an answer
``cuda_sources``      extensions with CUDA sources, which a script compiles when it first needs them
                      (``cpp_extension.load``)
``cuda_types``        of CUDA builds only: ``torch.cuda.FloatTensor`` and its like, ``_compile_kernel``,
                      ``CUDA_HOME``
``distributed``       process groups that reach nobody: each collective and message is recorded, and its
                      result has the right shape
``embedding_tables``  FBGEMM's tables of embeddings, as TorchRec has them: many in one tensor, looked up by
                      one kernel
``environment``       which variables of the environment a script's own lines ask for, whether they are set
                      or not
``exchanged``         what comes out of a collective, where it is known: flags, counts and shapes that ranks
                      tell each other
``extensions``        a package's compiled part that isn't there, or can't be loaded without CUDA:
                      ``vllm._C`` and its like
``failure``           a script that fails: the user's own frames, and what to do about it
``fakes``             the costliest steps of a fake tensor's dispatch, shorter: what is remembered, views,
                      and what joins parts
``flash_attention``   ``flash_attn`` where it isn't installed (it is built with CUDA): its attention is
                      torch's flash kernel
``generation``        requests: `generate` of transformers is a prefill and decode steps, an iteration where
                      nothing trains
``gpu_answers``       what ``torch.cuda`` says of a GPU that isn't there: its name, properties, memory; and
                      what does nothing
``graphs``            ``torch.cuda.CUDAGraph``: a capture is kept and not carried out; each replay issues it
                      whole
``host``              values that are known: small tensors on the host are computed as the script would
                      compute them
``inductor``          what Inductor makes of a graph: its lowering and its scheduler's fusions for a CUDA
                      GPU, without any code
``kernels``           what an operator costs: its kind, FLOPs, bytes and the shape of its matrix product,
                      from its arguments
``layers``            layers that are alike: three of a row are run and recorded, the others are copies of
                      the second
``left_behind``       processes that a script has started and left: they end with its rank
``lines``             which line of the user's own code is being carried out: what is said of a script names
                      it
``nvml``              NVIDIA's management library: what asks it for the node's GPUs sees those of the
                      profile
``own_python``        ``subprocess.run([sys.executable, "-m", ...])``: the script's own Python, which sees
                      the same machine
``parallelism``       another data parallelism than the script's own: PyTorch's classes exchanged where the
                      script makes them
``parameters``        a module's parameters keep what a script wrote on them when they are cast or moved
``pipeline``          pipeline stages one by one: what stages tell each other about shapes goes through
                      files
``processes``         scripts that start their own ranks, with ``torch.multiprocessing.spawn``: this rank's
                      share is run, here
``progress``          what is said while a script runs, and the way round what takes long before the first
                      optimizer step
``python_operators``  operators that a library implements in Python (``torch.library``): what they call is
                      what is recorded
``recorder``          a dispatch mode that sees every operator of a rank, forward, backward and optimizer
``remap``             without the shim: what a script asks of ``cuda`` happens on fake ``cpu`` tensors
``routing``           which experts tokens go to: nobody knows before training, so it is an argument,
                      ``--routing``
``serving_kernels``   what operators of inference engines do whose compiled part isn't there: paged
                      attention, caches, norms
``session``           one profiled rank: the fake machine put up, the user's script run, what was recorded
                      handed over
``shared_folder``     what one profiled rank tells another: values in a folder that all of them share
``shim``              fake ``cuda`` for a torch without CUDA: builds ``shim.cpp`` once per torch into the
                      user's cache, and loads it
``sparse``            sparse gradients, as embeddings with ``sparse=True`` have them: what torch's rules of
                      fake tensors lack
``spmd``              FSDP2 of parameters that are plain tensors with ``spmd_types``' annotations:
                      torchtitan 0.3's default
``stand_in``          libraries that need CUDA to be installed at all: scripts import them, and what is
                      imported is there
``strided``           which of PyTorch's element-wise kernels go through their elements one by one, and how
                      many
``tensors``           tensors made, copied or shared from Python: ``torch.tensor`` of numbers, ``deepcopy``,
                      ``Parameter``
``triton_kernels``    ``triton`` where it isn't installed (it comes with CUDA builds of torch): scripts
                      import it, and launch
``values``            values of tensors that have none: what ``.item()`` and the like say, and what is never
                      written to disk
``vllm_engine``       vLLM's `LLM`: its ranks are the job's; `generate` is a request, of as many steps as
                      its scheduler makes
``weights``           files of ``safetensors``: read on the host, with their values, whatever device they
                      are asked for
``wrappers``          what DDP, FSDP and attention need to run on fake tensors, each as close to what a GPU
                      run does as can be
====================  ======================================================================
"""
