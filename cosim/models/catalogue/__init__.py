"""The model catalogue: sizes as published, each with its source, and how a parallelism cuts them.

=====================  =====================================================================================
``architecture``       sizes of a transformer; parameters and FLOPs in closed form
``language``           GPT-3, Llama, Mixtral, DeepSeek, BERT
``vision``             convolutional networks: ResNet-50, VGG-16
``recommendation``     DLRM
``cut``                a parallelism, and what one rank has of a model
``blocks``             a transformer's layers on one rank, forward and backward; ``attention_layer``,
                       ``mamba_layer``, ``experts``: what is in them; ``ends``: embedding and head
``assemble``           layers on stages; fully sharded parameters; inference
``memory``             bytes on each GPU, and what would fit where something does not
``spec``               workload kind ``model``
=====================  =====================================================================================
"""
