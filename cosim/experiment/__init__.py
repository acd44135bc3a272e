"""A question: scenarios and sweeps, and running them.

===================================  ======================================================================
``run``                              ``cosim.run``, ``cosim.sweep``
``scenario``                         what a scenario is; ``load`` a file
``sweep``                            what a sweep is: axes of choices, seeds, measures
``settings``                         ``--set path=value``
``mistakes``                         validation errors with file, line, key, value and the way out
``fields``                           what a field takes, in words
``idle``                             settings that can't affect the result
``build``                            topology, network, jobs on endpoints and planner of a scenario;
                                     ``fold``
``simulate``                         one scenario: ``Run``; ``save`` writes its folder, ``resume`` goes on
                                     with it
``trials``                           the runs of a sweep, in several processes
``alone``                            one job by itself, and all without a scheduler
``progress``                         what callers are told, and a bar
``catalog``                          ``cosim list``
``prove``, ``serve``, ``translate``  the commands of these names
``cost``                             what a cluster costs and draws: dollars and watts of its GPUs, switch
                                     ports, cables and optics
``doubts``                           doubts about a scenario's answer: those of its parts with their places,
                                     and those that a run shows
``drawn``                            whether anything of a scenario is drawn from its seed: where nothing
                                     is, every seed gives the same run
``engines``                          which engine replays a scenario: the kernel, or the reference where it
                                     is asked for or there is no kernel
``events``                           events of a scenario, on what they are of: a topology's links, and
                                     ranks of its jobs
``facts``                            what is known of a scenario before it is run, and what runs have of any
                                     measure
``fit_fabric``                       a fabric's numbers, set by what nccl-tests printed: ``cosim fit
                                     SCENARIO --nccl-tests FILE``
``fit_script``                       which preset or kernel explains measured jobs, before a number is moved
``fit_gpu``                          a GPU's numbers, and its host's, set by measured jobs: ``cosim fit``
``live``                             a scenario that processes take part in
``measured_jobs``                    measured jobs beside simulated ones: ``cosim validate``, and what
                                     ``cosim fit`` starts from
``memory``                           what the scenario's memory makes of a job: its loads and stores timed,
                                     and who serves them
``open``                             ``cosim.open``: a run that SimPy's processes take part in
``prepare``, ``prepared_state``      ``cosim.prepare``: a scenario made once, run at any values of a few
                                     settings; what such runs begin in
``profiles``                         each distinct job run alone, for whoever schedules them
``schema``                           a JSON schema of scenarios and sweeps, so that editors complete them:
                                     ``cosim schema``
``shared_cluster``                   a scenario's cluster: who queues and who schedules, made of what it
                                     says
``sizes``                            how large a scenario would be: what needs more memory than there is, or
                                     hours, is refused beforehand
``traffic``                          the traffic that a scenario says, as a capture of it would have it
``watch``                            what a scenario's ``record`` asks a network for over time: links, jobs
                                     and pairs of endpoints by name
``workloads``                        workloads that were built, kept for trials that ask for the same
``executors/``                       where runs are run: processes of this machine, Dask's workers, jobs of
                                     Slurm, or a plug-in's way
``search/``                          of a sweep, the best choice: what can't be is refused, what can't win
                                     isn't run
``store/``                           every run under the hash of what determines it, so that no question is
                                     computed twice
``studies/``                         what is done with several runs of one scenario: ``cosim study``
``topoopt/``                         topology and parallelism found in turns, as TopoOpt does
===================================  ======================================================================
"""
