"""The model catalogue: sizes as published, each with its source, and how a parallelism cuts them.

==================  ======================================================================
``architecture``    sizes of a transformer; parameters and FLOPs in closed form
``language``        GPT-3, Llama, Mixtral, DeepSeek, BERT
``vision``          convolutional networks: ResNet-50, VGG-16
``recommendation``  DLRM
``cut``             a parallelism, and what one rank has of a model
``blocks``          a transformer's layers on one rank, forward and backward; ``attention_layer``,
                    ``mamba_layer``, ``experts``: what is in them; ``ends``: embedding and head
``assemble``        layers on stages; fully sharded parameters; inference
``memory``          bytes on each GPU, and what would fit where something does not
``block_parts``     parts of a layer, and the pieces of its forward and backward pass
``conversion``      how a training library makes operands narrow, by recipe: how often they are read, and by
                    how many kernels
``fits``            whether a model and a job's settings go together; what would do, where they don't
``fitting``         settings near those that don't fit into a GPU's memory which do, on as many GPUs
``jobs``            a catalogue model's settings made into layers on stages, a way of training, and bytes on
                    a GPU
``layer_profile``   a catalogue model as layers with times and bytes, for whoever cuts it between layers
``mamba``           sizes of a Mamba-2 layer, its parameters and its FLOPs in closed form
``schedule_nodes``  what the host does beside operators where experts' all-to-alls overlap: a layer as
                    Megatron-Core's nodes
``workload``        kind ``model``: a model of the catalogue, trained or serving, under any parallelism
``stale_layers``    a model's training with gradients of its first layers an iteration late: SAPipe's
                    staleness, by buckets
==================  ======================================================================
"""
